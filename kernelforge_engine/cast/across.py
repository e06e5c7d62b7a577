"""The calls of one kernel as one line: sizes that differ among them stand as a range."""

from collections.abc import Sequence
from dataclasses import replace

from kernelforge_engine.calls import Call, TensorSpec
from kernelforge_engine.launch.describe import (
    MOST_TENSORS,
    SHORT,
    is_contiguous,
    variant_text,
)

FEW = 2  # so many different sizes are listed; of more the smallest and the largest are


def across_text(calls: Sequence[Call]) -> str:
    """As `variant_text` of one call: f32[8..24, 16], dim=-1."""
    first = calls[0]
    if len(calls) == 1 or any(_kind(call) != _kind(first) for call in calls):
        return variant_text(first)
    tensors = [_tensor([call.inputs[i] for call in calls]) for i in range(len(first.inputs))]
    if len(tensors) > MOST_TENSORS:
        tensors[MOST_TENSORS:] = [f"+{len(tensors) - MOST_TENSORS}"]
    texts = [variant_text(replace(call, inputs=())) for call in calls]
    plain = texts[0] if len(set(texts)) == 1 else "with other arguments"
    return ", ".join([*tensors, plain] if plain else tensors)


def _kind(call: Call) -> list[tuple[str, int]]:
    return [(spec.dtype, len(spec.shape)) for spec in call.inputs]


def _tensor(specs: Sequence[TensorSpec]) -> str:
    sizes = [_sizes(column) for column in zip(*(spec.shape for spec in specs), strict=True)]
    text = f"{SHORT.get(specs[0].dtype, specs[0].dtype)}[{', '.join(sizes)}]"
    return text if all(map(is_contiguous, specs)) else f"{text} strided"


def _sizes(values: Sequence[int]) -> str:
    found = sorted(set(values))
    return "|".join(map(str, found)) if len(found) <= FEW else f"{found[0]}..{found[-1]}"
