"""Inputs a candidate is judged on: the captured tensors and fresh ones of the same layout.

Families (names appear in verdicts, values never do): `captured`; `resampled` draws every element
from the captured values; `normal` has the captured root mean square; `shifted` adds ten of those;
`heavy` is lognormal with random signs; `faint` has a root mean square of 0.001, where an epsilon
counts, and zeros of both signs; `special` scatters NaN and infinities over every floating input.

A tensor without negative values gets none. Booleans are tossed, integers drawn from the captured
range (row numbers of an embedding: from the whole table); `resampled` and `special` take both from
the captured values.
"""

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from kernelforge_engine.calls import Call
from kernelforge_engine.worker.tensors import empty

FAMILIES = ("captured", "resampled", "normal", "shifted", "heavy", "faint", "special")
# Equal values have no order that eager promises, so an operator that returns places meets none.
WITHOUT_TIES = ("captured", "normal", "shifted", "heavy")
FROM_CAPTURED = ("resampled", "special")
SHIFT = 10.0
FAINT = 1e-3
ZERO_SHARE = 0.05
SPECIAL_SHARE = 1e-3
FEW = 64  # a smaller tensor is spared special values, unless all are small
HUGE = 1e30  # beyond this a captured value is a mark (a mask's minus infinity), not a magnitude


@dataclass(frozen=True, kw_only=True)
class Draw:
    """One set of inputs in schema order."""

    family: str
    inputs: tuple[torch.Tensor, ...]


def families(call: Call) -> tuple[str, ...]:
    """The families that mean something for an operator."""
    places = any(o.tensor.dtype.startswith(("int", "uint")) for o in call.outputs)
    floating = any("float" in t.dtype for t in call.inputs)
    return WITHOUT_TIES if places and floating else FAMILIES


class Draws:
    """The draws of one evaluation, keyed by its secret."""

    def __init__(self, captured: Sequence[torch.Tensor], call: Call, secret: bytes) -> None:
        self._captured = tuple(captured)
        self._call = call
        self._secret = secret

    def make(self, family: str) -> Draw:
        """The inputs of one family."""
        if family == "captured":
            return Draw(family=family, inputs=self._captured)
        inputs = tuple(self._fresh(family, i) for i in range(len(self._captured)))
        if family == "special":
            self._scatter(inputs)
        return Draw(family=family, inputs=inputs)

    def _fresh(self, family: str, index: int) -> torch.Tensor:
        source = self._captured[index]
        target = empty(self._call.inputs[index], source.device)
        values = _unexpanded(source)
        generator = self._generator(family, index, source.device)
        if family in FROM_CAPTURED:
            drawn = _resampled(values, generator)
        elif values.is_floating_point():
            drawn = _real(values, family, generator)
        else:
            drawn = self._whole(values, index, generator)
        _unexpanded(target).copy_(drawn)
        return target

    def _whole(self, values: torch.Tensor, index: int, generator: torch.Generator) -> torch.Tensor:
        """Booleans and integers."""
        if not values.numel():
            return values
        low, high = 0, 1
        if values.dtype != torch.bool:
            low, high = int(values.min()), int(values.max())
        if self._call.operator == "aten::embedding" and index == 1:
            high = self._call.inputs[0].shape[0] - 1
        return torch.randint(low, high + 1, values.shape, generator=generator, device=values.device)

    def _scatter(self, inputs: Sequence[torch.Tensor]) -> None:
        floating = [(i, t) for i, t in enumerate(inputs) if t.is_floating_point() and t.numel()]
        largest = max((t.numel() for _, t in floating), default=0)
        for index, tensor in floating:
            if tensor.numel() >= min(FEW, largest):
                self._scatter_over(index, _unexpanded(tensor))

    def _scatter_over(self, index: int, target: torch.Tensor) -> None:
        """Put NaN and infinities at random places."""
        generator = self._generator("special places", index, target.device)
        count = max(3, int(target.numel() * SPECIAL_SHARE))
        places = torch.randint(target.numel(), (count,), generator=generator, device=target.device)
        kinds = torch.tensor([float("nan"), float("inf"), float("-inf")], device=target.device)
        values = kinds[torch.arange(count, device=target.device) % 3].to(target.dtype)
        flat = target.reshape(-1).clone()
        flat[places] = values
        target.copy_(flat.view(target.shape))

    def _generator(self, family: str, index: int, device: torch.device) -> torch.Generator:
        digest = hmac.new(self._secret, f"{family}|{index}".encode(), hashlib.sha256).digest()
        generator = torch.Generator(device=device)
        generator.manual_seed(int.from_bytes(digest[:7], "big"))
        return generator


def _real(values: torch.Tensor, family: str, generator: torch.Generator) -> torch.Tensor:
    wide = values.double() if values.dtype == torch.float64 else values.float()
    scale = FAINT if family == "faint" else _scale(wide)

    def normal() -> torch.Tensor:
        return torch.randn(
            values.shape, generator=generator, device=values.device, dtype=wide.dtype
        )

    drawn = normal()
    if family == "heavy":
        drawn = (1.5 * drawn.abs()).exp() * drawn.sign()
    drawn = drawn * scale
    if family == "shifted":
        drawn = drawn + SHIFT * scale
    if not bool((wide < 0).any()):
        drawn = drawn.abs() + scale * 1e-3
    if family == "faint":
        sparse = torch.rand(
            values.shape, generator=generator, device=values.device, dtype=torch.float32
        )
        # Multiplying keeps the sign: zeros of both signs.
        drawn = drawn * (sparse >= ZERO_SHARE)
    return drawn


def _scale(values: torch.Tensor) -> float:
    """The root mean square, 1.0 for a tensor of zeros."""
    kept = values[values.abs() < HUGE].double()
    return (float(kept.square().mean().sqrt()) if kept.numel() else 0.0) or 1.0


def _unexpanded(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor with every expanded dimension cut to one, so that each element exists once."""
    for dim, stride in enumerate(tensor.stride()):
        if stride == 0 and tensor.shape[dim] > 1:
            tensor = tensor.narrow(dim, 0, 1)
    return tensor


def _resampled(values: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    flat = values.reshape(-1)
    if not flat.numel():
        return values
    places = torch.randint(flat.numel(), (flat.numel(),), generator=generator, device=values.device)
    return flat[places].view(values.shape)
