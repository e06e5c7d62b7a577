"""The differences that the rules look at: candidate and eager against the fp64 reference."""

from dataclasses import dataclass

import torch

from kernelforge_engine.worker.reference import Expectation

MANTISSA = {torch.float64: 52, torch.float32: 23, torch.float16: 10, torch.bfloat16: 7}
SMALLEST_EXPONENT = {
    torch.float64: -1022,
    torch.float32: -126,
    torch.float16: -14,
    torch.bfloat16: -126,
}
SIXTEEN_BITS = (torch.float16, torch.bfloat16)


@dataclass(frozen=True, kw_only=True)
class Errors:
    """Differences of one output where all three are finite (zero elsewhere), flattened.

    `scale` is the size an error is measured by; see reference.Expectation.
    """

    candidate: torch.Tensor
    eager: torch.Tensor
    ulp: torch.Tensor
    scale: torch.Tensor


def ulp(reference: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The spacing of `dtype` at |reference|, not below that of its smallest normal number."""
    exponent = torch.frexp(reference.abs()).exponent - 1
    floor = exponent.clamp(min=SMALLEST_EXPONENT[dtype]) - MANTISSA[dtype]
    return torch.ldexp(torch.ones_like(reference), floor)


def errors(output: torch.Tensor, expectation: Expectation, index: int) -> Errors:
    """The differences of one output."""
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
