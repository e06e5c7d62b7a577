"""How many terms an output element sums, which decides how far honest results may differ."""

from collections.abc import Callable
from math import prod

from kernelforge_engine.calls import Call, Json


def reduction_length(call: Call) -> int:
    """K: how many terms an output element sums, from the operator's own arguments; of a region,
    what was found over its steps."""
    if call.region is not None:
        return call.region.terms
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
