"""Inputs made up from a diffusers model's configuration, the same each time."""

import inspect
from collections.abc import Callable
from typing import Any

import torch

from kernelforge_engine.errors import InputsUnusable
from kernelforge_engine.worker.ways.given import STEP
from kernelforge_engine.worker.ways.ready import dtype_of

SEED = 1
PROMPT = "a lighthouse on a rock in a storm, oil on canvas"
STEPS = 2
SAMPLE = 64
SIDE = 32  # of the picture tokens of a model that takes their places as image ids
TEXT_TOKENS = 77
FRAMES = 3
TIME = 500
TEXT_WIDTHS = (
    "joint_attention_dim", "cross_attention_dim", "caption_channels", "text_embed_dim", "text_dim",
)  # fmt: skip


def latents(model: Any) -> torch.Tensor:
    """The latents of a picture of the autoencoder's own size."""
    config = model.config
    halvings = len(getattr(config, "block_out_channels", None) or (0,) * 4) - 1
    size = max(1, _size(config, default=512) // 2**halvings)
    channels = getattr(config, "latent_channels", None)
    if not isinstance(channels, int) or "3D" in str(getattr(config, "down_block_types", "")):
        raise _unknown(model, "latents")
    return _normal((1, channels, size, size), dtype_of(model))


def for_pipeline(pipeline: Any) -> dict[str, Any]:
    """A prompt and few steps, as far as the pipeline takes them.

    Raises:
        InputsUnusable: it needs something else.
    """
    accepted = inspect.signature(pipeline.__call__).parameters
    usual = {"prompt": PROMPT, "num_inference_steps": STEPS}
    for name, parameter in accepted.items():
        if parameter.default is parameter.empty and name not in usual and _needed(parameter):
            raise _unknown(pipeline, name)
    return {name: value for name, value in usual.items() if name in accepted}


def for_diffusers(model: Any) -> dict[str, Any]:
    """Keyword arguments of a denoiser at its own sample size.

    Raises:
        InputsUnusable: the configuration does not say what the model takes.
    """
    accepted = inspect.signature(model.forward).parameters
    made = {}
    for name, parameter in accepted.items():
        value = MAKERS[name](model) if name in MAKERS else None
        if value is not None:
            made[name] = value
        elif parameter.default is parameter.empty and _needed(parameter):
            raise _unknown(model, name)
    return made


def _needed(parameter: inspect.Parameter) -> bool:
    return parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)


def _unknown(model: Any, name: str) -> InputsUnusable:
    return InputsUnusable(
        entry=f"for {type(model).__name__}",
        why=f"none were given, and its configuration does not say what its {name} is",
        step=STEP,
    )


def _sample(model: Any) -> torch.Tensor | None:
    config = model.config
    size = _size(config, default=SAMPLE)
    return _normal((1, config.in_channels, size, size), dtype_of(model))


def _hidden(model: Any) -> torch.Tensor | None:
    """Latents as a picture, or as the tokens that models with image ids take."""
    config = model.config
    if _has_ids(model):
        return _normal((1, SIDE * SIDE, config.in_channels), dtype_of(model))
    patch = getattr(config, "patch_size", None)
    if isinstance(patch, list | tuple) and len(patch) == 3:  # frames, rows, columns of a video
        return _normal((1, config.in_channels, FRAMES, SIDE, SIDE), dtype_of(model))
    return None if getattr(config, "sample_size", None) is None else _sample(model)


def _text(model: Any) -> torch.Tensor | None:
    widths = (getattr(model.config, name, None) for name in TEXT_WIDTHS)
    width = next((width for width in widths if isinstance(width, int)), None)
    return None if width is None else _normal((1, TEXT_TOKENS, width), dtype_of(model))


def _pooled(model: Any) -> torch.Tensor | None:
    width = getattr(model.config, "pooled_projection_dim", None)
    return None if width is None else _normal((1, width), dtype_of(model))


def _time(model: Any) -> torch.Tensor:
    if _has_ids(model):  # these scale it themselves
        return torch.tensor([TIME / 1000], dtype=dtype_of(model))
    return torch.tensor([TIME])


def _labels(model: Any) -> torch.Tensor | None:
    config = model.config
    known = getattr(config, "num_class_embeds", None) or getattr(
        config, "num_embeds_ada_norm", None
    )
    return torch.zeros(1, dtype=torch.long) if known else None


def _image_ids(model: Any) -> torch.Tensor:
    ids = torch.zeros(SIDE, SIDE, len(model.config.axes_dims_rope))
    ids[..., 1] += torch.arange(SIDE)[:, None]
    ids[..., 2] += torch.arange(SIDE)[None]
    return ids.reshape(SIDE * SIDE, -1)


def _text_ids(model: Any) -> torch.Tensor:
    return torch.zeros(TEXT_TOKENS, len(model.config.axes_dims_rope))


def _guidance(model: Any) -> torch.Tensor | None:
    wanted = getattr(model.config, "guidance_embeds", False)
    return torch.tensor([3.5], dtype=dtype_of(model)) if wanted else None


def _added(model: Any) -> dict[str, torch.Tensor] | None:
    """The second text and the sizes that SDXL is told."""
    config = model.config
    if getattr(config, "addition_embed_type", None) != "text_time":
        return None
    times = 6 * config.addition_time_embed_dim
    width = config.projection_class_embeddings_input_dim - times
    size = float(_size(config, default=SAMPLE) * 8)
    return {
        "text_embeds": _normal((1, width), dtype_of(model)),
        "time_ids": torch.tensor([[size, size, 0, 0, size, size]], dtype=dtype_of(model)),
    }


MAKERS: dict[str, Callable[[Any], Any]] = {
    "sample": _sample,
    "hidden_states": _hidden,
    "encoder_hidden_states": _text,
    "pooled_projections": _pooled,
    "timestep": _time,
    "class_labels": _labels,
    "img_ids": _image_ids,
    "txt_ids": _text_ids,
    "guidance": _guidance,
    "added_cond_kwargs": _added,
}


def _has_ids(model: Any) -> bool:
    return "img_ids" in inspect.signature(model.forward).parameters


def _size(config: Any, *, default: int) -> int:
    size = getattr(config, "sample_size", None)
    if isinstance(size, list | tuple):
        size = size[-1]
    return size if isinstance(size, int) else default


def _normal(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(SEED)).to(dtype)
