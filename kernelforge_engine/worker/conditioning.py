"""How much rounding an operator's inputs would move its outputs: the size honest errors have.

The reference is evaluated again on inputs that were moved by 2^-26 of themselves, one group of
inputs at a time: with random signs, as rounding does, and, where elements are sums, all in one
direction as well, since what a sum is off by is shared by every element that uses it. A sum may be
deaf to one choice of signs by chance (a variance of shifted values, in some row of a hundred), so
it is asked with several.
"""

from collections.abc import Callable, Iterator, Sequence

import torch

MOVE = 2.0**-26
SEED = 0
GROUPS = 3  # inputs that are moved alone; the others are moved together
CHOICES = 6  # of signs, for a sum

Tensors = Sequence[torch.Tensor]


def condition(
    evaluate: Callable[[Tensors], Tensors], inputs: Tensors, reference: Tensors, sums: bool
) -> tuple[torch.Tensor, ...]:
    """Per output the sum over all groups of the largest |change| / 2^-26, not counting what is not
    finite.

    `evaluate` takes float64 inputs and gives float64 outputs like `reference`.
    """
    found = [torch.zeros_like(r, dtype=torch.float64) for r in reference]
    for group in _groups(inputs, 2 if sums else GROUPS):
        largest = [torch.zeros_like(total) for total in found]
        for moved in _moved(inputs, group, sums):
            changes = _change(evaluate(moved), reference)
            largest = [torch.maximum(a, b) for a, b in zip(largest, changes, strict=True)]
        for total, change in zip(found, largest, strict=True):
            total += change
    return tuple(found)


def _change(outputs: Tensors, reference: Tensors) -> list[torch.Tensor]:
    changes = [((o - r).double() / MOVE).abs() for o, r in zip(outputs, reference, strict=True)]
    return [torch.where(change.isfinite(), change, 0.0) for change in changes]


def _moved(inputs: Tensors, group: Sequence[int], sums: bool) -> Iterator[list[torch.Tensor]]:
    generator = torch.Generator(inputs[0].device).manual_seed(SEED)
    for together in (*[False] * CHOICES, True) if sums else (False,):
        moved = list(inputs)
        for i in group:
            moved[i] = inputs[i] + MOVE * _step(inputs[i], together, generator)
        yield moved


def _groups(inputs: Tensors, most: int) -> list[list[int]]:
    floating = [i for i, t in enumerate(inputs) if t.is_floating_point() and t.numel()]
    alone, together = floating[: most - 1], floating[most - 1 :]
    return [*([i] for i in alone), *([together] if together else [])]


def _step(tensor: torch.Tensor, together: bool, generator: torch.Generator) -> torch.Tensor:
    if together:
        return tensor.abs()
    signs = torch.randint(2, tensor.shape, generator=generator, device=tensor.device)
    return tensor * (2 * signs - 1)
