"""What a way in hands over: a model, and how inputs are made for it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import torch

Inputs = tuple[tuple[Any, ...], dict[str, Any]]


class Reader(Protocol):
    """A model's own processors, which make inputs of text, pictures and sound."""

    def text(self, entry: str, text: str) -> dict[str, Any]:
        """The inputs for a text.

        Raises:
            InputsUnusable: the model has no tokenizer.
        """

    def picture(self, entry: str, picture: Any) -> dict[str, Any]:
        """The inputs for a Pillow picture.

        Raises:
            InputsUnusable: the model's processor refuses it.
        """

    def sound(self, entry: str, samples: torch.Tensor, rate: int) -> dict[str, Any]:
        """The inputs for mono samples from -1 to 1.

        Raises:
            InputsUnusable: the model's processor refuses it.
        """


@dataclass(frozen=True, kw_only=True)
class Ready:
    """A model that can be called, in eval mode and on its device.

    Attributes:
        requires: what `imported` takes so that the model's own operators exist, or None.
        module: where a bare name of an input function is looked up, or None.
        default: makes the inputs where none were asked for, and raises where it cannot.
        reader: what reads text, pictures and sound for it, or None.
    """

    model: Callable[..., Any]
    default: Callable[[], Any]
    requires: str | None = None
    module: ModuleType | None = None
    reader: Reader | None = None


def described(error: BaseException) -> str:
    """An exception of the user's code as `Type: first line`."""
    lines = str(error).strip().splitlines()
    name = type(error).__name__
    return f"{name}: {lines[0].rstrip('.')}" if lines else name


def is_file(path: str | Path) -> bool:
    """Whether a file is there; a name that no file could have, or that may not be seen, is none."""
    try:
        return Path(path).is_file()
    except OSError:
        return False


def dtype_of(model: object) -> torch.dtype:
    """The dtype of a model's first floating parameter, float32 where it has none."""
    if isinstance(model, torch.nn.Module):
        for parameter in model.parameters():
            if parameter.is_floating_point():
                return parameter.dtype
    return torch.float32
