"""One call of an operator or of a region as plain data: its tensors, its arguments, its identity.

Sizes are in elements unless a name says bytes.
"""

from dataclasses import dataclass
from math import prod
from typing import Literal

from pydantic import JsonValue

from kernelforge_engine import codec

Json = JsonValue
Backend = Literal["cpu", "cuda"]

ITEM_BYTES = {
    "bool": 1, "uint8": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8,
    "uint16": 2, "uint32": 4, "uint64": 8,
    "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8,
    "float8_e4m3fn": 1, "float8_e5m2": 1, "complex64": 8, "complex128": 16,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class TensorSpec:
    """The metadata of one dense tensor; `aligned`: its data pointer is a multiple of 16 bytes."""

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    device: str
    aligned: bool = True

    @property
    def numel(self) -> int:
        return prod(self.shape)

    @property
    def extent(self) -> int:
        """Elements from the first to the last one addressed, gaps between strides included."""
        if 0 in self.shape:
            return 0
        return 1 + sum((n - 1) * s for n, s in zip(self.shape, self.stride, strict=True))

    @property
    def extent_bytes(self) -> int:
        return self.extent * ITEM_BYTES[self.dtype]

    @property
    def data_bytes(self) -> int:
        """Bytes that must be moved at least once: an expanded dimension is read once."""
        unique = prod(n for n, s in zip(self.shape, self.stride, strict=True) if s)
        return unique * ITEM_BYTES[self.dtype]


@dataclass(frozen=True, kw_only=True)
class OutputSpec:
    """One returned tensor; `alias` is the index of the input it is written into, or None."""

    tensor: TensorSpec
    alias: int | None = None


@dataclass(frozen=True, kw_only=True)
class Argument:
    """One schema argument: plain JSON, with tensors as {"tensor": index into the inputs}, and
    {"dtype": name}, {"memory_format": name}, {"layout": name}, {"float": "inf"} for the rest. In a
    region a tensor that is given once more is the text "same as in0"."""

    name: str
    value: Json


@dataclass(frozen=True, kw_only=True)
class Step:
    """One operator inside a region. Tensors are {"tensor": n}, where n counts the region's inputs
    first and then every tensor that earlier steps returned, in order (lists flattened, None and
    what an in-place operator returns included); a device argument is {"device": "cuda"}."""

    operator: str
    overload: str
    arguments: tuple[Argument, ...]
    results: int


@dataclass(frozen=True, kw_only=True)
class Region:
    """What a region does, as the operators it ran: its reference, without the model's own code.

    Attributes:
        kind: the forward of a module class, or a function of the model's own code.
        owner: its qualified name, as package.module.Class or package.module.function.
        source: the text of that forward or function, empty where it cannot be read.
        steps: its operators in the order they ran.
        returns: the tensors it returns, numbered as in Step; -1 where it returns None.
        terms: how many terms an output element sums at most, over all steps.
        form: whether it returns a tensor, or a tuple or list of them.
    """

    kind: Literal["module", "function"]
    owner: str
    source: str
    steps: tuple[Step, ...]
    returns: tuple[int, ...]
    terms: int = 1
    form: Literal["tensor", "tuple", "list"] = "tensor"

    @property
    def digest(self) -> str:
        """What names its program: the value of the argument `program` of its call."""
        steps = [codec.dump(step) for step in self.steps]
        return codec.sha256(codec.dumps([steps, list(self.returns), self.form]))


@dataclass(frozen=True, kw_only=True)
class Call:
    """One operator with its whole argument list: the identity of a variant.

    `words` are the guard words (unsigned 64-bit) that the dispatch shim computes from a live call.
    The operator of a region is named region::Name; its arguments are those of the forward by their
    names, then the module's plain attributes, then its parameters and buffers in registration
    order, then `program`, the digest of its steps.
    """

    operator: str
    overload: str
    words: tuple[int, ...]
    arguments: tuple[Argument, ...]
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[OutputSpec, ...]
    mutated: tuple[int, ...] = ()
    region: Region | None = None

    @property
    def name(self) -> str:
        return self.operator + (f".{self.overload}" if self.overload else "")

    @property
    def backend(self) -> Backend:
        return "cuda" if any(t.device == "cuda" for t in self.inputs) else "cpu"
