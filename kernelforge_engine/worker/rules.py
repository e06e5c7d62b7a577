"""The correctness rules: class masks, exact class, selection, T1 (energy), T2 (worst element).

With c the candidate, e eager and r the fp64 reference: dc = c - r, de = e - r. ulp(r) is the
spacing of the output's dtype at |r|; g(K) = 0.5 sqrt(K) 2^-24 for a reduction of K terms; S is the
scale of an element (see reference.Expectation).

T1, globally and with 1.5 rho and 2 g(K) per block: RMS(dc) <= max(rho RMS(de), rho RMS(ulp) /
sqrt(12), g(K) RMS(S)); g(K) is doubled for few elements too, which may all share one unlucky sum; a
block's bound is never below 1.5 rho times the whole tensor's RMS(de), since on
nearly constant rows eager itself would fail.
T2: |dc| <= mu max|de| + ulp(r) + 4 g(K) S, for every element; magnitudes.py has T2 per binade, and
rounding.py T3 and T4.
No share of elements is excused. Calibrated on honest and dishonest kernels; 16-bit outputs are
dominated by rounding, so their rho and mu are small.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt

import torch

from kernelforge_engine.worker.differences import Errors, errors
from kernelforge_engine.worker.findings import Finding, misplaced, place, ratio, wrong
from kernelforge_engine.worker.magnitudes import per_binade
from kernelforge_engine.worker.reference import Expectation
from kernelforge_engine.worker.rounding import bias, census
from kernelforge_engine.worker.selection import misselected

__all__ = ["Closest", "Finding", "is_exact", "judge"]

# How close a candidate came to what is allowed: the largest error over its bound, under T1 and, of
# the element that is nearest to its bound, under T2; 1 is the limit.
Closest = dict[str, float]
ENERGY, WORST = "rms_error_over_bound", "error_over_bound"

RHO = {torch.float64: 10.0, torch.float32: 10.0, torch.float16: 1.25, torch.bfloat16: 1.25}
MU = {torch.float64: 16.0, torch.float32: 16.0, torch.float16: 2.0, torch.bfloat16: 2.0}
BLOCKS = 256
LEAST_BLOCK = 256
FEW = 4096
EXACT_EVIDENCE = 64  # elements on which eager must equal fp64 before bit equality is asked for
UNIT_ROUNDOFF = 2.0**-24
ONE_SUM = 4  # one sum may round the same way again and again, as it does where its terms are alike
MOST_TERMS = 4096  # a longer sum is expected to add in blocks; more would excuse dropped terms


def is_exact(expectation: Expectation) -> bool:
    """Whether eager equals fp64 bit for bit on this (generic) draw: a copy or a selection."""
    both = zip(expectation.eager, expectation.reference, strict=True)
    pairs = [(e, r) for e, r in both if e.is_floating_point()]
    if not pairs:
        return True
    if expectation.how != "float64" or sum(e.numel() for e, _ in pairs) < EXACT_EVIDENCE:
        return False
    return all(torch.equal(e.double(), r.double()) for e, r in pairs)


def judge(
    candidate: Sequence[torch.Tensor],
    expectation: Expectation,
    terms: int,
    exact: bool,
    closest: Closest | None = None,
) -> Finding | None:
    """The first rule that the outputs of one draw break, or None; `closest` is brought up to date.

    What breaks one by the size of the reference is judged again by the wider scale: most candidates
    never need it.
    """
    found: Closest = {}
    finding = _first(candidate, expectation, terms, exact, found)
    if finding is not None and not exact and expectation.wider is not None:
        wider = replace(expectation, scale=expectation.wider(), wider=None)
        found.clear()
        finding = _first(candidate, wider, terms, exact, found)
    if closest is not None:
        for name, times in found.items():
            _note(closest, name, times)
    return finding


def _first(
    candidate: Sequence[torch.Tensor],
    expectation: Expectation,
    terms: int,
    exact: bool,
    closest: Closest,
) -> Finding | None:
    for index, output in enumerate(candidate):
        finding = _of_output(index, output, expectation, terms, exact, closest)
        if finding:
            return finding
    return None


def _note(closest: Closest, name: str, times: float) -> None:
    closest[name] = max(times, closest.get(name, 0.0))


def _of_output(
    index: int,
    output: torch.Tensor,
    expectation: Expectation,
    terms: int,
    exact: bool,
    closest: Closest,
) -> Finding | None:
    eager, reference = expectation.eager[index], expectation.reference[index]
    selection = expectation.selection
    if selection and index in (selection.values, selection.places):
        return misselected(index, output, eager, selection)
    if exact or not output.is_floating_point():
        return _exact(index, output, eager, expectation.moves)
    return _classes(index, output, eager, reference) or _approximate(
        index, output, expectation, terms, closest
    )


def _exact(index: int, output: torch.Tensor, eager: torch.Tensor, moves: bool) -> Finding | None:
    same = output == eager
    if output.is_floating_point():
        if moves:
            same &= output.signbit() == eager.signbit()
        same |= output.isnan() & eager.isnan()
    text = "here every element must equal eager's bit for bit"
    return misplaced("exact", text, index, ~same)


def _class(values: torch.Tensor) -> torch.Tensor:
    """0 finite, 1 NaN, 2 +Inf, 3 -Inf."""
    return values.isnan() * 1 + (values == float("inf")) * 2 + (values == float("-inf")) * 3


def _classes(
    index: int, output: torch.Tensor, eager: torch.Tensor, reference: torch.Tensor
) -> Finding | None:
    if (output.isfinite() & eager.isfinite()).all():
        return None
    found = _class(output)
    allowed = (found == _class(eager)) | (found == _class(reference.to(output.dtype)))
    text = "NaN and infinities are not where eager or fp64 has them"
    return misplaced("class mask", text, index, ~allowed)


def _approximate(
    index: int, output: torch.Tensor, expectation: Expectation, terms: int, closest: Closest
) -> Finding | None:
    found = errors(output, expectation, index)
    if not found.candidate.numel():
        return None
    eager, reference = expectation.eager[index], expectation.reference[index]
    growth = 0.5 * sqrt(min(terms, MOST_TERMS)) * UNIT_ROUNDOFF
    return (
        _energy(index, found, output, growth, closest)
        or _block_energy(index, found, output, growth)
        or _worst(index, found, output, growth, closest)
        or _binade(index, found, output, expectation, growth)
        or bias(index, found, reference, output.dtype)
        or census(index, output, eager, reference)
    )


def _binade(
    index: int, found: Errors, output: torch.Tensor, expectation: Expectation, growth: float
) -> Finding | None:
    if expectation.how != "float64":
        return None  # eager's own error is not known
    return per_binade(index, found, expectation.reference[index], output.dtype, growth)


def _rms(values: torch.Tensor) -> torch.Tensor:
    return values.square().mean(-1).sqrt()


def _bound(errors: Errors, rho: float, growth: float) -> torch.Tensor:
    rounding = rho * _rms(errors.ulp) / sqrt(12)
    return torch.maximum(
        torch.maximum(rho * _rms(errors.eager), rounding), growth * _rms(errors.scale)
    )


def _energy(
    index: int, errors: Errors, output: torch.Tensor, growth: float, closest: Closest
) -> Finding | None:
    shared = 2 if output.numel() <= FEW else 1
    bound = float(_bound(errors, RHO[output.dtype], shared * growth))
    found = float(_rms(errors.candidate))
    times = ratio(found, bound)
    _note(closest, ENERGY, times)
    if found <= bound:
        return None
    worst = int(errors.candidate.abs().argmax())
    return wrong(
        "T1",
        "the error's energy is beyond what eager's own error allows",
        {**place(index, worst, output.shape), ENERGY: times},
        times,
    )


def _blocked(values: torch.Tensor) -> torch.Tensor:
    size = max(LEAST_BLOCK, -(-values.numel() // BLOCKS))
    padding = -values.numel() % size
    return torch.nn.functional.pad(values, (0, padding)).view(-1, size)


def _block_energy(
    index: int, errors: Errors, output: torch.Tensor, growth: float
) -> Finding | None:
    if errors.candidate.numel() <= LEAST_BLOCK:
        return None
    rho = 1.5 * RHO[output.dtype]
    blocks = Errors(**{name: _blocked(value) for name, value in vars(errors).items()})
    bound = torch.maximum(_bound(blocks, rho, ONE_SUM * growth), rho * _rms(errors.eager))
    found = _rms(blocks.candidate)
    worst = int((found - bound).argmax())
    if bool(found[worst] <= bound[worst]):
        return None
    times = ratio(float(found[worst]), float(bound[worst]))
    start = worst * blocks.candidate.shape[1]
    at = start + int(blocks.candidate[worst].abs().argmax())
    return wrong(
        "T1 per block",
        "one part of the output is much worse than the rest",
        {
            **place(index, at, output.shape),
            "elements_from": start,
            ENERGY: times,
        },
        times,
    )


def _worst(
    index: int, errors: Errors, output: torch.Tensor, growth: float, closest: Closest
) -> Finding | None:
    allowed = MU[output.dtype] * errors.eager.abs().max()
    bound = allowed + errors.ulp + ONE_SUM * growth * errors.scale
    excess = errors.candidate.abs() - bound
    worst = int(excess.argmax())
    times = ratio(float(errors.candidate[worst].abs()), float(bound[worst]))
    _note(closest, WORST, times)
    if bool(excess[worst] <= 0):
        return None
    return wrong(
        "T2",
        "the worst element is beyond what eager's own worst error allows",
        {
            **place(index, worst, output.shape),
            WORST: times,
            "elements": int((excess > 0).sum()),
            "of": excess.numel(),
        },
        times,
    )
