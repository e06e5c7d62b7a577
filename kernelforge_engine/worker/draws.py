"""Inputs a candidate is judged on: the captured tensors and fresh ones of the same layout.

Families (names appear in verdicts, values never do): `captured`; `nudged` is captured but for one
element of every floating input, against what is remembered; `resampled` draws every element from
the captured values; `normal` has the captured root mean square; `shifted` adds ten of those;
`heavy` is lognormal with random signs; `faint` has a root mean square of 0.001, where an epsilon
counts, and zeros of both signs; `special` scatters NaN and infinities over every floating input,
its last tile included; `signed` is normal and gives the model's parameters both signs. patterns.py
has those with a structure, and probes.py those on which sums of products are exact.

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
from kernelforge_engine.worker.patterns import FAR, NEAR, PATTERNS, Source
from kernelforge_engine.worker.probes import PROBES, can_be_probed, probe
from kernelforge_engine.worker.selection import is_selection
from kernelforge_engine.worker.tensors import empty
from kernelforge_engine.worker.terms import reduction_length

PLAIN = ("captured", "nudged", "resampled", "normal", "shifted", "heavy", "faint", "special")
FAMILIES = (*PLAIN, "rows", "mixed", "large")
TIED = ("ties", "sorted", "reversed", "level", "clustered", "negative", "masked")
SELECTING = (*FAMILIES, *TIED)
# Equal values have no order that eager promises: an operator that returns places, but of which it
# is not known how they are compared, meets none.
WITHOUT_TIES = ("captured", "nudged", "normal", "shifted", "heavy", "rows", "mixed", "large")
MASKABLE = ("aten::softmax", "aten::log_softmax", "aten::logsumexp")
FROM_CAPTURED = ("resampled", "special")
OFFSETS = {"shifted": NEAR, "far": FAR}
FAINT = 1e-3
ZERO_SHARE = 0.05
SPECIAL_SHARE = 1e-3
NUDGE = 4.0
LAST_TILE = 64
FEW = 64  # a smaller tensor is spared special values, unless all are small
HUGE = 1e30  # beyond this a captured value is a mark (a mask's minus infinity), not a magnitude


@dataclass(frozen=True, kw_only=True)
class Draw:
    """One set of inputs in schema order."""

    family: str
    inputs: tuple[torch.Tensor, ...]


def families(call: Call, parameters: Sequence[int] = ()) -> tuple[str, ...]:
    """The families that mean something for an operator; `parameters` are the inputs that are
    parameters of the model."""
    places = any(o.tensor.dtype.startswith(("int", "uint")) for o in call.outputs)
    floating = [t.dtype for t in call.inputs if "float" in t.dtype]
    if is_selection(call):
        return SELECTING
    if places and floating:
        return WITHOUT_TIES
    found: tuple[str, ...] = FAMILIES if floating else PLAIN
    if any(dtype in ("float32", "float64") for dtype in floating):
        found += ("far",)
    if floating and reduction_length(call) == 1:  # a sum of squares of large values would overflow
        found += ("grid", "edges")
    if call.operator in MASKABLE:
        found += ("masked",)
    if any("float" in call.inputs[i].dtype for i in parameters):
        found += ("signed",)
    return found + (PROBES if can_be_probed(call) else ())


class Draws:
    """The draws of one evaluation, keyed by its secret.

    `captured` are the tensors they resemble and `origin` the call those were captured from;
    `parameters` are the inputs that are parameters of the model.
    """

    def __init__(
        self,
        captured: Sequence[torch.Tensor],
        origin: Call,
        call: Call,
        secret: bytes,
        parameters: Sequence[int] = (),
    ) -> None:
        self._captured = tuple(captured)
        self._origin, self._call = origin, call
        self._secret = secret
        self._signed = _signed(call, parameters)

    def make(self, family: str, number: int = 0) -> Draw:
        """The inputs of the draw of that number of one family, all but `captured`."""
        key = f"{family}|{number}" if number else family
        inputs = tuple(self._fresh(family, key, i) for i in range(len(self._captured)))
        if family == "special":
            self._scatter(inputs, key)
        return Draw(family=family, inputs=inputs)

    def _fresh(self, family: str, key: str, index: int) -> torch.Tensor:
        source = self._captured[index]
        target = empty(self._call.inputs[index], source.device)
        place = _unexpanded(target)
        values = _unexpanded(source)
        generator = self.generator(key, index, source.device)
        if family == "nudged":
            drawn = _nudged(values, generator)
        elif family in FROM_CAPTURED:
            drawn = self._within(_resampled(values, place.shape, generator))
        elif not values.is_floating_point():
            drawn = self._whole(values, place.shape, index, generator)
        elif family in PROBES:
            drawn = probe(self._call, family, index, place.shape, generator)
        else:
            both = family == "signed" and index in self._signed
            drawn = _real(values, place.shape, family, generator, both)
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
            low, high = 0, self._call.inputs[0].shape[0] - 1
        drawn = torch.randint(low, high + 1, shape, generator=generator, device=values.device)
        ends = torch.randperm(drawn.numel(), generator=generator, device=values.device)[:2]
        if len(ends) == 2 and values.dtype != torch.bool:  # both ends of the range occur
            drawn.view(-1)[ends] = torch.tensor([low, high], device=values.device)
        return drawn

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

    def _scatter(self, inputs: Sequence[torch.Tensor], key: str) -> None:
        floating = [(i, t) for i, t in enumerate(inputs) if t.is_floating_point() and t.numel()]
        largest = max((t.numel() for _, t in floating), default=0)
        for index, tensor in floating:
            if tensor.numel() >= min(FEW, largest):
                self._scatter_over(index, _unexpanded(tensor), key)

    def _scatter_over(self, index: int, target: torch.Tensor, key: str) -> None:
        """Put NaN and infinities at random places, one of each near the end."""
        generator = self.generator(f"{key} places", index, target.device)
        end = target.numel()
        count = max(6, int(end * SPECIAL_SHARE)) if end > LAST_TILE else 3
        places = torch.randint(end, (count,), generator=generator, device=target.device)
        places[:3] = end - 1 - places[:3] % LAST_TILE
        kinds = torch.tensor([float("nan"), float("inf"), float("-inf")], device=target.device)
        values = kinds[torch.arange(count, device=target.device) % 3].to(target.dtype)
        flat = target.reshape(-1).clone()
        flat[places] = values
        target.copy_(flat.view(target.shape))

    def generator(self, family: str, index: int, device: torch.device) -> torch.Generator:
        """Random numbers keyed by the secret."""
        digest = hmac.new(self._secret, f"{family}|{index}".encode(), hashlib.sha256).digest()
        generator = torch.Generator(device=device)
        generator.manual_seed(int.from_bytes(digest[:7], "big"))
        return generator


def _real(
    values: torch.Tensor,
    shape: torch.Size,
    family: str,
    generator: torch.Generator,
    both_signs: bool,
) -> torch.Tensor:
    wide = values.double() if values.dtype == torch.float64 else values.float()
    scale = FAINT if family == "faint" else _scale(wide)
    drawn = _valued(Source(shape, generator, wide.dtype, values.dtype), family, scale)
    if wide.numel() and not both_signs and not bool((wide < 0).any()):
        drawn = drawn.abs() + scale * 1e-3
    if family == "faint":
        sparse = torch.rand(shape, generator=generator, device=values.device, dtype=torch.float32)
        # Multiplying keeps the sign: zeros of both signs.
        drawn = drawn * (sparse >= ZERO_SHARE)
    return drawn


def _valued(source: Source, family: str, scale: float) -> torch.Tensor:
    """The values of a family, of both signs."""
    if family in PATTERNS:
        return PATTERNS[family](source, scale)
    drawn = source.normal()
    if family == "heavy":
        drawn = (1.5 * drawn.abs()).exp() * drawn.sign()
    if family in OFFSETS:
        narrow = source.kind in (
            torch.float16,
            torch.bfloat16,
        )  # they cannot differ so far from zero
        drawn = drawn + (NEAR if narrow else OFFSETS[family])
    return drawn * scale


def _signed(call: Call, parameters: Sequence[int]) -> frozenset[int]:
    """The parameters that may have either sign, which a variance may not."""
    variances = [a.value for a in call.arguments if "var" in a.name]
    return frozenset(i for i in parameters if {"tensor": i} not in variances)


def _nudged(values: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """The values themselves, but for one floating element."""
    drawn = values.clone()
    if drawn.is_floating_point() and drawn.numel():
        place = torch.randint(drawn.numel(), (1,), generator=generator, device=drawn.device)
        drawn.as_strided((drawn.numel(),), (1,))[place] += NUDGE * _scale(values)
    return drawn


def _scale(values: torch.Tensor) -> float:
    """The root mean square, 1.0 for a tensor of zeros."""
    near = values.abs() < HUGE
    kept = (values if near.all() else values[near]).double()
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
