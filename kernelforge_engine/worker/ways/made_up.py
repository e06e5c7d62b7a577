"""Inputs made up from a transformers model's configuration, the same each time."""

import inspect
from collections.abc import Iterable
from typing import Any

import torch

from kernelforge_engine.errors import InputsUnusable
from kernelforge_engine.worker.ways.given import STEP
from kernelforge_engine.worker.ways.ready import dtype_of

TOKENS = 64
DECODER_TOKENS = 8
PIXELS = 224
SAMPLES = 16_000
FRAMES = 200
SEED = 1


def for_transformers(model: Any, *, generates: bool) -> dict[str, torch.Tensor]:
    """Keyword arguments of the model, or of its generate().

    Raises:
        InputsUnusable: the configuration does not say what the model takes.
    """
    name = main_input(model)
    made = {name: _main(model, name)}
    if name == "input_ids" and takes(model, "pixel_values") and _pairs(model):
        made["pixel_values"] = _pixels(model, "pixel_values")
    if name == "input_ids" and generates:
        made["attention_mask"] = torch.ones_like(made[name])
    return made | decoder_start(model, generates=generates)


def main_input(model: Any) -> str:
    """The argument that the model is about."""
    return str(getattr(model, "main_input_name", "input_ids"))


def takes(model: Any, name: str) -> bool:
    """Whether the model's forward has an argument of this name."""
    return name in inspect.signature(model.forward).parameters


def decoder_start(model: Any, *, generates: bool) -> dict[str, torch.Tensor]:
    """The first tokens of a decoder that is called beside an encoder; generate() makes its own."""
    config = model.config
    if generates or not getattr(config, "is_encoder_decoder", False):
        return {}
    if not takes(model, "decoder_input_ids"):
        return {}
    tokens = _tokens(config, DECODER_TOKENS)
    start = getattr(config, "decoder_start_token_id", None)
    if isinstance(start, int):
        tokens[0, 0] = start
    return {"decoder_input_ids": tokens}


def picture_shape(model: Any) -> tuple[int, int, int] | None:
    """(channels, height, width) as the configuration has them, None where it names no size."""
    config = _vision(model.config)
    size = getattr(config, "image_size", None)
    if isinstance(size, dict):
        size = (size.get("height"), size.get("width"))
    if isinstance(size, int):
        size = (size, size)
    if not isinstance(size, tuple | list) or not all(isinstance(n, int) for n in size):
        return None
    return _channels(config), int(size[0]), int(size[-1])


def has_channels(model: Any) -> bool:
    """Whether a sound has an axis of channels, as codecs want it."""
    return getattr(model.config, "audio_channels", None) is not None or takes(model, "n_quantizers")


def _main(model: Any, name: str) -> torch.Tensor:
    config = model.config
    if name == "input_ids":
        return _tokens(config, TOKENS)
    if name in ("pixel_values", "pixel_values_videos"):
        return _pixels(model, name)
    if name == "input_values":
        return _waves(model)
    if name == "input_features" and (shape := _feature_shape(config)):
        return _normal(shape, dtype_of(model))
    raise InputsUnusable(
        entry=f"for {type(model).__name__}",
        why=f"none were given, and its configuration does not say what its {name} are",
        step=STEP,
    )


def _tokens(config: Any, count: int) -> torch.Tensor:
    text = config.get_text_config()
    vocabulary = int(getattr(text, "vocab_size", None) or 0)
    if not vocabulary:
        raise InputsUnusable(
            entry=f"for {type(config).__name__}",
            why="none were given, and its configuration names no vocab_size",
            step=STEP,
        )
    limit = getattr(text, "max_position_embeddings", None)
    count = min(count, limit - 2) if isinstance(limit, int) and limit > 2 else count
    special = _special(config.to_dict())
    plain = [token for token in range(min(vocabulary, 50_000)) if token not in special]
    chosen = torch.randint(0, len(plain), (1, count), generator=_generator())
    return torch.tensor(plain)[chosen]


def _special(values: dict[str, Any]) -> set[int]:
    """The tokens that stand for a picture, a sound or an end, anywhere in a configuration."""
    found: set[int] = set()
    for name, value in values.items():
        if isinstance(value, dict):
            found |= _special(value)
        elif str(name).endswith(("_token_id", "_token_index")):
            found |= set(_whole_numbers(value))
    return found


def _whole_numbers(value: Any) -> Iterable[int]:
    values = value if isinstance(value, list | tuple) else [value]
    return (number for number in values if isinstance(number, int))


def _pairs(model: Any) -> bool:
    """Whether text and picture are two inputs, as in CLIP, and no picture stands in the text."""
    names = ("image_token_id", "image_token_index")
    return not any(getattr(model.config, name, None) is not None for name in names)


def _pixels(model: Any, name: str) -> torch.Tensor:
    config = _vision(model.config)
    shape = picture_shape(model) or (_channels(config), PIXELS, PIXELS)
    frames = getattr(config, "num_frames", None) or getattr(config, "frames_per_clip", None)
    if name == "pixel_values_videos" and not isinstance(frames, int):
        frames = 8
    lead = (1, frames) if isinstance(frames, int) else (1,)
    return _normal((*lead, *shape), dtype_of(model))


def _waves(model: Any) -> torch.Tensor:
    config = model.config
    bins, length = (getattr(config, name, None) for name in ("num_mel_bins", "max_length"))
    if isinstance(bins, int) and isinstance(length, int):  # a spectrogram, as AST takes it
        return _normal((1, length, bins), dtype_of(model))
    channels = (int(getattr(config, "audio_channels", None) or 1),) if has_channels(model) else ()
    return _normal((1, *channels, SAMPLES), dtype_of(model)) * 0.1


def _feature_shape(config: Any) -> tuple[int, ...] | None:
    bins, places = (
        getattr(config, name, None) for name in ("num_mel_bins", "max_source_positions")
    )
    if isinstance(bins, int) and isinstance(places, int):  # Whisper halves the frames once
        return (1, bins, 2 * places)
    for name in ("feature_projection_input_dim", "input_feat_per_channel", "num_mel_bins"):
        if isinstance(size := getattr(config, name, None), int):
            return (1, FRAMES, size)
    return None


def _vision(config: Any) -> Any:
    return getattr(config, "vision_config", None) or config


def _channels(config: Any) -> int:
    return int(getattr(config, "num_channels", None) or getattr(config, "in_channels", None) or 3)


def _normal(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(shape, generator=_generator()).to(dtype)


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(SEED)
