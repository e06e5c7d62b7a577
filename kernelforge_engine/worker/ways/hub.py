"""Models of Hugging Face: what hf:org/name, hf:FOLDER and hf:config.json stand for.

Nothing is downloaded, no code of a repository is run, and no pickled weights are read.
"""

import importlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from kernelforge_engine.errors import (
    FileMissing,
    KernelForgeError,
    ModelUnusable,
    ModuleFailed,
    NotCached,
    PackageMissing,
)
from kernelforge_engine.pool.orders import ModelOrder
from kernelforge_engine.worker.ways.ready import described

PREFIX = "hf:"
INDEX = "model_index.json"
CONFIG = "config.json"
OWN_FILE = "write FILE.py with a make_model() that builds it"


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where a model's configuration and weights are, and how it is wanted.

    Attributes:
        name: how the user called it, for messages.
        folder: the folder that holds the configuration.
        file: the configuration itself.
        weights: whether the folder may hold weights: a lone configuration has none.
    """

    name: str
    folder: Path
    file: Path
    weights: bool
    random: bool
    dtype: torch.dtype | None
    device: torch.device

    @cached_property
    def config(self) -> dict[str, Any]:
        """The configuration file.

        Raises:
            ModelUnusable: it is not there, or no JSON object.
        """
        try:
            found = json.loads(self.file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            step = f"name a folder with a {CONFIG} or {INDEX}, or such a file"
            why = f"{self.file} cannot be read: {described(error)}"
            raise self.unusable(why=why, step=step) from error
        if not isinstance(found, dict):
            raise self.unusable(
                why=f"{self.file} is no JSON object", step="write the configuration into it"
            )
        return found

    @property
    def is_pipeline(self) -> bool:
        """Whether this is a whole diffusers pipeline."""
        return self.file.name == INDEX

    def must_have_weights(self) -> None:
        """Refuse to read weights from a lone configuration.

        Raises:
            ModelUnusable: there is no folder of weights beside it.
        """
        if not self.weights:
            step = "add --random-weights, or name the folder that holds the weights too"
            raise self.unusable(why="a configuration holds no weights", step=step)

    def unusable(self, *, why: str, step: str) -> ModelUnusable:
        """The error about this model."""
        return ModelUnusable(model=self.name, why=why, step=step)

    @contextmanager
    def blamed(self, step: str) -> Iterator[None]:
        """What a library raises inside becomes an error about this model."""
        try:
            yield
        except KernelForgeError:
            raise
        except Exception as error:
            raise self.unusable(why=described(error), step=step) from error


def library(name: str, what: str) -> Any:
    """An imported package.

    Raises:
        PackageMissing: it is not installed.
        ModuleFailed: it is, and cannot be imported.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise ModuleFailed(module=name, error=described(error)) from error
        raise PackageMissing(what=what, package=name) from error
    except Exception as error:
        raise ModuleFailed(module=name, error=described(error)) from error


def found_source(order: ModelOrder, device: torch.device) -> Source:
    """Find what a name behind hf: stands for.

    Raises:
        FileMissing, NotCached, ModelUnusable, PackageMissing
    """
    place, _, part = order.model.removeprefix(PREFIX).partition("#")
    found = _found(place)
    alone = found.is_file() and found.name != INDEX
    folder = found.parent if found.is_file() else found
    file = found if found.is_file() else _configuration(folder)
    if part:
        file = _part(order.model, folder, part)
        folder = file.parent
    return Source(
        name=order.model,
        folder=folder,
        file=file,
        weights=not alone,
        random=order.random_weights,
        dtype=None if order.dtype is None else getattr(torch, order.dtype),
        device=device,
    )


def _found(place: str) -> Path:
    path = Path(place)
    try:
        if path.exists():
            return path
    except OSError as error:  # no file could have such a name
        raise FileMissing(path=path) from error
    if path.is_absolute() or place.startswith("."):
        raise FileMissing(path=path)
    hub = library("huggingface_hub", f"hf:{place}")
    try:
        return Path(hub.snapshot_download(place, local_files_only=True))
    except (OSError, ValueError) as error:  # it is not there, or it is no name at all
        raise NotCached(name=place) from error


def _configuration(folder: Path) -> Path:
    index = folder / INDEX
    return index if index.is_file() else folder / CONFIG


def _part(name: str, folder: Path, part: str) -> Path:
    file = folder / part / CONFIG
    if not file.is_file():
        parts = sorted(f.parent.name for f in folder.glob(f"*/{CONFIG}"))
        listed = ", ".join(parts) or "none"
        raise ModelUnusable(
            model=name,
            why=f"it has no part {part!r} with a {CONFIG}; its parts are: {listed}",
            step="name one of its parts behind #, or leave # out",
        )
    return file
