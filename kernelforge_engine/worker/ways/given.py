"""Inputs that a person or an agent names: a function, a safetensors, text, image or sound file."""

import wave
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from kernelforge_engine.errors import FileMissing, InputsUnusable, PackageMissing
from kernelforge_engine.worker.ways.python import made, module_at
from kernelforge_engine.worker.ways.ready import Inputs, Ready, described, dtype_of, is_file

PICTURES = (".png", ".jpg", ".jpeg")
STEP = "give FILE.safetensors with a tensor for every argument, or FILE.py:function"


def given(entry: str, ready: Ready, device: torch.device) -> Inputs:
    """One input set, as positional and keyword arguments of the model.

    Raises:
        UsageError: it is not there, or it cannot be used.
    """
    kind = Path(entry).suffix.lower()
    if kind == ".safetensors":
        return arguments(_tensors(_file(entry)))
    if kind == ".txt":
        return arguments(_text(_file(entry), ready))
    if kind in PICTURES:
        return arguments(_picture(_file(entry), ready))
    if kind == ".wav":
        return arguments(_sound(_file(entry), ready))
    return arguments(_called(entry, ready, device))


def arguments(inputs: Any) -> Inputs:
    """What a factory returned, as arguments; names 0, 1, ... of a dict are positions."""
    if isinstance(inputs, dict) or hasattr(inputs, "keys"):
        named = dict(inputs)
        places = sorted((k for k in named if str(k).isdecimal()), key=lambda k: int(str(k)))
        if [int(str(k)) for k in places] == list(range(len(places))):
            return tuple(named.pop(k) for k in places), named
        return (), named
    if isinstance(inputs, tuple | list):
        return tuple(inputs), {}
    return (inputs,), {}


def _called(entry: str, ready: Ready, device: torch.device) -> Any:
    place, _, name = entry.rpartition(":")
    if place:
        return made(module_at(place), place, name, device)
    if ready.module is None:
        why = "it names a function, and this model has no Python file beside it"
        raise InputsUnusable(entry=entry, why=why, step=STEP)
    return made(ready.module, str(ready.module.__file__), name, device)


def _file(entry: str) -> str:
    if not is_file(entry):
        raise FileMissing(path=entry)
    return entry


def _tensors(entry: str) -> dict[str, torch.Tensor]:
    try:
        tensors: dict[str, torch.Tensor] = load_file(entry)
    except (SafetensorError, OSError, ValueError) as error:
        step = "write it with safetensors.torch.save_file"
        raise InputsUnusable(entry=entry, why=described(error), step=step) from error
    return tensors


def _text(entry: str, ready: Ready) -> Any:
    if ready.reader is None:
        why = "a text needs a tokenizer, and this model comes with none"
        raise InputsUnusable(entry=entry, why=why, step=STEP)
    try:
        text = Path(entry).read_text(encoding="utf-8").strip()
    except UnicodeDecodeError as error:
        raise InputsUnusable(entry=entry, why="it is no UTF-8", step="save it as UTF-8") from error
    if not text:
        raise InputsUnusable(entry=entry, why="it is empty", step="write the text into it")
    return ready.reader.text(entry, text)


def _picture(entry: str, ready: Ready) -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise PackageMissing(what=f"Reading {entry}", package="pillow") from error
    try:
        with Image.open(entry) as opened:
            picture = opened.convert("RGB")
    except (OSError, ValueError) as error:
        step = "save it as PNG or JPEG"
        raise InputsUnusable(entry=entry, why=described(error), step=step) from error
    if ready.reader is not None:
        return ready.reader.picture(entry, picture)
    return plain_picture(picture, dtype_of(ready.model))


def plain_picture(picture: Any, dtype: torch.dtype) -> torch.Tensor:
    """A Pillow picture as a tensor (1, channels, height, width) from 0 to 1."""
    pixels = torch.from_numpy(np.asarray(picture).copy())
    pixels = pixels.reshape(picture.height, picture.width, -1).permute(2, 0, 1)
    return (pixels[None].contiguous() / 255).to(dtype)


def _sound(entry: str, ready: Ready) -> Any:
    try:
        with wave.open(entry, "rb") as file:
            width, channels, rate = file.getsampwidth(), file.getnchannels(), file.getframerate()
            frames = file.readframes(file.getnframes())
    except (OSError, EOFError, wave.Error) as error:
        step = "save it as uncompressed WAV"
        raise InputsUnusable(entry=entry, why=described(error), step=step) from error
    samples = torch.from_numpy(_samples(frames, width).reshape(-1, channels).mean(1))
    if not len(samples):
        raise InputsUnusable(entry=entry, why="it holds no sound", step="record some")
    if ready.reader is not None:
        return ready.reader.sound(entry, samples, rate)
    return samples[None].to(dtype_of(ready.model))


def _samples(frames: bytes, width: int) -> npt.NDArray[np.float32]:
    """Little-endian samples of 1 (unsigned) to 4 bytes, from -1 to 1."""
    if width == 1:
        return np.frombuffer(frames, np.uint8).astype(np.float32) / np.float32(128) - np.float32(1)
    raw = np.frombuffer(frames, np.uint8).reshape(-1, width)
    wide = np.zeros((len(raw), 4), np.uint8)
    wide[:, 4 - width :] = raw
    whole = wide.view("<i4").reshape(-1)
    return whole.astype(np.float32) / np.float32(2.0**31)
