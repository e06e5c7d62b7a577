"""How many terms an output element sums, which decides how far honest results may differ."""

from collections.abc import Callable
from math import prod

from kernelforge_engine.calls import Call, Json

ALONG = ("softmax", "log_softmax", "cumsum", "cumprod", "logcumsumexp")
LAST = ("linear", "matmul", "mm", "bmm", "mv", "dot", "cdist", "bilinear", "_grouped_mm")
SECOND = ("addmm", "baddbmm", "addmv")


def reduction_length(call: Call) -> int:
    """K: how many terms an output element sums, from the operator's own arguments; of a region,
    what was found over its steps."""
    if call.region is not None:
        return call.region.terms
    values = {a.name: a.value for a in call.arguments}
    shape = call.inputs[0].shape
    known: dict[str, Callable[[], int]] = {
        "layer_norm": lambda: prod(_ints(values["normalized_shape"])),
        "rms_norm": lambda: prod(_ints(values["normalized_shape"])),
        "group_norm": lambda: prod(shape[1:]) // int(str(values["num_groups"])),
        "instance_norm": lambda: prod(shape[2:]),
        "addbmm": lambda: call.inputs[1].shape[0] * call.inputs[1].shape[-1],
        "einsum": lambda: _contracted(call, str(values["equation"])),
        "scaled_dot_product_attention": lambda: shape[-1] + call.inputs[1].shape[-2],
        **dict.fromkeys(ALONG, lambda: shape[int(str(values["dim"]))]),
        **dict.fromkeys(LAST, lambda: shape[-1]),
        **dict.fromkeys(SECOND, lambda: call.inputs[1].shape[-1]),
    }
    name = call.operator.removeprefix("aten::")
    if name in known and shape:
        return max(1, known[name]())
    if name.startswith("conv"):
        return _of_convolution(call, values)
    return max(1, max(t.numel for t in call.inputs) // max(1, call.outputs[0].tensor.numel))


def _of_convolution(call: Call, values: dict[str, Json]) -> int:
    """A transposed one stores its weight as (in, out / groups, ...)."""
    weight = call.inputs[1].shape
    if "transpose" not in call.operator and values.get("transposed") is not True:
        return max(1, prod(weight[1:]))
    groups = int(str(values.get("groups", 1)))
    return max(1, weight[0] // groups * prod(weight[2:]))


def _contracted(call: Call, equation: str) -> int:
    """The product of the sizes of the labels that an einsum sums over."""
    given, _, kept = equation.replace(" ", "").partition("->")
    operands = given.split(",")
    if "->" not in equation:
        kept = "".join(c for c in given if given.count(c) == 1)
    sizes: dict[str, int] = {}
    for labels, tensor in zip(operands, call.inputs, strict=False):
        before, dots, after = labels.partition("...")
        ends = [*zip(before, tensor.shape, strict=False)]
        if dots:
            ends += zip(reversed(after), reversed(tensor.shape), strict=False)
        for label, size in ends:
            sizes[label] = max(size, sizes.get(label, 1))
    return prod(size for label, size in sizes.items() if label not in kept)


def _ints(value: Json) -> list[int]:
    return [int(str(v)) for v in value] if isinstance(value, list) else [int(str(value))]
