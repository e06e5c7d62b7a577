"""The integers of a call that may vary with a size, read in a fixed order and put back."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from kernelforge_engine import codec
from kernelforge_engine.calls import Argument, Call, Json, Region, TensorSpec


def numbers(call: Call) -> tuple[int, ...]:
    """Shapes and strides of the inputs, integer arguments (in lists too), shapes and strides of the
    outputs; of a region also the integer arguments of its steps, and how many terms it sums."""
    found: list[int] = []

    def keep(number: int) -> int:
        found.append(number)
        return number

    _mapped(call, keep)
    return tuple(found)


def resized(call: Call, values: Sequence[int]) -> Call:
    """The call with other numbers, in the order of `numbers`; it has no guard words yet."""
    rest = iter(values)
    made = replace(_mapped(call, lambda _: next(rest)), words=())
    return made if made.region is None else _programmed(made, made.region.digest)


def skeleton(call: Call) -> str:
    """The digest of everything in a call that does not vary with its sizes."""
    bare = replace(_mapped(call, lambda _: 0), words=())
    if bare.region is not None:
        bare = _programmed(replace(bare, region=replace(bare.region, source="")), "")
    return codec.sha256(codec.dumps(bare))


def places(call: Call) -> tuple[tuple[int, ...], ...]:
    """Where the sizes of each tensor stand among the numbers: the inputs', then the outputs'."""
    marks = iter(range(len(numbers(call))))
    marked = _mapped(call, lambda _: next(marks))
    tensors = (*marked.inputs, *(output.tensor for output in marked.outputs))
    return tuple(tensor.shape for tensor in tensors)


def argument_places(call: Call) -> tuple[int, ...]:
    """Where the integer arguments of a call, not of its steps, stand among the numbers."""
    first = sum(2 * len(t.shape) for t in call.inputs)
    last = first + sum(len(_integers(a.value)) for a in call.arguments)
    return tuple(range(first, last))


def _integers(value: Json) -> list[int]:
    if isinstance(value, list):
        return [found for item in value for found in _integers(item)]
    return [value] if isinstance(value, int) and not isinstance(value, bool) else []


def _mapped(call: Call, number: Callable[[int], int]) -> Call:
    """The call with every number replaced; the order of the calls of `number` is the format."""
    return replace(
        call,
        inputs=tuple(_tensor(t, number) for t in call.inputs),
        arguments=tuple(_argument(a, number) for a in call.arguments),
        outputs=tuple(replace(o, tensor=_tensor(o.tensor, number)) for o in call.outputs),
        region=call.region and _region(call.region, number),
    )


def _tensor(spec: TensorSpec, number: Callable[[int], int]) -> TensorSpec:
    shape = tuple(number(n) for n in spec.shape)
    return replace(spec, shape=shape, stride=tuple(number(n) for n in spec.stride))


def _argument(argument: Argument, number: Callable[[int], int]) -> Argument:
    return replace(argument, value=_value(argument.value, number))


def _value(value: Json, number: Callable[[int], int]) -> Json:
    if isinstance(value, list):
        return [_value(item, number) for item in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return number(value)
    return value


def _region(region: Region, number: Callable[[int], int]) -> Region:
    steps = tuple(
        replace(step, arguments=tuple(_argument(a, number) for a in step.arguments))
        for step in region.steps
    )
    return replace(region, steps=steps, terms=number(region.terms))


def _programmed(call: Call, digest: str) -> Call:
    """The call of a region with its last argument, the name of its program, set."""
    program = replace(call.arguments[-1], value=digest)
    return replace(call, arguments=(*call.arguments[:-1], program))
