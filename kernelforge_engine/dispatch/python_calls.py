"""The guard of the shim in Python: the words of a live call, and the variants they are of.

It decides as `native/words.h`, `native/plan.h` and the table of `native/hook.h` do, word for word;
tests/engine/test_python_dispatch.py holds the two against each other.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey, DispatchKeySet

from kernelforge_engine.cast.words import DEVICES, DTYPES, LAYOUTS, MEMORY_FORMATS, float_bits
from kernelforge_engine.dispatch.encode import PLAIN
from kernelforge_engine.plans import ResolvedLaunch

NONE, TENSOR, INT, FLOAT, BOOL, STRING, LIST, AGAIN = range(1, 9)
MASK = 0xFFFF_FFFF_FFFF_FFFF
MOST_WORDS, MOST_TENSORS = 512, 128
UNKNOWN = 255  # the code of what no cast knows, so that no variant has it
CODES: dict[Any, int] = {
    getattr(torch, name): code
    for names in (DTYPES, MEMORY_FORMATS, LAYOUTS)
    for name, code in names.items()
    if hasattr(torch, name)
}
NAMED = (torch.dtype, torch.memory_format, torch.layout)


class Words:
    """The guard words of one call, and the tensors that take part in it."""

    def __init__(self) -> None:
        self.words: list[int] = []
        self.tensors: list[Tensor] = []
        self.head = 0  # how many words there are up to the end of the first tensor
        self.placed: torch.device | None = None  # where all tensors lie that are not in host memory

    def add(self, value: Any) -> bool:
        """Add one schema argument; False when no guard can cover it."""
        if isinstance(value, Tensor):
            return self._add_tensor(value)
        if isinstance(value, list | tuple):
            self.words.append(LIST | len(value) << 8)
            return all(map(self.add, value)) and len(self.words) <= MOST_WORDS
        if isinstance(value, str):
            self._add_text(value.encode())
        elif value is None:
            self.words.append(NONE)
        elif (plain := _plain(value)) is not None:
            self.words += plain
        else:
            return False
        return len(self.words) <= MOST_WORDS

    def add_of_region(self, tensor: Tensor) -> bool:
        """Add a tensor that a region was given or owns; one that comes once more is said by its
        number."""
        for i, known in enumerate(self.tensors):
            if _same(known, tensor):
                self.words += (AGAIN, i)
                return len(self.words) <= MOST_WORDS
        return self._add_tensor(tensor)

    def _add_text(self, data: bytes) -> None:
        self.words.append(STRING | len(data) << 8)
        for start in range(0, len(data), 8):
            self.words.append(int.from_bytes(data[start : start + 8], "little"))

    def _add_tensor(self, tensor: Tensor) -> bool:
        device = tensor.device
        if len(self.tensors) == MOST_TENSORS:
            return False
        if device.type != "cpu":
            self.placed = self.placed or device
            if self.placed != device:
                return False
        shape = tensor.shape
        self.words.append(
            TENSOR
            | CODES.get(tensor.dtype, UNKNOWN) << 8
            | len(shape) << 16
            | DEVICES.get(device.type, UNKNOWN) << 24
            | (tensor.data_ptr() % 16 == 0) << 40
        )
        self.words += itertools.chain.from_iterable(zip(shape, tensor.stride(), strict=True))
        self.head = self.head or len(self.words)
        self.tensors.append(tensor)
        return len(self.words) <= MOST_WORDS


def _plain(value: Any) -> tuple[int, int] | None:
    """The words of a number or of what torch holds as one."""
    kind = type(value)
    if kind is int:
        return INT, value & MASK
    if kind is bool:
        return BOOL, int(value)
    if kind is float:
        return FLOAT, float_bits(value)
    return (INT, CODES.get(value, UNKNOWN)) if isinstance(value, NAMED) else None


def _same(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are the same memory in the same layout; empty ones, the same object."""
    return a is b or (
        a.data_ptr() == b.data_ptr()
        and a.numel() > 0
        and (a.dtype, a.shape, a.stride()) == (b.dtype, b.shape, b.stride())
    )


def plain_keys(keys: DispatchKeySet) -> bool:
    """Whether a call is on dense tensors, without modes, subclasses, transforms or lazy bits."""
    return not keys.raw_repr() & ~PLAIN


def keys_of(tensors: Iterable[Tensor]) -> DispatchKeySet:
    """The keys that the dispatcher would give a call on these tensors."""
    keys = torch._C._dispatch_tls_local_include_set()
    for tensor in tensors:
        keys = keys | torch._C._dispatch_keys(tensor)
    return (keys - torch._C._dispatch_tls_local_exclude_set()).remove(DispatchKey.BackendSelect)


def records(tensors: Sequence[Tensor]) -> bool:
    """Whether a derivative of a call is wanted, which only the operators inside record."""
    if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
        return True
    level = torch.autograd.forward_ad._current_level
    return level >= 0 and any(
        torch.autograd.forward_ad.unpack_dual(t).tangent is not None for t in tensors
    )


@dataclass(kw_only=True)
class Output:
    """A returned tensor: the tensor argument it is, or -1 and how to allocate it."""

    alias: int
    dtype: torch.dtype
    sizes: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(kw_only=True)
class Buffer:
    """One memory block of a call; `index` counts within its role."""

    role: int
    index: int
    bytes: int
    zero: bool


@dataclass(kw_only=True)
class Launch:
    """One launch; an argument is a buffer, or -1 and the bits of a number. `functions` has its code
    by device, for the host under -1."""

    plan: ResolvedLaunch
    arguments: list[tuple[int, int]] = field(default_factory=list)
    functions: dict[int, Any] = field(default_factory=dict)


@dataclass(kw_only=True, eq=False)
class Variant:
    """What one key does on a hit, and what was counted of it."""

    key: tuple[int, ...]
    inputs: list[tuple[int, bool]] = field(default_factory=list)  # bytes, and whether it is written
    outputs: list[Output] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    list_return: int = -1
    hits: int = 0
    compared: int = 0
    worst: float = 0.0
    live: bool = True
    form: int = 0
    switch: list[bool] = field(default_factory=list)
    proof: int = 0

    @property
    def writes(self) -> bool:
        """Whether it writes to an argument."""
        return any(mutated for _, mutated in self.inputs)

    def loaded(self, placed: torch.device | None) -> bool:
        """Whether its code is on the device of a call."""
        return placed is None or all(placed.index in x.functions for x in self.launches)

    def overlaps(self, tensors: Sequence[Tensor]) -> bool:
        """Whether a tensor that is written shares bytes with another argument."""
        if not self.writes:
            return False
        starts = [t.data_ptr() for t in tensors]
        spans = [(at, at + size) for at, (size, _) in zip(starts, self.inputs, strict=True)]
        return any(
            mutated and i != j and max(begin, other) < min(end, other_end)
            for i, ((begin, end), (_, mutated)) in enumerate(zip(spans, self.inputs, strict=True))
            for j, (other, other_end) in enumerate(spans)
        )


class Table:
    """Variants by their words; the newest of a key stands before the older ones."""

    def __init__(self) -> None:
        self._variants: dict[tuple[int, ...], tuple[Variant, ...]] = {}
        self._heads: set[tuple[int, ...]] = set()

    def may_hold(self, words: Words) -> bool:
        """Whether some variant had a first tensor like that of a call."""
        return tuple(words.words[: words.head]) in self._heads

    def find(self, words: Words) -> tuple[Variant, ...]:
        """The variants of a call that were not removed, the newest first."""
        known = self._variants.get(tuple(words.words), ())
        return tuple(variant for variant in known if variant.live)

    def insert(self, variant: Variant) -> None:
        """Add a variant."""
        self._heads.add(variant.key[: _head_of(variant.key)])
        known = self._variants.get(variant.key, ())
        self._variants[variant.key] = (variant, *known)


def _head_of(key: Sequence[int]) -> int:
    """How many words of a key there are up to the end of its first tensor, or none."""
    at = 0
    while at < len(key):
        tag, length = key[at] & 0xFF, key[at] >> 8
        if tag == TENSOR:
            return at + 1 + 2 * (length >> 8 & 0xFF)
        at += {STRING: 1 + (length + 7) // 8, NONE: 1, LIST: 1}.get(tag, 2)
    return 0
