"""The shim's self-test: one call of a private operator must hit, and a different one must not.

A binary that does not fit the running torch can load and silently serve nothing; this finds it out
before any user's operator is touched. The operator has an argument of each kind a guard knows.
"""

from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from kernelforge_engine.dispatch.guard import describe
from kernelforge_engine.plans import ResolvedPlan

if TYPE_CHECKING:
    from kernelforge_engine.dispatch.shim import Shim

SCHEMA = (
    "probe(Tensor x, Tensor? none, Tensor[] list, int n, float f, bool b, str s, int[] sizes, "
    "Scalar alpha=1, ScalarType? dtype=None) -> Tensor"
)


class NoHit(RuntimeError):
    """The shim did not answer its self-test as it must; the text says how."""

    def __init__(self, *, hits: int) -> None:
        super().__init__(f"the self-test hit {hits} times instead of once")


def probe(shim: "Shim") -> None:
    """Install, hit, miss and remove a variant of a private operator.

    Raises:
        NoHit, NotInstalled
    """
    op = _operator()[1]
    arguments = _arguments(4)
    call = describe(op, arguments, {}, op(*arguments))
    handle = shim.add(call, ResolvedPlan(buffers=(), launches=()))
    try:
        served = op(*arguments)
        refused = op(*_arguments(5))
        hits = shim.hits(handle)
    finally:
        shim.remove(handle)
    if hits != 1 or served.stride() != call.outputs[0].tensor.stride or refused.shape != (5, 4):
        raise NoHit(hits=hits)


def _arguments(rows: int) -> list[Any]:
    x = torch.zeros(rows, 4, device="cpu")
    return [x, None, [x, x], 7, 0.5, True, "self-test", [1, 2], 2, torch.float32]


@cache
def _operator() -> tuple[Any, OpOverload]:
    module: Any = torch.library
    library = module.Library("kernelforge", "FRAGMENT")
    library.define(SCHEMA)
    library.impl("probe", _eager, "CPU")
    return library, torch.ops.kernelforge.probe.default


def _eager(x: Tensor, *_: object, **__: object) -> Tensor:
    return x.clone()
