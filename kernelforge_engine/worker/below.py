"""The level at which operators are recorded, judged and timed."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def below_autograd() -> Iterator[None]:
    """Where composite operators (linear, conv2d, softmax) are still whole."""
    guard = torch._C._AutoDispatchBelowAutograd()
    try:
        yield
    finally:
        del guard


@contextmanager
def views_tracked() -> Iterator[None]:
    """Where composite operators find the views they make to be views, as outside of a mode.

    `linear` asks whether its transposed weight requires a gradient and computes another way, which
    may take a multiple of the time. What is made here must not be returned to the mode's caller.
    """
    with torch._C._SetExcludeDispatchKeyGuard(torch._C.DispatchKey.ADInplaceOrView, False):
        yield
