"""Models and whole pipelines of the diffusers library, from a folder or a configuration."""

import inspect
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from kernelforge_engine.errors import InputsUnusable
from kernelforge_engine.worker.ways import made_up_diffusion
from kernelforge_engine.worker.ways.given import STEP
from kernelforge_engine.worker.ways.hub import CONFIG, OWN_FILE, Source, library
from kernelforge_engine.worker.ways.ready import Ready
from kernelforge_engine.worker.ways.transformer import made_model
from kernelforge_engine.worker.ways.weights import randomly_made

SEED = 0


class Decoding(torch.nn.Module):
    """The half of an autoencoder that runs at the end of every generation."""

    def __init__(self, autoencoder: Any) -> None:
        super().__init__()
        self.autoencoder = autoencoder

    def forward(self, latents: torch.Tensor) -> torch.Tensor:
        """The pictures for a batch of latents."""
        decoded: torch.Tensor = self.autoencoder.decode(latents, return_dict=False)[0]
        return decoded


class Pipeline(torch.nn.Module):
    """A whole pipeline as one module, with the same noise in every run."""

    def __init__(self, pipeline: Any, device: torch.device) -> None:
        super().__init__()
        for name, part in pipeline.components.items():
            if isinstance(part, torch.nn.Module):
                self.add_module(name, part)
        self._pipeline, self._device = pipeline, device
        self._accepted = inspect.signature(pipeline.__call__).parameters

    def forward(self, **given: Any) -> torch.Tensor:
        """What the pipeline makes, as a tensor."""
        noise = torch.Generator(self._device).manual_seed(SEED)
        usual = {"generator": noise, "output_type": "pt", "return_dict": False}
        accepted = {k: v for k, v in usual.items() if k in self._accepted}
        made = self._pipeline(**accepted, **given)[0]
        return torch.from_numpy(made) if isinstance(made, np.ndarray) else made


@dataclass(frozen=True, kw_only=True)
class Prompts:
    """A text as the prompt of a pipeline; pictures and sounds are not what it starts from."""

    pipeline: Any

    def text(self, entry: str, text: str) -> dict[str, Any]:
        """The prompt, and the usual few steps.

        Raises:
            InputsUnusable: the pipeline takes no prompt.
        """
        accepted = inspect.signature(self.pipeline.__call__).parameters
        if "prompt" not in accepted:
            raise InputsUnusable(entry=entry, why="the pipeline takes no prompt", step=STEP)
        return made_up_diffusion.for_pipeline(self.pipeline) | {"prompt": text}

    def picture(self, entry: str, picture: Any) -> dict[str, Any]:  # noqa: ARG002  a Reader
        """Refused.

        Raises:
            InputsUnusable: always.
        """
        raise InputsUnusable(entry=entry, why="a pipeline starts from a prompt", step=STEP)

    def sound(self, entry: str, samples: torch.Tensor, rate: int) -> dict[str, Any]:  # noqa: ARG002
        """Refused.

        Raises:
            InputsUnusable: always.
        """
        raise InputsUnusable(entry=entry, why="a pipeline starts from a prompt", step=STEP)


def diffusers_model(source: Source) -> Ready:
    """A pipeline, or one model of it.

    Raises:
        PackageMissing, ModelUnusable
    """
    library("diffusers", source.name)
    if source.is_pipeline:
        return _pipeline(source)
    model = _part(source)
    if "Autoencoder" in type(model).__name__ and hasattr(model, "decode"):
        return Ready(
            model=Decoding(model),
            default=lambda: made_up_diffusion.latents(model),
            requires=type(model).__module__,
        )
    return Ready(
        model=model,
        default=lambda: made_up_diffusion.for_diffusers(model),
        requires=type(model).__module__,
    )


def _part(source: Source) -> Any:
    kind = _class(source, "diffusers", source.config["_class_name"])
    if source.random:
        with source.blamed(f"mend the configuration, or {OWN_FILE}"):
            return randomly_made(
                lambda: kind.from_config(dict(source.config)),
                source.device,
                source.dtype or torch.float32,
            )
    source.must_have_weights()
    step = "save it with save_pretrained (safetensors), pip install accelerate if it asks for low "
    step += "memory use, or add --random-weights"
    with source.blamed(step):
        model = kind.from_pretrained(
            source.folder, local_files_only=True, use_safetensors=True, torch_dtype=source.dtype
        )
        return model.to(source.device).eval()


def _pipeline(source: Source) -> Ready:
    kind = _class(source, "diffusers", source.config.get("_class_name"))
    step = f"name one part as {source.name}#transformer, or {OWN_FILE}"
    with source.blamed(step):
        if source.random:
            pipeline = kind(**_parts(source))
        else:
            pipeline = kind.from_pretrained(
                source.folder, local_files_only=True, use_safetensors=True, torch_dtype=source.dtype
            )
        pipeline.set_progress_bar_config(disable=True)
        model = Pipeline(pipeline.to(source.device), source.device).eval()
    return Ready(
        model=model,
        default=lambda: made_up_diffusion.for_pipeline(pipeline),
        requires=type(pipeline).__module__,
        reader=Prompts(pipeline=pipeline),
    )


def _parts(source: Source) -> dict[str, Any]:
    """Every part that the index lists: modules with random weights, the rest from its files."""
    parts = {}
    for name, entry in source.config.items():
        if not isinstance(entry, list):  # an option of the pipeline, or a fact about the file
            if not name.startswith("_"):
                parts[name] = entry
            continue
        package, kind_name = entry
        parts[name] = None if kind_name is None else _component(source, name, package, kind_name)
    return parts


def _component(source: Source, name: str, package: str, kind_name: str) -> Any:
    kind = _class(source, package, kind_name)
    folder = source.folder / name
    if not issubclass(kind, torch.nn.Module):
        return kind.from_pretrained(folder, local_files_only=True)
    part = replace(source, folder=folder, file=folder / CONFIG)
    return made_model(part) if package == "transformers" else _part(part)


def _class(source: Source, package: str, name: Any) -> Any:
    found = None
    if package in ("diffusers", "transformers") and isinstance(name, str):
        with source.blamed(f"install what it needs, or {OWN_FILE}"):
            found = getattr(library(package, source.name), name, None)
    if not inspect.isclass(found):
        why = f"{package} knows no class {name!r}, and code of a repository is never run"
        raise source.unusable(why=why, step=f"upgrade {package}, or {OWN_FILE}")
    return found
