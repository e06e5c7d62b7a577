"""What an operator should return: eager's answer, and the fp64 reference both are held against."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

import torch

from kernelforge_engine.calls import Call, Json
from kernelforge_engine.dispatch.guard import arguments_of
from kernelforge_engine.worker.eligibility import tensors_in
from kernelforge_engine.worker.recorder import below_autograd
from kernelforge_engine.worker.tensors import copied

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


def invoke(call: Call, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Run the operator on these tensors; in-place operators write into them."""
    op, args, kwargs = arguments_of(call, list(tensors))
    with torch.no_grad(), below_autograd():
        return tensors_in(op(*args, **kwargs))


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
    """The call with every floating dtype argument replaced by a wide one."""
    name = str(dtype).removeprefix("torch.")

    def value(given: Json) -> Json:
        if isinstance(given, dict) and str(given.get("dtype", "")).startswith(("float", "bfloat")):
            return {"dtype": name}
        return given

    return replace(call, arguments=tuple(replace(a, value=value(a.value)) for a in call.arguments))


def reduction_length(call: Call) -> int:
    """K: how many terms an output element sums, from the operator's own arguments."""
    values = {a.name: a.value for a in call.arguments}
    shape = call.inputs[0].shape
    known: dict[str, Callable[[], int]] = {
        "aten::layer_norm": lambda: prod(_ints(values["normalized_shape"])),
        "aten::rms_norm": lambda: prod(_ints(values["normalized_shape"])),
        "aten::group_norm": lambda: prod(shape[1:]) // int(str(values["num_groups"])),
        "aten::instance_norm": lambda: prod(shape[2:]),
        "aten::softmax": lambda: shape[int(str(values["dim"]))],
        "aten::log_softmax": lambda: shape[int(str(values["dim"]))],
        "aten::cumsum": lambda: shape[int(str(values["dim"]))],
        "aten::linear": lambda: shape[-1],
        "aten::matmul": lambda: shape[-1],
        "aten::mm": lambda: shape[-1],
        "aten::bmm": lambda: shape[-1],
        "aten::addmm": lambda: call.inputs[1].shape[-1],
        "aten::scaled_dot_product_attention": lambda: shape[-1] + call.inputs[1].shape[-2],
    }
    if call.operator in known:
        return max(1, known[call.operator]())
    if call.operator.startswith("aten::conv"):
        return max(1, prod(call.inputs[1].shape[1:]))
    return max(1, max(t.numel for t in call.inputs) // max(1, call.outputs[0].tensor.numel))


def _ints(value: Json) -> list[int]:
    return [int(str(v)) for v in value] if isinstance(value, list) else [int(str(value))]
