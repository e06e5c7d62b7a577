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
