"""Which example tensors a capture keeps, within its budget, and keeping them.

What fits is decided before the storing pass, dearest variant first: every variant gets room for a
sample of its inputs, so that it stays a target however large its weights are; then whole tensors
take the place of samples while they fit; what is left serves second and further examples.

    wanted = [Wanted(key=..., cost_us=calls * eager_us, call=..., calls=..., memory={1: ...}), ...]
    with examples(order, wanted) as kept, StoringPass(kept.open, kept.keep):
        model(...)
    kept.found[key]; kept.reason(key); kept.stored_bytes
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch

from kernelforge_engine.calls import ITEM_BYTES, Call, TensorSpec
from kernelforge_engine.pool.orders import CaptureOrder
from kernelforge_engine.worker.recorder import Key
from kernelforge_engine.worker.shelf import HEADER_BYTES, Shelf, shelf
from kernelforge_engine.worker.tensors import SAMPLE_VALUES, memory_of

TRIES = 8  # calls whose inputs are all stored already, before no other ones are hoped for

Place = Hashable


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A variant whose inputs are wanted.

    Attributes:
        key: what `keep` is told when it is called.
        cost_us: all its calls together: the dearest variants are served first.
        calls: how often the run calls it.
        memory: memory_of() those inputs that live as long as the model; many variants share them.
    """

    key: Key
    cost_us: float
    call: Call
    calls: int
    memory: Mapping[int, Hashable] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Bytes put aside for the inputs of each first example, how many further examples of a variant
    there is room for, which variants have room at all, and the bytes that are left."""

    first: dict[Place, int]
    further: dict[Key, int]
    left: int


def plan(wanted: Sequence[Wanted], max_bytes: int, per_variant: int) -> Plan:
    """Share a budget among variants, dearest first."""
    admitted, first, left = _sampled(wanted, max_bytes)
    left = _made_whole(admitted, first, left)
    further: dict[Key, int] = {}
    for what in admitted:
        size = example_bytes(what.call)
        further[what.key] = min(per_variant - 1, what.calls - 1, left // size)
        left -= further[what.key] * size
    return Plan(first=first, further=further, left=left)


def _sampled(wanted: Sequence[Wanted], left: int) -> tuple[list[Wanted], dict[Place, int], int]:
    """The variants that can have at least samples of their inputs."""
    admitted: list[Wanted] = []
    first: dict[Place, int] = {}
    for what in sorted(wanted, key=lambda w: -w.cost_us):
        needs = {
            place: sample_bytes(spec)
            for i, spec in enumerate(what.call.inputs)
            if (place := place_of(what, i)) not in first
        }
        if sum(needs.values()) <= left:
            admitted.append(what)
            first |= needs
            left -= sum(needs.values())
    return admitted, first, left


def _made_whole(admitted: Sequence[Wanted], first: dict[Place, int], left: int) -> int:
    """Put aside what whole tensors need instead of samples; what is left then.

    Indices and masks come before numbers: a sample loses the order that they may rely on.
    """
    for what in admitted:
        inputs = sorted(enumerate(what.call.inputs), key=lambda item: "float" in item[1].dtype)
        for index, spec in inputs:
            place = place_of(what, index)
            more = whole_bytes(spec) - first[place]
            if more <= left:
                first[place] += more
                left -= more
    return left


def place_of(what: Wanted, index: int) -> Place:
    """Under which name bytes are put aside for an input: whichever variant is called first stores
    what it shares with others."""
    return what.memory.get(index, (what.key, index))


def example_bytes(call: Call) -> int:
    """What the files of one example take."""
    return sum(whole_bytes(spec) for spec in call.inputs)


def whole_bytes(spec: TensorSpec) -> int:
    """What a file of the whole tensor takes."""
    return spec.extent_bytes + HEADER_BYTES


def sample_bytes(spec: TensorSpec) -> int:
    """What a file of a sample takes, or the whole tensor where that is smaller."""
    return min(whole_bytes(spec), SAMPLE_VALUES * ITEM_BYTES[spec.dtype] + HEADER_BYTES)


class Examples:
    """The examples of one capture; `open` are the keys of which more are wanted."""

    def __init__(self, order: CaptureOrder, wanted: Sequence[Wanted], kept: Shelf) -> None:
        self._budget, self._shelf = order.max_bytes, kept
        made = plan(wanted, order.max_bytes, order.examples_per_variant)
        self._wanted = {what.key: what for what in wanted}
        self._first, self._further, self._spare = made.first, made.further, made.left
        self._aside = {k: n * example_bytes(self._wanted[k].call) for k, n in made.further.items()}
        self._tries = {key: n + TRIES for key, n in made.further.items()}
        self._lasting = {memory for what in wanted for memory in what.memory.values()}
        self._names: dict[Hashable, str] = {}
        self.open: set[Key] = set(made.further)
        self.found: dict[Key, tuple[tuple[str, ...], ...]] = {}
        self._unfit: set[Key] = set()

    @property
    def stored_bytes(self) -> int:
        """What was added to the project."""
        return self._shelf.stored_bytes

    def keep(self, key: Key, tensors: Sequence[torch.Tensor]) -> None:
        """Store the inputs of a call, as they are before it runs, if more are wanted.

        Raises:
            StoreUnavailable: the disk or the quota is full.
        """
        if key not in self.open:
            return
        known = self.found.get(key, ())
        names = self._stored(key, tensors)
        if names is not None and names not in known:
            self.found[key] = (*known, names)
        self._tries[key] -= 1
        enough = len(self.found.get(key, ())) > self._further[key]
        if names is None:
            del self._further[key]  # it holds more, or other, tensors than were planned for
        if names is None and not known:
            self._unfit.add(key)
        if names is None or enough or not self._tries[key]:
            self.open.discard(key)
            self._spare += self._aside.pop(key)

    def reason(self, key: Key) -> str | None:
        """Why there is no example of a variant, None where there is one."""
        if key in self.found:
            return None
        if key not in self._further or key in self._unfit:
            return f"its examples do not fit into the capture's budget of {self._budget} bytes"
        return "its inputs were not stored: a second run did not call it as the first one did"

    def publish(self) -> None:
        """Make what was found part of the project.

        Raises:
            StoreUnavailable: the disk is full or read-only.
        """
        examples = [example for found in self.found.values() for example in found]
        self._shelf.publish({name for example in examples for name in example})

    def _stored(self, key: Key, tensors: Sequence[torch.Tensor]) -> tuple[str, ...] | None:
        names: list[str] = []
        first = key not in self.found
        for index, tensor in enumerate(tensors):
            what = self._wanted[key]
            aside = self._first.pop(place_of(what, index), 0) if first else self._aside[key]
            name, rest = self._store(tensor, what.call.inputs[index], aside, sampled=first)
            if first:
                self._spare += rest
            else:
                self._aside[key] = rest
            if name is None:
                return None
            names.append(name)
        return tuple(names)

    def _store(
        self, tensor: torch.Tensor, spec: TensorSpec, aside: int, *, sampled: bool
    ) -> tuple[str | None, int]:
        """The name under which a tensor is kept, and what is left of the bytes put aside for it."""
        memory = memory_of(tensor)
        if memory in self._names:
            return self._names[memory], aside
        room, before = self._spare + aside, self.stored_bytes
        if whole_bytes(spec) <= room:
            name = self._shelf.store(tensor)
        elif sampled and sample_bytes(spec) <= room:
            name = self._shelf.store_sample(tensor)
        else:
            return None, aside
        written = self.stored_bytes - before
        self._spare -= max(0, written - aside)
        if memory in self._lasting:
            self._names[memory] = name
        return name, max(0, aside - written)


@contextmanager
def examples(order: CaptureOrder, wanted: Sequence[Wanted]) -> Iterator[Examples]:
    """The examples of a capture; they become part of the project when this ends without an error.

    Raises:
        StoreUnavailable: the project folder cannot be written, or is full.
    """
    with shelf(order) as kept:
        made = Examples(order, wanted, kept)
        yield made
        made.publish()
