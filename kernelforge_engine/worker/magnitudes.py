"""T2 per binade: no element may be much worse, for its own size, than eager is at that size.

The size z of an element is its scale (see reference.Expectation), so that what cancels is not held
to the digits that are left of it. Elements of one binade of z are a band; E is the worst |de| / z
of a band and its neighbours, of at least LEAST elements. Then

    |dc| <= mu E z + 4 ulp(r) + 8 g(K) z

for every element whose reference is a normal number: subnormal ones may be flushed, except in
float16, whose subnormals are of everyday size.
"""

import torch

from kernelforge_engine.worker.differences import (
    SIXTEEN_BITS,
    SMALLEST_EXPONENT,
    Errors,
)
from kernelforge_engine.worker.findings import Finding, place, ratio, wrong

MU = {torch.float64: 16.0, torch.float32: 16.0, torch.float16: 4.0, torch.bfloat16: 4.0}
ULPS = 4.0
GROWTHS = 8.0
LEAST = 64
LOWEST = -1100  # below the exponent of every float64
BANDS = 2200
CHUNK = 1 << 16


def per_binade(
    index: int, errors: Errors, reference: torch.Tensor, dtype: torch.dtype, growth: float
) -> Finding | None:
    """The element that is worst for its own size, if it is beyond the bound."""
    normal = 2.0 ** SMALLEST_EXPONENT[dtype]
    judged = errors.scale > 0
    judged &= errors.scale.isfinite()
    if dtype != torch.float16:
        judged &= reference.reshape(-1).abs() >= normal
    count = int(judged.sum())
    if not count:
        return None

    def kept(values: torch.Tensor) -> torch.Tensor:
        return values if count == judged.numel() else values[judged]

    scale = kept(errors.scale)
    band = torch.frexp(scale).exponent.long() - LOWEST
    worst_of_eager = _worst_nearby(kept(errors.eager).abs() / scale, band)
    ulps = ULPS if dtype not in SIXTEEN_BITS else 1.0
    allowed = MU[dtype] * worst_of_eager[band] + GROWTHS * growth
    bound = allowed * scale + ulps * kept(errors.ulp)
    found = kept(errors.candidate).abs()
    worst = int((found / bound).argmax())
    if bool(found[worst] <= bound[worst]):
        return None
    at = int(judged.nonzero()[worst])
    times = ratio(float(found[worst]), float(bound[worst]))
    return wrong(
        "T2 per binade",
        "for its own size an element is much worse than eager is at that size",
        {
            **place(index, at, reference.shape),
            "error_over_bound": times,
            "elements": int((found > bound).sum()),
            "of": found.numel(),
        },
        times,
    )


def _worst_nearby(relative: torch.Tensor, band: torch.Tensor) -> torch.Tensor:
    """For every band the worst relative error of eager in it and around it."""
    counts = torch.bincount(band, minlength=BANDS).tolist()
    worst = _largest(relative, band)
    held = [i for i, count in enumerate(counts) if count]
    found = [0.0] * BANDS
    for middle in held:
        reach = 1
        while sum(_around(counts, middle, reach)) < LEAST and reach < held[-1] - held[0]:
            reach += 1
        found[middle] = max(_around(worst, middle, reach))
    return torch.tensor(found, dtype=relative.dtype, device=relative.device)


def _largest(relative: torch.Tensor, band: torch.Tensor) -> list[float]:
    """The largest value of every band. In chunks, since elements of one band wait for each other
    where they are reduced into one place."""
    padding = -relative.numel() % CHUNK
    values = torch.nn.functional.pad(relative, (0, padding)).view(-1, CHUNK)
    places = torch.nn.functional.pad(band, (0, padding)).view(-1, CHUNK)
    table = values.new_zeros(len(values), BANDS)
    largest: list[float] = table.scatter_reduce(1, places, values, "amax").amax(0).tolist()
    return largest


def _around(values: list[float], middle: int, reach: int) -> list[float]:
    return values[max(0, middle - reach) : middle + reach + 1]
