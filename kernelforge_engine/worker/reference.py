"""What an operator should return: eager's answer, and the fp64 reference both are held against."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch

from kernelforge_engine.calls import Argument, Call, Json
from kernelforge_engine.worker.conditioning import condition
from kernelforge_engine.worker.invocation import invoke
from kernelforge_engine.worker.selection import Selection, selection_of
from kernelforge_engine.worker.tensors import copied
from kernelforge_engine.worker.terms import reduction_length

__all__ = ["Expectation", "expect", "reduction_length", "widened"]

# fmt: off
BILINEAR = frozenset(
    f"aten::{name}" for name in (
        "linear", "matmul", "mm", "bmm", "addmm", "baddbmm", "addbmm", "addmv", "mv", "dot",
        "einsum", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
        "conv_transpose3d", "convolution", "sum", "mean", "cumsum", "avg_pool1d", "avg_pool2d",
        "avg_pool3d", "adaptive_avg_pool1d", "adaptive_avg_pool2d",
    )
)
# fmt: on

# Data movement: the sign of a zero arrives too.
# fmt: off
MOVES = frozenset(
    f"aten::{name}" for name in (
        "clone", "contiguous", "copy_", "roll", "flip", "cat", "stack", "embedding", "where",
        "gather", "index", "index_select", "take", "take_along_dim", "masked_fill", "repeat",
        "tile", "repeat_interleave", "pad", "constant_pad_nd", "pixel_shuffle", "pixel_unshuffle",
    )
)
# fmt: on

log = logging.getLogger(__name__)


CONDITION = 2.0  # one long sum that is off by more than usual moves a whole row


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """Per output: eager `e`, fp64 reference `r`, and the scale `s`, the size that errors are
    measured by; `how` says what the reference is.

    `s` is the reference on absolute values for bilinear operators, else |r|; `wider`, which costs
    several more runs of the reference, makes it twice what moving the inputs by a relative amount
    moves the output by, where that is larger.
    `selection` says how places are compared where the operator returns places, and `moves` that
    values only move, the signs of zeros included.
    """

    eager: tuple[torch.Tensor, ...]
    reference: tuple[torch.Tensor, ...]
    scale: tuple[torch.Tensor, ...]
    how: str
    selection: Selection | None = None
    moves: bool = False
    wider: Callable[[], tuple[torch.Tensor, ...]] | None = None


def expect(call: Call, inputs: Sequence[torch.Tensor]) -> Expectation:
    """Eager's answer and the reference for one draw; the inputs stay as they are."""
    eager = tuple(t.clone() for t in invoke(call, [copied(t) for t in inputs]))
    reference, how = _reference(call, inputs, eager)
    bilinear = call.operator in BILINEAR
    narrow = bilinear or how != "float64" or not any(map(_real, reference))
    return Expectation(
        eager=eager,
        reference=reference,
        scale=_products(call, inputs, eager) if bilinear else _sizes(reference),
        how=how,
        selection=selection_of(call, inputs),
        moves=call.operator in MOVES,
        wider=None
        if narrow or _copies(eager, reference)
        else partial(_moved, call, inputs, reference),
    )


def _products(
    call: Call, inputs: Sequence[torch.Tensor], eager: Sequence[torch.Tensor]
) -> tuple[torch.Tensor, ...]:
    """The sum of what a bilinear operator adds up, without the signs that let it cancel."""
    return _reference(call, [t.abs() if _real(t) else t for t in inputs], eager)[0]


def _sizes(reference: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    return tuple(r.abs() if _real(r) else r for r in reference)


def _moved(
    call: Call, inputs: Sequence[torch.Tensor], reference: Sequence[torch.Tensor]
) -> tuple[torch.Tensor, ...]:
    wide = widened(call, torch.float64)
    moved = condition(
        lambda made: invoke(wide, [copied(t) for t in made]),
        [t.double() if _real(t) else t for t in inputs],
        reference,
        sums=reduction_length(call) > 1,
    )
    pairs = zip(_sizes(reference), moved, strict=True)
    return tuple(torch.maximum(r, CONDITION * m) if _real(r) else r for r, m in pairs)


def _copies(eager: Sequence[torch.Tensor], reference: Sequence[torch.Tensor]) -> bool:
    """Whether eager has no error here, so that nothing is measured by a scale."""
    return all(
        torch.equal(e.double().nan_to_num(), r.double().nan_to_num())
        for e, r in zip(eager, reference, strict=True)
    )


def _real(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point()


def _reference(
    call: Call, inputs: Sequence[torch.Tensor], eager: Sequence[torch.Tensor]
) -> tuple[tuple[torch.Tensor, ...], str]:
    for dtype in (torch.float64, torch.float32):
        wide = [copied(t).to(dtype) if _real(t) else copied(t) for t in inputs]
        try:
            found = invoke(widened(call, dtype), wide)
        except (RuntimeError, NotImplementedError, TypeError) as error:
            log.info("%s has no %s reference: %s", call.name, dtype, error)
            continue
        if [t.shape for t in found] == [t.shape for t in eager]:
            name = str(dtype).removeprefix("torch.")
            return tuple(t.double() if _real(t) else t.clone() for t in found), name
    return tuple(t.double() if _real(t) else t for t in eager), "eager"


def widened(call: Call, dtype: torch.dtype) -> Call:
    """The call with every floating dtype argument, in a region's steps too, made a wide one."""
    name = str(dtype).removeprefix("torch.")

    def value(given: Json) -> Json:
        if isinstance(given, dict) and str(given.get("dtype", "")).startswith(("float", "bfloat")):
            return {"dtype": name}
        return given

    def wide(arguments: tuple[Argument, ...]) -> tuple[Argument, ...]:
        return tuple(replace(a, value=value(a.value)) for a in arguments)

    region = call.region
    if region is not None:
        steps = tuple(replace(step, arguments=wide(step.arguments)) for step in region.steps)
        region = replace(region, steps=steps)
    return replace(call, arguments=wide(call.arguments), region=region)
