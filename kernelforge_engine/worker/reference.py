"""What an operator should return: eager's answer, and the fp64 reference both are held against."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from kernelforge_engine.calls import Argument, Call, Json
from kernelforge_engine.worker.invocation import invoke
from kernelforge_engine.worker.tensors import copied
from kernelforge_engine.worker.terms import reduction_length

__all__ = ["Expectation", "expect", "reduction_length", "widened"]

# fmt: off
BILINEAR = frozenset(
    f"aten::{name}" for name in (
        "linear", "matmul", "mm", "bmm", "addmm", "baddbmm", "mv", "dot", "einsum", "conv1d",
        "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "convolution", "sum", "mean",
        "cumsum", "avg_pool1d", "avg_pool2d", "avg_pool3d", "adaptive_avg_pool1d",
        "adaptive_avg_pool2d",
    )
)
# fmt: on

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """Per output: eager `e`, fp64 reference `r`, and `s`, the reference on absolute values for
    bilinear operators (else |r|); `how` says what the reference is."""

    eager: tuple[torch.Tensor, ...]
    reference: tuple[torch.Tensor, ...]
    scale: tuple[torch.Tensor, ...]
    how: str


def expect(call: Call, inputs: Sequence[torch.Tensor]) -> Expectation:
    """Eager's answer and the reference for one draw; the inputs stay as they are."""
    eager = tuple(t.clone() for t in invoke(call, [copied(t) for t in inputs]))
    reference, how = _reference(call, inputs, eager)
    if call.operator in BILINEAR:
        scale, _ = _reference(call, [t.abs() if _real(t) else t for t in inputs], eager)
    else:
        scale = tuple(r.abs() if _real(r) else r for r in reference)
    return Expectation(eager=eager, reference=reference, scale=scale, how=how)


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
