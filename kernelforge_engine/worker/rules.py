"""The correctness rules: class masks, exact class, T1 (energy) and T2 (worst element).

With c the candidate, e eager and r the fp64 reference: dc = c - r, de = e - r. ulp(r) is the
spacing of the output's dtype at |r|; g(K) = 0.5 sqrt(K) 2^-24 for a reduction of K terms; S is the
reference on absolute values for bilinear operators, else |r|.

T1, globally and with 1.5 rho per block: RMS(dc) <= max(rho RMS(de), rho RMS(ulp) / sqrt(12),
g(K) RMS(S)); a block's bound is never below 1.5 rho times the whole tensor's RMS(de), since on
nearly constant rows eager itself would fail.
T2: |dc| <= mu max|de| + ulp(r) + 4 g(K) S, for every element.
No share of elements is excused. Calibrated on honest and dishonest kernels; 16-bit outputs are
dominated by rounding, so their rho and mu are small.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import torch

from kernelforge_engine.calls import Json
from kernelforge_engine.records import Status
from kernelforge_engine.worker.reference import Expectation

RHO = {torch.float64: 10.0, torch.float32: 10.0, torch.float16: 1.25, torch.bfloat16: 1.25}
MU = {torch.float64: 16.0, torch.float32: 16.0, torch.float16: 2.0, torch.bfloat16: 2.0}
MANTISSA = {torch.float64: 52, torch.float32: 23, torch.float16: 10, torch.bfloat16: 7}
SMALLEST_EXPONENT = {
    torch.float64: -1022,
    torch.float32: -126,
    torch.float16: -14,
    torch.bfloat16: -126,
}
BLOCKS = 256
LEAST_BLOCK = 256
EXACT_EVIDENCE = 64  # elements on which eager must equal fp64 before bit equality is asked for
UNIT_ROUNDOFF = 2.0**-24
MOST_TERMS = 4096  # a longer sum is expected to add in blocks; more would excuse dropped terms


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One broken rule: which, by how much, where (output and flat index), never a value."""

    status: Status
    rule: str
    text: str
    evidence: dict[str, Json]


@dataclass(frozen=True, kw_only=True)
class Errors:
    """Differences of one output where all three are finite (zero elsewhere), flattened."""

    candidate: torch.Tensor
    eager: torch.Tensor
    ulp: torch.Tensor
    scale: torch.Tensor


def is_exact(expectation: Expectation) -> bool:
    """Whether eager equals fp64 bit for bit on this (generic) draw: a copy or a selection."""
    pairs = list(zip(expectation.eager, expectation.reference, strict=True))
    if expectation.how != "float64" or sum(e.numel() for e, _ in pairs) < EXACT_EVIDENCE:
        return all(not e.is_floating_point() for e, _ in pairs)
    return all(torch.equal(e.double(), r.double()) for e, r in pairs)


def judge(
    candidate: Sequence[torch.Tensor], expectation: Expectation, terms: int, exact: bool
) -> Finding | None:
    """The first rule that the outputs of one draw break, or None."""
    for index, output in enumerate(candidate):
        eager, reference = expectation.eager[index], expectation.reference[index]
        if exact or not output.is_floating_point():
            finding = _exact(index, output, eager)
        else:
            finding = _classes(index, output, eager, reference) or _approximate(
                index, output, expectation, terms
            )
        if finding:
            return finding
    return None


def _exact(index: int, output: torch.Tensor, eager: torch.Tensor) -> Finding | None:
    same = output == eager
    if output.is_floating_point():
        same |= output.isnan() & eager.isnan()
    if bool(same.all()):
        return None
    wrong = (~same).reshape(-1)
    return Finding(
        status=Status.WRONG_VALUES,
        rule="exact",
        text="this operator copies or selects, so every element must equal eager's",
        evidence={
            "output": index,
            "elements": int(wrong.sum()),
            "of": wrong.numel(),
            "first_at": int(wrong.nonzero()[0]),
        },
    )


def _class(values: torch.Tensor) -> torch.Tensor:
    """0 finite, 1 NaN, 2 +Inf, 3 -Inf."""
    return values.isnan() * 1 + (values == float("inf")) * 2 + (values == float("-inf")) * 3


def _classes(
    index: int, output: torch.Tensor, eager: torch.Tensor, reference: torch.Tensor
) -> Finding | None:
    found = _class(output)
    allowed = (found == _class(eager)) | (found == _class(reference.to(output.dtype)))
    if bool(allowed.all()):
        return None
    wrong = (~allowed).reshape(-1)
    return Finding(
        status=Status.WRONG_VALUES,
        rule="class mask",
        text="NaN and infinities are not where eager or fp64 has them",
        evidence={
            "output": index,
            "elements": int(wrong.sum()),
            "of": wrong.numel(),
            "first_at": int(wrong.nonzero()[0]),
        },
    )


def ulp(reference: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The spacing of `dtype` at |reference|, not below that of its smallest normal number."""
    exponent = torch.frexp(reference.abs()).exponent - 1
    floor = exponent.clamp(min=SMALLEST_EXPONENT[dtype]) - MANTISSA[dtype]
    return torch.ldexp(torch.ones_like(reference), floor)


def _errors(output: torch.Tensor, expectation: Expectation, index: int) -> Errors:
    eager, reference = expectation.eager[index], expectation.reference[index]
    wide, eager64 = output.double(), eager.double()
    finite = wide.isfinite() & eager64.isfinite() & reference.isfinite()

    def kept(values: torch.Tensor) -> torch.Tensor:
        return torch.where(finite, values, torch.zeros_like(values)).reshape(-1)

    return Errors(
        candidate=kept(wide - reference),
        eager=kept(eager64 - reference),
        ulp=kept(ulp(torch.where(finite, reference, 0.0), output.dtype)),
        scale=kept(expectation.scale[index].double()),
    )


def _approximate(
    index: int, output: torch.Tensor, expectation: Expectation, terms: int
) -> Finding | None:
    errors = _errors(output, expectation, index)
    if not errors.candidate.numel():
        return None
    growth = 0.5 * sqrt(min(terms, MOST_TERMS)) * UNIT_ROUNDOFF
    return (
        _energy(index, errors, output.dtype, growth)
        or _block_energy(index, errors, output.dtype, growth)
        or _worst(index, errors, output.dtype, growth)
    )


def _rms(values: torch.Tensor) -> torch.Tensor:
    return values.square().mean(-1).sqrt()


def _bound(errors: Errors, rho: float, growth: float) -> torch.Tensor:
    rounding = rho * _rms(errors.ulp) / sqrt(12)
    return torch.maximum(
        torch.maximum(rho * _rms(errors.eager), rounding), growth * _rms(errors.scale)
    )


def _energy(index: int, errors: Errors, dtype: torch.dtype, growth: float) -> Finding | None:
    bound = float(_bound(errors, RHO[dtype], growth))
    found = float(_rms(errors.candidate))
    if found <= bound:
        return None
    return _too_large(
        "T1",
        "the error's energy is beyond what eager's own error allows",
        {"output": index, "rms_error_over_bound": _ratio(found, bound)},
    )


def _blocked(values: torch.Tensor) -> torch.Tensor:
    size = max(LEAST_BLOCK, -(-values.numel() // BLOCKS))
    padding = -values.numel() % size
    return torch.nn.functional.pad(values, (0, padding)).view(-1, size)


def _block_energy(index: int, errors: Errors, dtype: torch.dtype, growth: float) -> Finding | None:
    if errors.candidate.numel() <= LEAST_BLOCK:
        return None
    rho = 1.5 * RHO[dtype]
    blocks = Errors(**{name: _blocked(value) for name, value in vars(errors).items()})
    bound = torch.maximum(_bound(blocks, rho, growth), rho * _rms(errors.eager))
    found = _rms(blocks.candidate)
    worst = int((found - bound).argmax())
    if bool(found[worst] <= bound[worst]):
        return None
    return _too_large(
        "T1 per block",
        "one part of the output is much worse than the rest",
        {
            "output": index,
            "elements_from": worst * blocks.candidate.shape[1],
            "rms_error_over_bound": _ratio(float(found[worst]), float(bound[worst])),
        },
    )


def _worst(index: int, errors: Errors, dtype: torch.dtype, growth: float) -> Finding | None:
    bound = MU[dtype] * errors.eager.abs().max() + errors.ulp + 4 * growth * errors.scale
    excess = errors.candidate.abs() - bound
    worst = int(excess.argmax())
    if bool(excess[worst] <= 0):
        return None
    return _too_large(
        "T2",
        "the worst element is beyond what eager's own worst error allows",
        {
            "output": index,
            "at": worst,
            "error_over_bound": _ratio(float(errors.candidate[worst].abs()), float(bound[worst])),
        },
    )


def _ratio(found: float, bound: float) -> float:
    return round(found / bound, 3) if bound > 0 else -1.0


def _too_large(rule: str, text: str, evidence: dict[str, Json]) -> Finding:
    return Finding(status=Status.WRONG_VALUES, rule=rule, text=text, evidence=evidence)
