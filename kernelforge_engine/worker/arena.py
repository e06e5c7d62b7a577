"""The memory a candidate sees: every buffer between guard bands. The Judge fills and checks it; the
Runner only executes on it.

It is a memory file that both have mapped, or, on CUDA, one block of device memory that both have
open and that holds nothing else. Where a driver cannot share memory the file serves CUDA too.
"""

import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from kernelforge_engine.calls import Call, TensorSpec
from kernelforge_engine.plans import Buffer, ResolvedPlan
from kernelforge_engine.pool.protocol import Slot
from kernelforge_engine.worker.device_memory import device_memory
from kernelforge_engine.worker.tensors import bytes_of, dtype_of, flat

GUARD = 64 << 10
ALIGN = 256
STAGGER = 5 * ALIGN  # keeps buffers from sharing their offset within a page
# Bytes 0xFF are a NaN in every floating type, 0x7F a large positive number (a NaN in float16), 0xFB
# a large negative one: what is read but was never written shows under at least one of them, and an
# element that holds each poison after its run was never written.
POISONS = (0xFF, 0x7F, 0xFB)
BLOCK = 4099  # elements of plausible memory, which repeats: a prime, so that no row looks the same
SCRIBBLED = 1024  # of so many elements one is changed

# What memory holds where nothing was laid: one byte all over, or a block of bytes that repeats.
Background = int | torch.Tensor


@dataclass(frozen=True, kw_only=True)
class Damage:
    """What was found wrong with the memory after a run, by buffer name."""

    guard: str | None = None
    mutated: str | None = None


class Arena:
    """The memory of one candidate's call.

    `offset`: how far, in bytes, buffers lie behind a multiple of 256. A variant promises no more
    than 16, so a candidate is judged at 16; it is timed at 0, where allocators put tensors.
    """

    def __init__(self, call: Call, plan: ResolvedPlan, offset: int) -> None:
        self._call = call
        self.slots = _slots(call, plan, offset)
        self._names = [f"{b.role} {b.index}" for b in plan.buffers]
        self._fresh = [(b.index, i) for i, b in enumerate(plan.buffers) if b.role == "output"]
        self.bytes = self.slots[-1].offset + self.slots[-1].bytes + GUARD
        self.descriptor = os.memfd_create("kernelforge-arena")
        os.ftruncate(self.descriptor, self.bytes)
        self._map = mmap.mmap(self.descriptor, self.bytes)
        self._device = device_memory(self.bytes) if call.backend == "cuda" else None
        self.shared = self._device.shared if self._device else ""
        self._memory = (
            self._device.tensor()
            if self._device
            else torch.frombuffer(self._map, dtype=torch.uint8)
        )

    def close(self) -> None:
        """Give the memory back."""
        del self._memory
        if self._device:
            self._device.close()
        self._map.close()
        os.close(self.descriptor)

    def plausible(self, generator: torch.Generator) -> torch.Tensor:
        """A background that looks like outputs of this call, for whoever looks for poison."""
        dtype = dtype_of(self._call.outputs[0].tensor.dtype)
        drawn = torch.randn(BLOCK, generator=generator, device=generator.device).to(dtype)
        return drawn.view(torch.uint8).to(self._memory.device)

    def fill(self, inputs: Sequence[torch.Tensor], background: Background) -> None:
        """Cover everything, then lay the inputs down."""
        if isinstance(background, int):
            self._memory.fill_(background)
        else:
            whole = self.bytes // len(background) * len(background)
            self._memory[:whole].view(-1, len(background)).copy_(background)
            self._memory[whole:].copy_(background[: self.bytes - whole])
        self.lay(inputs)

    def scribble(self, generator: torch.Generator) -> None:
        """Change some elements of what a run left in its outputs."""
        for index, position in self._fresh:
            spec = self._call.outputs[index].tensor
            memory = self._bytes(self.slots[position]).view(spec.extent, -1)
            count = max(1, spec.extent // SCRIBBLED)
            places = torch.randint(
                spec.extent, (count,), generator=generator, device=generator.device
            ).to(memory.device)
            memory[places] ^= 0x15

    def lay(self, inputs: Sequence[torch.Tensor]) -> None:
        """Lay the inputs down, and leave all else as it is."""
        for slot, tensor in zip(self.slots, inputs, strict=False):
            self._bytes(slot).copy_(bytes_of(flat(tensor)))
        if self._device:
            torch.cuda.synchronize()

    def outputs(self, device: torch.device) -> tuple[torch.Tensor, ...]:
        """Copies of the outputs, on the Judge's device and with their layout."""
        return tuple(
            self._tensor(self._slot_of(index, spec.alias), spec.tensor, device)
            for index, spec in enumerate(self._call.outputs)
        )

    def unwritten(self, runs: Sequence[Sequence[torch.Tensor]]) -> int:
        """Elements of fresh outputs that still held the poison after the run under each poison."""
        count = 0
        for index, _ in self._fresh:
            held = [
                (_element_bytes(outputs[index]) == poison).all(-1)
                for outputs, poison in zip(runs, POISONS, strict=True)
            ]
            count += int(torch.stack(held).all(0).sum())
        return count

    def damage(self, inputs: Sequence[torch.Tensor], background: Background) -> Damage:
        """Guard bands that changed, and inputs that changed without being an output."""
        edge = 0
        for position, slot in enumerate(self.slots):
            if not self._is_covered(edge, slot.offset, background):
                return Damage(guard=f"before {self._names[position]}")
            edge = slot.offset + slot.bytes
        if not self._is_covered(edge, self.bytes, background):
            return Damage(guard=f"after {self._names[-1]}")
        for index, tensor in enumerate(inputs):
            expected = bytes_of(flat(tensor)).to(self._memory.device)
            if index not in self._call.mutated and not torch.equal(
                self._bytes(self.slots[index]), expected
            ):
                return Damage(mutated=f"in{index}")
        return Damage()

    def _is_covered(self, start: int, end: int, background: Background) -> bool:
        memory = self._memory[start:end]
        if isinstance(background, int):
            return _holds_only(memory, background)
        here = background.roll(-(start % len(background)))
        whole = len(memory) // len(here) * len(here)
        repeated, rest = memory[:whole].view(-1, len(here)), memory[whole:]
        return bool((repeated == here).all()) and torch.equal(rest, here[: len(rest)])

    def _slot_of(self, index: int, alias: int | None) -> Slot:
        return self.slots[dict(self._fresh)[index] if alias is None else alias]

    def _bytes(self, slot: Slot) -> torch.Tensor:
        return self._memory[slot.offset : slot.offset + slot.bytes]

    def _tensor(self, slot: Slot, spec: TensorSpec, device: torch.device) -> torch.Tensor:
        memory = self._bytes(slot).to(device, copy=True).view(dtype_of(spec.dtype))
        return memory.as_strided(spec.shape, spec.stride)


def shift_of(call: Call, buffer: Buffer) -> int:
    """How many bytes behind an aligned address a buffer begins: an input that a variant does not
    promise to be aligned begins one element later."""
    if buffer.role != "input" or call.inputs[buffer.index].aligned:
        return 0
    spec = call.inputs[buffer.index]
    return max(1, spec.extent_bytes // max(1, spec.extent))


def _slots(call: Call, plan: ResolvedPlan, behind: int) -> tuple[Slot, ...]:
    slots = []
    offset = GUARD
    for position, buffer in enumerate(plan.buffers):
        start = -(-(offset + position * STAGGER) // ALIGN) * ALIGN + behind + shift_of(call, buffer)
        slots.append(Slot(offset=start, bytes=buffer.bytes))
        offset = start + buffer.bytes + GUARD
    return tuple(slots)


def _element_bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().reshape(-1, 1).view(torch.uint8)


def _holds_only(memory: torch.Tensor, byte: int) -> bool:
    """Whether memory is one byte all over; it is read eight at a time, since every run asks."""
    start = min(-memory.storage_offset() % 8, len(memory))
    stop = start + (len(memory) - start) // 8 * 8
    word = int.from_bytes(bytes([byte]) * 8, "little", signed=True)
    parts = (
        (memory[start:stop].view(torch.int64), word),
        (memory[:start], byte),
        (memory[stop:], byte),
    )
    return all(bool((part == value).all()) for part, value in parts if len(part))
