"""Guard words: a call's schema arguments as unsigned 64-bit words, computed from plain data.

`dispatch/native/words.h` computes the same words from the stack of a live call; a call hits a
variant exactly when the two lists are equal. One tensor is a header (tag, dtype code, rank, device
type, alignment bit) and its sizes and strides as they are: torch derives output layouts even from
the stride of a dimension of size one, so nothing is normalised.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence

from kernelforge_engine.calls import Call, Json, TensorSpec

MASK = (1 << 64) - 1
NONE, TENSOR, INT, FLOAT, BOOL, STRING, LIST = range(1, 8)

# The numbers are c10::ScalarType, c10::MemoryFormat, c10::Layout and c10::DeviceType.
DTYPES = {
    "uint8": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float16": 5, "float32": 6,
    "float64": 7, "complex64": 9, "complex128": 10, "bool": 11, "bfloat16": 15, "float8_e5m2": 23,
    "float8_e4m3fn": 24, "uint16": 27, "uint32": 28, "uint64": 29,
}  # fmt: skip
MEMORY_FORMATS = {
    "contiguous_format": 0,
    "preserve_format": 1,
    "channels_last": 2,
    "channels_last_3d": 3,
}
LAYOUTS = {"strided": 0}
DEVICES = {"cpu": 0, "cuda": 1}


class NotAnArgument(ValueError):
    """A value that records.Argument does not allow."""


NAMED = {"dtype": DTYPES, "memory_format": MEMORY_FORMATS, "layout": LAYOUTS}


def call_words(call: Call) -> tuple[int, ...]:
    """The guard words that `call.arguments` and `call.inputs` stand for.

    Raises:
        NotAnArgument: an argument has a form that records.Argument does not allow, or the arguments
            do not name each input once, in order.
    """
    values = [argument.value for argument in call.arguments]
    named = [index for value in values for index in tensor_indexes(value)]
    if named != list(range(len(call.inputs))):
        raise NotAnArgument(named)
    return words_of(values, call.inputs)


def tensor_indexes(value: Json) -> list[int]:
    """The inputs that an argument value names, in order."""
    if isinstance(value, list):
        return [index for item in value for index in tensor_indexes(item)]
    index = value.get("tensor") if isinstance(value, dict) else None
    return [index] if isinstance(index, int) else []


def words_of(values: Iterable[Json], inputs: Sequence[TensorSpec]) -> tuple[int, ...]:
    """The guard words of argument values in the form of records.Argument.

    Raises:
        NotAnArgument: a value has a form that records.Argument does not allow.
    """
    return tuple(word for value in values for word in _value(value, inputs))


def _value(value: Json, inputs: Sequence[TensorSpec]) -> Iterator[int]:
    match value:
        case list():
            yield LIST | len(value) << 8
            for item in value:
                yield from _value(item, inputs)
        case dict():
            yield from _tagged(value, inputs)
        case str():
            yield from _text(value.encode())
        case None:
            yield NONE
        case _:
            yield from _number(value)


def _number(value: bool | int | float) -> tuple[int, int]:
    if isinstance(value, bool):
        return BOOL, int(value)
    return (INT, value & MASK) if isinstance(value, int) else (FLOAT, float_bits(value))


def _tagged(value: dict[str, Json], inputs: Sequence[TensorSpec]) -> Iterator[int]:
    match list(value.items()):
        case [("tensor", int() as index)] if 0 <= index < len(inputs):
            yield from _tensor(inputs[index])
        case [("float", str() as text)] if text in ("inf", "-inf", "nan"):
            yield from (FLOAT, float_bits(float(text)))
        case [(str() as kind, str() as name)] if name in NAMED.get(kind, {}):
            yield from (INT, NAMED[kind][name])
        case _:
            raise NotAnArgument(value)


def _tensor(spec: TensorSpec) -> Iterator[int]:
    if spec.dtype not in DTYPES or spec.device not in DEVICES:
        raise NotAnArgument(spec)
    yield (
        TENSOR
        | DTYPES[spec.dtype] << 8
        | len(spec.shape) << 16
        | DEVICES[spec.device] << 24
        | int(spec.aligned) << 40
    )
    for size, stride in zip(spec.shape, spec.stride, strict=True):
        yield from (size & MASK, stride & MASK)


def _text(data: bytes) -> Iterator[int]:
    yield STRING | len(data) << 8
    for start in range(0, len(data), 8):
        yield int.from_bytes(data[start : start + 8], "little")


def float_bits(value: float) -> int:
    """The bits of a double, as the word a guard compares."""
    bits: int = struct.unpack("<Q", struct.pack("<d", value))[0]
    return bits
