"""How people and agents name models and inputs, made to mean the same in every process."""

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, TypedDict, Unpack

from kernelforge_engine.errors import BadOption
from kernelforge_engine.exchanges import CaptureRequest, MeasureRequest
from kernelforge_engine.measurements import MODES, Mode

DTYPES = ("bfloat16", "float16", "float32")
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30}
HF = "hf:"
SAVED = (".pt", ".pth", ".ts", ".jit", ".pt2")
DATA = (".safetensors", ".txt", ".png", ".jpg", ".jpeg", ".wav")
DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


class ModelOptions(TypedDict, total=False):
    """How a model is loaded: the fields of a ModelRequest besides the model and its inputs."""

    device: str
    random_weights: bool
    dtype: str | None
    generate_tokens: int


class MeasureOptions(ModelOptions, total=False):
    """The fields of a MeasureRequest besides the model, its inputs and the cast."""

    modes: tuple[Mode, ...]
    attribution: bool
    seconds: float


class CaptureOptions(ModelOptions, total=False):
    """The fields of a CaptureRequest besides the model and its inputs."""

    examples_per_variant: int
    max_bytes: int | None


def capture_request(
    model: str, inputs: Sequence[str] = (), **options: Unpack[CaptureOptions]
) -> CaptureRequest:
    """What to capture, named as a person or an agent names it.

    Args:
        model: FILE.py[:make_model], package.module[:factory], hf:org/name, hf:FOLDER or
            hf:config.json (with #part for a part of a pipeline), a TorchScript or a torch.export
            file.
        inputs: one entry for every input set: a function beside the factory, FILE.py:function, a
            .safetensors, .txt, .png, .jpg or .wav file; none for the model's default.
        options: device, random_weights, dtype, generate_tokens, examples_per_variant, max_bytes.

    Raises:
        BadOption: a value is out of its range.
    """
    _check(options)
    if options.get("examples_per_variant", 1) < 1:
        _refuse(
            "examples_per_variant", options["examples_per_variant"], "it is below 1", "1 or more"
        )
    if (size := options.get("max_bytes")) is not None and size < 0:
        _refuse("max_bytes", size, "it is negative", "a number of bytes")
    return CaptureRequest(model=model_name(model), inputs=input_names(inputs), **options)


def measure_request(
    model: str, cast: str | Path, inputs: Sequence[str] = (), **options: Unpack[MeasureOptions]
) -> MeasureRequest:
    """A model to run with and without a cast in some modes; everything else is as in
    capture_request.

    Raises:
        BadOption: a value is out of its range.
    """
    _check(options)
    if not options.get("seconds", 1.0) > 0:
        _refuse("seconds", options["seconds"], "it is not positive", "a number of seconds")
    return MeasureRequest(
        model=model_name(model), cast=absolute(cast), inputs=input_names(inputs), **options
    )


def mode_names(entries: Sequence[str]) -> tuple[Mode, ...]:
    """Modes in the order in which they are measured, each once.

    Raises:
        BadOption: one of them is none.
    """
    named = [entry.strip() for entry in entries]
    for entry in named:
        if entry not in MODES:
            _refuse("modes", entry, "it is no way of running a model", ", ".join(MODES))
    return tuple(mode for mode in MODES if mode in named)


def size_bytes(text: str) -> int:
    """The bytes of a size as people write it: 500000, 200MB, 2GiB.

    Raises:
        BadOption: it is no size.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?) *([kmg]i?)?b?", text.strip().lower())
    if found is None:
        _refuse("max_bytes", text, "it is no size", "a number of bytes, or one with a unit as 2GiB")
    return int(float(found[1]) * UNITS[found[2] or ""])


def absolute(path: str | Path) -> Path:
    """A path that means the same in every process."""
    path = Path(path)
    with suppress(RuntimeError):  # ~ of a user who does not exist is a name like any other
        path = path.expanduser()
    return path.absolute()


def model_name(entry: str) -> str:
    """A model's name in full: paths are absolute and a factory is named; the rest is as it was."""
    if entry.startswith(HF):
        return HF + _hub_name(entry.removeprefix(HF))
    if entry.endswith(SAVED):
        return str(absolute(entry))
    return _function(entry, "make_model")


def input_names(entries: Sequence[str]) -> tuple[str, ...]:
    """The names of input sets in full."""
    return tuple(map(_input_name, entries))


def _input_name(entry: str) -> str:
    if entry.lower().endswith(DATA):
        return str(absolute(entry))
    if ":" in entry or entry.endswith(".py"):
        return _function(entry, "make_inputs")
    return entry


def _function(entry: str, default: str) -> str:
    """PLACE:function, where PLACE is package.module, or else a path in full."""
    place, colon, function = entry.rpartition(":")
    if not (colon and function.isidentifier()):
        place, colon, function = entry, "", default
    module = DOTTED.fullmatch(place) and not place.endswith(".py") and (colon or "." in place)
    return f"{place}:{function}" if module else f"{absolute(place)}:{function}"


def _hub_name(name: str) -> str:
    """org/name as it is, and a folder or a file that is there or looks like one in full."""
    path, hash_, part = name.partition("#")
    looks = path.startswith((".", "/", "~")) or path.endswith(".json")
    return f"{absolute(path)}{hash_}{part}" if looks or _exists(path) else name


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except OSError:  # no file could have such a name
        return False


def _refuse(field: str, value: object, why: str, accepted: str) -> NoReturn:
    raise BadOption(field=field, value=value, why=why, accepted=accepted)


def _check(options: ModelOptions) -> None:
    dtype, tokens = options.get("dtype"), options.get("generate_tokens", 0)
    if dtype is not None and dtype not in DTYPES:
        _refuse("dtype", dtype, "models are not made in it", " or ".join(DTYPES))
    if tokens < 0:
        _refuse(
            "generate_tokens", tokens, "it is negative", "0 for one forward, or a count of tokens"
        )
