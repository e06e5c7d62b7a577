"""Loading a user's model and its inputs, in a child process only: this runs the user's code."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernelforge_engine.errors import (
    BadOption,
    InputsRejected,
    KernelForgeError,
    ModelRaised,
    NoDevice,
)
from kernelforge_engine.pool.orders import ModelOrder
from kernelforge_engine.worker.ways.diffusion import diffusers_model
from kernelforge_engine.worker.ways.generation import generating
from kernelforge_engine.worker.ways.given import arguments, given
from kernelforge_engine.worker.ways.hub import PREFIX, found_source
from kernelforge_engine.worker.ways.python import module_at, python_model
from kernelforge_engine.worker.ways.ready import Inputs, Ready, described
from kernelforge_engine.worker.ways.saved import EXPORTED, SCRIPTED, saved_model
from kernelforge_engine.worker.ways.transformer import transformers_model


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A model in eval mode with its input sets, all on `device`.

    `requires`: what to import where operators of the model's own are to be called, or None.
    """

    model: Callable[..., Any]
    sets: tuple[Inputs, ...]
    device: torch.device
    requires: str | None = None

    def fresh(self) -> tuple[Inputs, ...]:
        """The inputs as they were made: a model may write into what it is given."""
        copies: tuple[Inputs, ...] = pytree.tree_map_only(torch.Tensor, torch.clone, self.sets)
        return copies

    def run(self, inputs: Sequence[Inputs] | None = None) -> list[Any]:
        """One forward for every input set, from the same random state each time; the outputs.

        What records operators passes `inputs`, so that the copying is not recorded.

        Raises:
            ModelRaised: whatever the model raised, in our words.
            KernelForgeError: what a recording of this run could not do.
        """
        torch.manual_seed(0)
        try:
            with torch.no_grad():
                result = [self.model(*args, **kwargs) for args, kwargs in inputs or self.fresh()]
        except KernelForgeError:
            raise
        except (Exception, SystemExit) as error:
            raise ModelRaised(error=described(error)) from error
        self.wait()
        return result

    def wait(self) -> None:
        """Wait until the device has finished what was launched."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def load(order: ModelOrder) -> Loaded:
    """Load a model by the way in that its name asks for, and make its inputs.

    A tensor that is made on the CPU is moved to the device; the model is moved too.

    Raises:
        UsageError: the model or its inputs are not there, or cannot be used.
    """
    device = _device(order.device)
    ready = _ready(order, device)
    if order.inputs:
        sets = tuple(given(entry, ready, device) for entry in order.inputs)
    else:
        sets = (arguments(ready.default()),)
    return Loaded(
        model=generating(ready.model, order.model, order.generate_tokens),
        sets=tuple(
            _placed(one, _source(entry), device)
            for one, entry in zip(sets, order.inputs or ("make_inputs",), strict=True)
        ),
        device=device,
        requires=ready.requires,
    )


def imported(requires: str) -> None:
    """Import what defines a model's own operators: a `requires` of something that was loaded.

    Raises:
        FileMissing, ImportFailed, ModuleMissing, ModuleFailed
    """
    module_at(requires)


def _ready(order: ModelOrder, device: torch.device) -> Ready:
    if order.model.startswith(PREFIX):
        found = found_source(order, device)
        if found.is_pipeline or "_class_name" in found.config:
            return diffusers_model(found)
        return transformers_model(found, order.generate_tokens)
    for field, value in (("random_weights", order.random_weights), ("dtype", order.dtype)):
        if value:
            why = "a model that is no hf: model has weights of its own"
            raise BadOption(field=field, value=value, why=why, accepted="it with hf: models only")
    if order.model.endswith((EXPORTED, *SCRIPTED)):
        return saved_model(order.model, device)
    return python_model(order.model, device)


def _device(text: str) -> torch.device:
    try:
        device = torch.device(text)
    except RuntimeError as error:
        raise NoDevice(device=text, why="torch knows no such device") from error
    if device.type not in ("cpu", "cuda"):
        raise NoDevice(device=text, why="only cpu and cuda are supported")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise NoDevice(device=text, why="torch finds no usable CUDA device")
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return device


def _source(entry: str) -> str:
    return f"{entry}()" if entry.isidentifier() else entry


def _placed(one: Inputs, source: str, device: torch.device) -> Inputs:
    leaves, tree = pytree.tree_flatten_with_path(one)
    moved = [
        _moved(leaf, f"inputs{pytree.keystr(path[1:])}", source, device) for path, leaf in leaves
    ]
    placed: Inputs = pytree.tree_unflatten(moved, tree)
    return placed


def _moved(leaf: Any, field: str, source: str, device: torch.device) -> Any:
    if not isinstance(leaf, torch.Tensor) or leaf.device == device:
        return leaf
    if leaf.device.type != "cpu":
        raise InputsRejected(
            field=field,
            source=source,
            why=f"it is on {leaf.device} and the model runs on {device}",
            step="create it on the CPU; it is moved from there",
        )
    return leaf.to(device)
