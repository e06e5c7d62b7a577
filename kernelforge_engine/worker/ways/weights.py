"""Random weights: a model constructed where it runs, in its dtype, as it initialises itself."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

SEED = 0
SPREAD = 0.02
CHECKED = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def randomly_made(
    construct: Callable[[], torch.nn.Module], device: torch.device, dtype: torch.dtype
) -> torch.nn.Module:
    """What `construct` makes, with every weight finite and the same each time.

    The constructor runs on the device, so that a large model never stands in memory twice and the
    buffers that it computes (as rotary frequencies) are right. What it leaves to a checkpoint is
    drawn from N(0, 0.02).
    """
    torch.manual_seed(SEED)
    with _default(dtype), torch.device(device), _marked(), _Unfilled():
        model = construct()
    for tensor in (*model.parameters(), *model.buffers()):
        _fill(tensor)
    return model.to(device).eval()


class _Unfilled(TorchFunctionMode):
    """Leaves out the draw that torch makes for every linear and convolution when it is constructed:
    the model draws over it, or we do."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.nn.init.kaiming_uniform_:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **(kwargs or {}))


def _fill(tensor: torch.Tensor) -> None:
    if tensor.dtype in CHECKED and not tensor.is_meta and bool(tensor.isnan().any()):
        with torch.no_grad():
            tensor.normal_(0.0, SPREAD)


@contextmanager
def _default(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextmanager
def _marked() -> Iterator[None]:
    """Memory that nobody filled holds NaN, so that it is found."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
