"""Inputs on which a sum of products is exact in any order, so that every bit counts.

`one-hot left` and `one-hot right`: that operand has exactly one non-zero, a power of two, in every
reduction, so the output copies the other one. `integers`: whole numbers, one operand sparse, whose
sums float32 holds. What is added (a bias) is zero on the first two. An operand cut to fewer bits,
or partial sums in 16 bits, show at once. Convolutions may transform their operands first
(Winograd), so only products of matrices are held to the bits; and only where eager's own result is
exact.
"""

from collections.abc import Sequence
from math import prod

import torch

from kernelforge_engine.calls import Call
from kernelforge_engine.worker.reference import Expectation

ONE_HOT = {"one-hot left": 0, "one-hot right": 1}
PROBES = (*ONE_HOT, "integers")
# By operator: the inputs that are its factors, and the dimension of each that is summed.
PRODUCTS = {
    "aten::linear": ((0, -1), (1, -1)),
    "aten::matmul": ((0, -1), (1, -2)),
    "aten::mm": ((0, -1), (1, -2)),
    "aten::bmm": ((0, -1), (1, -2)),
    "aten::mv": ((0, -1), (1, -1)),
    "aten::dot": ((0, -1), (1, -1)),
    "aten::addmm": ((1, -1), (2, -2)),
    "aten::baddbmm": ((1, -1), (2, -2)),
    "aten::addmv": ((1, -1), (2, -1)),
}
BITS = {torch.float64: 13, torch.float32: 13, torch.float16: 11, torch.bfloat16: 8}
NON_ZEROS = {torch.float64: 32, torch.float32: 32, torch.float16: 4, torch.bfloat16: 32}
WEIGHTS = {torch.float64: 7, torch.float32: 7, torch.float16: 2, torch.bfloat16: 7}


def can_be_probed(call: Call) -> bool:
    """Whether a call is a product of two floating matrices."""
    factors = PRODUCTS.get(call.operator)
    if factors is None or len(call.inputs) <= factors[1][0]:
        return False
    return all("float" in call.inputs[i].dtype for i, _ in factors)


def is_exact_here(call: Call, family: str, expectation: Expectation) -> bool:
    """Whether a draw asks for eager's very bits: a probe on which eager itself is exact."""
    if family not in PROBES or not can_be_probed(call) or expectation.how != "float64":
        return False
    return all(
        torch.equal(e, r.to(e.dtype))
        for e, r in zip(expectation.eager, expectation.reference, strict=True)
    )


def probe(
    call: Call, family: str, index: int, shape: Sequence[int], generator: torch.Generator
) -> torch.Tensor:
    """The values of one floating input."""
    factors = PRODUCTS[call.operator]
    sparse, dim = factors[ONE_HOT.get(family, 0)]
    dtype = getattr(torch, call.inputs[index].dtype)
    made = tuple(shape)
    dim = max(dim, -len(made))  # a vector has one dimension to sum over
    if family in ONE_HOT:
        if index == sparse:
            return _one_hot(made, dim, generator)
        if index in (factor for factor, _ in factors):
            return torch.randn(made, generator=generator, device=generator.device)
        return torch.zeros(made, device=generator.device)
    if index != sparse:
        return _whole(made, (1 << BITS[dtype]) - 1, generator)
    kept = torch.rand(made, generator=generator, device=generator.device)
    share = NON_ZEROS[dtype] / max(1, made[dim])
    return _whole(made, WEIGHTS[dtype], generator) * (kept < share)


def _one_hot(shape: Sequence[int], dim: int, generator: torch.Generator) -> torch.Tensor:
    device = generator.device
    rest = list(shape)
    rest[dim] = 1
    places = torch.randint(shape[dim], rest, generator=generator, device=device)
    powers = torch.randint(-3, 4, rest, generator=generator, device=device).float().exp2()
    signs = torch.randint(2, rest, generator=generator, device=device) * 2 - 1
    return torch.zeros(tuple(shape), device=device).scatter(dim, places, powers * signs)


def _whole(shape: Sequence[int], most: int, generator: torch.Generator) -> torch.Tensor:
    if not prod(shape):
        return torch.zeros(tuple(shape), device=generator.device)
    return torch.randint(
        -most, most + 1, tuple(shape), generator=generator, device=generator.device
    ).float()
