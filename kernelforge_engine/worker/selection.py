"""Operators that select: what their places (indices) are held to.

Among equal values eager promises no order for most of them, so a place is right when it lies in
range and the value there equals the one that eager selected; topk and sort may name no place twice.
Where torch promises the first of equal values (argmax, argmin, max and min along a dimension, a
stable sort), places must equal eager's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from kernelforge_engine.calls import Call, Json
from kernelforge_engine.worker.findings import Finding, misplaced

FIRST = frozenset(
    {("aten::argmax", ""), ("aten::argmin", ""), ("aten::max", "dim"), ("aten::min", "dim")}
)
# By operator: the output that holds the values, that of the places, and whether these are distinct.
ANY = {
    "aten::topk": (0, 1, True),
    "aten::sort": (0, 1, True),
    "aten::argsort": (None, 0, True),
    "aten::kthvalue": (0, 1, False),
    "aten::median": (0, 1, False),
    "aten::nanmedian": (0, 1, False),
    "aten::mode": (0, 1, False),
}


@dataclass(frozen=True, kw_only=True)
class Selection:
    """How the places that a call returned are compared; `ordered`: eager promises their order."""

    source: torch.Tensor
    dim: int
    values: int | None
    places: int
    distinct: bool
    ordered: bool


def is_selection(call: Call) -> bool:
    """Whether a call selects and is judged as such."""
    return (call.operator, call.overload) in FIRST or _any(call) is not None


def selection_of(call: Call, inputs: Sequence[torch.Tensor]) -> Selection | None:
    """How the places of a call are compared, or None where they must equal eager's."""
    found = _any(call)
    if found is None:
        return None
    values, places, distinct = found
    arguments = {a.name: a.value for a in call.arguments}
    source = inputs[0] if inputs[0].dim() else inputs[0].reshape(1)
    return Selection(
        source=source,
        dim=int(str(arguments.get("dim", -1))) % source.dim(),
        values=values,
        places=places,
        distinct=distinct,
        ordered=arguments.get("sorted", True) is not False,
    )


def _any(call: Call) -> tuple[int | None, int, bool] | None:
    found = ANY.get(call.operator)
    arguments: Mapping[str, Json] = {a.name: a.value for a in call.arguments}
    if found is None or arguments.get("stable") is True or len(call.outputs) <= found[1]:
        return None
    return found


def misselected(
    index: int, output: torch.Tensor, eager: torch.Tensor, selection: Selection
) -> Finding | None:
    """What is wrong with one output of a selection."""
    if index == selection.values:
        output, eager = _arranged(output, selection), _arranged(eager, selection)
        return misplaced(
            "selection", "a selected value is not eager's", index, _differ(output, eager)
        )
    return _out_of_range(index, output, selection) or _elsewhere(index, output, eager, selection)


def _out_of_range(index: int, output: torch.Tensor, selection: Selection) -> Finding | None:
    size = selection.source.shape[selection.dim]
    bad = (output < 0) | (output >= size)
    return misplaced("selection", "a place lies outside the dimension", index, bad)


def _elsewhere(
    index: int, output: torch.Tensor, eager: torch.Tensor, selection: Selection
) -> Finding | None:
    found, expected = (_arranged(_at(p, selection), selection) for p in (output, eager))
    finding = misplaced(
        "selection", "a place holds another value than the one to select", index,
        _differ(found, expected),
    )  # fmt: skip
    if finding or not selection.distinct or not output.dim():
        return finding
    ordered = output.sort(selection.dim).values
    again = torch.zeros_like(ordered, dtype=torch.bool)
    size = ordered.shape[selection.dim]
    again.narrow(selection.dim, 1, size - 1).copy_(ordered.diff(dim=selection.dim) == 0)
    return misplaced("selection", "a place is named twice", index, again)


def _at(places: torch.Tensor, selection: Selection) -> torch.Tensor:
    if places.dim() < selection.source.dim():  # the dimension was not kept
        return selection.source.gather(selection.dim, places.unsqueeze(selection.dim)).squeeze(
            selection.dim
        )
    return selection.source.gather(selection.dim, places)


def _arranged(values: torch.Tensor, selection: Selection) -> torch.Tensor:
    """Values in an order of their own, where eager promises none."""
    if selection.ordered or not values.dim():
        return values
    return values.sort(selection.dim).values


def _differ(found: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    same = found == expected
    if found.is_floating_point():
        same |= found.isnan() & expected.isnan()
    return ~same
