"""One line about a call, for people and agents."""

from kernelforge_engine.calls import Argument, Call, Json, TensorSpec

SHORT = {
    "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16",
    "int64": "i64", "int32": "i32",
}  # fmt: skip
MOST_TENSORS = 4
PROGRAM = "program"  # the argument of a region that is the digest of its steps


def tensor_text(spec: TensorSpec) -> str:
    """A tensor as f32[2, 3]; strides are shown when it is not contiguous."""
    text = f"{SHORT.get(spec.dtype, spec.dtype)}{list(spec.shape)}"
    return text if is_contiguous(spec) else f"{text} strides {list(spec.stride)}"


def is_contiguous(spec: TensorSpec) -> bool:
    """Whether the elements lie in row-major order without gaps; size-1 dimensions do not matter."""
    expected = 1
    for size, stride in reversed(list(zip(spec.shape, spec.stride, strict=True))):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def variant_text(call: Call) -> str:
    """The tensors of a call and the arguments that are not tensors."""
    tensors = [tensor_text(t) for t in call.inputs[:MOST_TENSORS]]
    if len(call.inputs) > MOST_TENSORS:
        tensors.append(f"+{len(call.inputs) - MOST_TENSORS}")
    plain = [f"{a.name}={_value(a)}" for a in plain_arguments(call)]
    return ", ".join(tensors + [text for text in plain if not text.endswith("=None")])


def plain_arguments(call: Call) -> list[Argument]:
    """The arguments that hold no tensor, without the digest of a region's steps."""
    digest = PROGRAM if call.region else None
    return [a for a in call.arguments if a.name != digest and not tensors_of(a.value)]


def tensors_of(value: Json) -> list[int]:
    """The inputs that an argument's value holds, in order."""
    if isinstance(value, list):
        return [index for entry in value for index in tensors_of(entry)]
    if isinstance(value, dict) and isinstance(index := value.get("tensor"), int):
        return [index]
    return []


def owners(call: Call) -> dict[int, str]:
    """The argument that every input belongs to."""
    return {index: a.name for a in call.arguments for index in tensors_of(a.value)}


def _value(argument: Argument) -> str:
    value = argument.value
    if isinstance(value, dict):
        return str(next(iter(value.values())))
    return str(value)
