"""Inputs a candidate is judged on: the captured tensors and fresh ones of the same layout.

Families (names appear in verdicts, values never do): `captured`; `resampled` draws every element
from the captured values; `normal` has the captured root mean square; `shifted` adds ten of those;
`heavy` is lognormal with random signs; `special` scatters NaN and infinities. Integer tensors are
always resampled, so an index stays valid; a tensor without negative values gets none.
"""

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from kernelforge_engine.records import TensorSpec
from kernelforge_engine.worker.tensors import empty

FAMILIES = ("captured", "resampled", "normal", "shifted", "heavy", "special")
SHIFT = 10.0
SPECIAL_SHARE = 1e-3


@dataclass(frozen=True, kw_only=True)
class Draw:
    """One set of inputs in schema order."""

    family: str
    inputs: tuple[torch.Tensor, ...]


class Draws:
    """The draws of one evaluation, keyed by its secret."""

    def __init__(
        self, captured: Sequence[torch.Tensor], specs: Sequence[TensorSpec], secret: bytes
    ) -> None:
        self._captured = tuple(captured)
        self._specs = tuple(specs)
        self._secret = secret

    def make(self, family: str) -> Draw:
        """The inputs of one family."""
        if family == "captured":
            return Draw(family=family, inputs=self._captured)
        inputs = tuple(self._fresh(family, i) for i in range(len(self._specs)))
        if family == "special":
            self._scatter(inputs)
        return Draw(family=family, inputs=inputs)

    def _fresh(self, family: str, index: int) -> torch.Tensor:
        source, spec = self._captured[index], self._specs[index]
        target = empty(spec, source.device)
        values = _unexpanded(source)
        drawn = self._drawn(values, family, self._generator(family, index, source.device))
        _unexpanded(target).copy_(drawn)
        return target

    def _drawn(self, values: torch.Tensor, family: str, generator: torch.Generator) -> torch.Tensor:
        if family in ("resampled", "special") or not values.is_floating_point():
            return _resampled(values, generator)
        wide = values.double() if values.dtype == torch.float64 else values.float()
        scale = wide.nan_to_num(0.0, 0.0, 0.0).square().mean().sqrt()
        drawn = torch.randn(
            values.shape, generator=generator, device=values.device, dtype=wide.dtype
        )
        if family == "heavy":
            drawn = (1.5 * drawn.abs()).exp() * drawn.sign()
        drawn = drawn * scale
        if family == "shifted":
            drawn = drawn + SHIFT * scale
        negative = bool((wide < 0).any())
        return drawn if negative else drawn.abs() + scale * 1e-3

    def _scatter(self, inputs: Sequence[torch.Tensor]) -> None:
        """Put NaN and infinities at random places of the largest floating input."""
        floating = [t for t in inputs if t.is_floating_point()]
        if not floating:
            return
        target = _unexpanded(max(floating, key=torch.Tensor.numel))
        generator = self._generator("special places", 0, target.device)
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
