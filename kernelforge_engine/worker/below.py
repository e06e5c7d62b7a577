"""The level at which operators are recorded, judged and timed."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from kernelforge_engine.dispatch.recording import below_autograd

__all__ = ["below_autograd", "views_tracked"]


@contextmanager
def views_tracked() -> Iterator[None]:
    """Where composite operators find the views they make to be views, as outside of a mode.

    `linear` asks whether its transposed weight requires a gradient and computes another way, which
    may take a multiple of the time. What is made here must not be returned to the mode's caller.
    """
    with torch._C._SetExcludeDispatchKeyGuard(torch._C.DispatchKey.ADInplaceOrView, False):
        yield
