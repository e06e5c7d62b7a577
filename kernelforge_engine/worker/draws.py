"""Inputs a candidate is judged on: the captured tensors and fresh ones of the same layout.

Families (names appear in verdicts, values never do): `captured`; `resampled` draws every element
from the captured values; `normal` has the captured root mean square; `shifted` adds ten of those;
`heavy` is lognormal with random signs; `faint` has a root mean square of 0.001, where an epsilon
counts, and zeros of both signs; `special` scatters NaN and infinities over every floating input.

A tensor without negative values gets none. Booleans are tossed, integers drawn from the captured
range (row numbers of an embedding: from the whole table); `resampled` and `special` take both from
the captured values.

A size that was held out has no captured tensors: its draws resemble those of another size, and an
integer that could be a place in a dimension stays a place in it where that is shorter.
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
    """The draws of one evaluation, keyed by its secret.

    `captured` are the tensors they resemble and `origin` the call those were captured from.
    """

    def __init__(
        self, captured: Sequence[torch.Tensor], origin: Call, call: Call, secret: bytes
    ) -> None:
        self._captured = tuple(captured)
        self._origin, self._call = origin, call
        self._secret = secret

    def make(self, family: str) -> Draw:
        """The inputs of one family, all but `captured`."""
        inputs = tuple(self._fresh(family, i) for i in range(len(self._captured)))
        if family == "special":
            self._scatter(inputs)
        return Draw(family=family, inputs=inputs)

    def _fresh(self, family: str, index: int) -> torch.Tensor:
        source = self._captured[index]
        target = empty(self._call.inputs[index], source.device)
        place = _unexpanded(target)
        values = _unexpanded(source)
        generator = self._generator(family, index, source.device)
        if family in FROM_CAPTURED:
            drawn = self._within(_resampled(values, place.shape, generator))
        elif values.is_floating_point():
            drawn = _real(values, place.shape, family, generator)
        else:
            drawn = self._whole(values, place.shape, index, generator)
        place.copy_(drawn)
        return target

    def _whole(
        self, values: torch.Tensor, shape: torch.Size, index: int, generator: torch.Generator
    ) -> torch.Tensor:
        """Booleans and integers."""
        low, high = 0, 1
        if values.dtype != torch.bool:
            low, high = self._range(values)
        if self._call.operator == "aten::embedding" and index == 1:
            high = self._call.inputs[0].shape[0] - 1
        return torch.randint(low, high + 1, shape, generator=generator, device=values.device)

    def _within(self, values: torch.Tensor) -> torch.Tensor:
        """Captured integers where each is a place that the tensors of this size have too."""
        kept = values.is_floating_point() or values.is_complex() or values.dtype == torch.bool
        if kept or self._origin is self._call:
            return values
        return values.clamp(max=self._range(values)[1])

    def _range(self, values: torch.Tensor) -> tuple[int, int]:
        if not values.numel():
            return 0, 0
        low, high = int(values.min()), int(values.max())
        high = self._last_place(high)
        return min(low, high), high

    def _last_place(self, high: int) -> int:
        """`high`, or the last place of the shortest dimension that was long enough for it and is
        shorter here."""
        pairs = zip(self._origin.inputs, self._call.inputs, strict=True)
        sizes = [s for a, b in pairs for s in zip(a.shape, b.shape, strict=True)]
        return min([high, *(now - 1 for then, now in sizes if then > high >= now > 0)])

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


def _real(
    values: torch.Tensor, shape: torch.Size, family: str, generator: torch.Generator
) -> torch.Tensor:
    wide = values.double() if values.dtype == torch.float64 else values.float()
    scale = FAINT if family == "faint" else _scale(wide)

    def normal() -> torch.Tensor:
        return torch.randn(shape, generator=generator, device=values.device, dtype=wide.dtype)

    drawn = normal()
    if family == "heavy":
        drawn = (1.5 * drawn.abs()).exp() * drawn.sign()
    drawn = drawn * scale
    if family == "shifted":
        drawn = drawn + SHIFT * scale
    if wide.numel() and not bool((wide < 0).any()):
        drawn = drawn.abs() + scale * 1e-3
    if family == "faint":
        sparse = torch.rand(shape, generator=generator, device=values.device, dtype=torch.float32)
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


def _resampled(values: torch.Tensor, shape: torch.Size, generator: torch.Generator) -> torch.Tensor:
    flat = values.reshape(-1)
    if not flat.numel():
        return values.new_zeros(shape)
    places = torch.randint(flat.numel(), shape, generator=generator, device=values.device)
    return flat[places]
