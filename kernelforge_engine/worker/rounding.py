"""Rules about how results were rounded: T3 (bias of 16-bit outputs) and T4 (mantissa census).

T3, over elements at least as large as the median, with z = dc sign(r) / ulp(r): |mean z| <= 0.05 +
3 sd(z) / sqrt(n) + |mean z of eager|: cutting bits off instead of rounding leaves half an ulp.
T4, fp32 outputs: the share whose last 13 mantissa bits are zero is at most eager's plus 1 %: more
come from a result that was computed in 16 bits.
"""

from math import sqrt

import torch

from kernelforge_engine.worker.differences import SIXTEEN_BITS, Errors
from kernelforge_engine.worker.findings import Finding, ratio, wrong

ENOUGH = 4096
SOME = 1 << 20
BIAS = 0.05
LAST_BITS = (1 << 13) - 1
SHARE = 0.01


def bias(index: int, errors: Errors, reference: torch.Tensor, dtype: torch.dtype) -> Finding | None:
    """Whether 16-bit results lean to one side."""
    if dtype not in SIXTEEN_BITS or errors.candidate.numel() < ENOUGH:
        return None
    flat = reference.reshape(-1)
    judged = flat.isfinite() & (errors.ulp > 0) & (flat != 0)
    if int(judged.sum()) < ENOUGH:
        return None
    some = slice(None, None, max(1, flat.numel() // SOME))  # to sort all of them takes long
    sizes = flat[some][judged[some]].abs()
    if sizes.numel():
        judged &= flat.abs() >= sizes.median()
    signed = flat[judged].sign() / errors.ulp[judged]
    lean, eager = errors.candidate[judged] * signed, errors.eager[judged] * signed
    bound = BIAS + 3 * float(lean.std()) / sqrt(lean.numel()) + abs(float(eager.mean()))
    found = abs(float(lean.mean()))
    if found <= bound:
        return None
    times = ratio(found, bound)
    return wrong(
        "T3",
        "results lean to one side: their last bits are cut off, not rounded",
        {"output": index, "bias_over_bound": times},
        times,
    )


def census(
    index: int, output: torch.Tensor, eager: torch.Tensor, reference: torch.Tensor
) -> Finding | None:
    """Whether fp32 results have the short mantissas of 16-bit ones."""
    if output.dtype != torch.float32 or output.numel() < ENOUGH:
        return None
    judged = reference.isfinite() & (reference != 0)
    allowed, found = _short(eager, judged) + SHARE, _short(output, judged)
    if found <= allowed:
        return None
    times = ratio(found, allowed)
    return wrong(
        "T4",
        "many results have no low mantissa bits: they were computed in 16 bits",
        {"output": index, "share_over_bound": times},
        times,
    )


def _short(values: torch.Tensor, judged: torch.Tensor) -> float:
    bits = values.contiguous().view(torch.int32)[judged]
    return float(((bits & LAST_BITS) == 0).double().mean()) if bits.numel() else 0.0
