"""Bytes that a call must move, from its metadata alone: what it is likely to, and what is certain.

Every tensor is read or written once, but for what operators are known to touch in part.
"""

from collections.abc import Mapping

from kernelforge_engine.calls import ITEM_BYTES, Call, Region
from kernelforge_engine.launch.describe import tensors_of

# Their first tensor is read at the places that others name: an element of it per output element.
GATHERING = {
    "aten::embedding", "aten::gather", "aten::index", "aten::index_select", "aten::take",
    "aten::take_along_dim",
}  # fmt: skip
# Their first tensor is written at the places that others name: an element per source element.
SCATTERING = {"aten::index_copy_", "aten::index_put_", "aten::_index_put_impl_", "aten::scatter_"}
OVERWRITING = {"aten::copy_", "aten::fill_", "aten::zero_"}
EXPERTS = {"aten::_grouped_mm", "aten::_scaled_grouped_mm"}
# What a region takes from a tensor only through these it takes in part.
SLICING = {"aten::select", "aten::slice", "aten::narrow"}


def call_bytes(call: Call) -> int:
    """Bytes of a call whose indices all differ, and whose experts each serve a row while there are
    rows: what head-room is measured against."""
    return _moved(call, _likely(call))


def least_bytes(call: Call) -> int:
    """Bytes below which no call can stay, whatever its indices say: no kernel is faster."""
    return _moved(call, _certain(call))


def _moved(call: Call, partly: Mapping[int, int]) -> int:
    read = sum(partly.get(i, t.data_bytes) for i, t in enumerate(call.inputs))
    written = (
        min(o.tensor.data_bytes, _source(call)) if _scatters(call) else o.tensor.data_bytes
        for o in call.outputs
    )
    return read + sum(written)


def _likely(call: Call) -> dict[int, int]:
    """What is read of inputs that are not read as a whole."""
    if call.operator in GATHERING:
        return {0: min(call.inputs[0].data_bytes, call.outputs[0].tensor.data_bytes)}
    if call.operator in EXPERTS and len(call.inputs[1].shape) == 3:
        experts, rows = call.inputs[1].shape[0], call.inputs[0].shape[-2]
        return {1: call.inputs[1].data_bytes * min(experts, rows) // experts}
    return _certain(call)


def _certain(call: Call) -> dict[int, int]:
    """What is surely read of inputs that are not read as a whole."""
    if call.operator in GATHERING | OVERWRITING or _scatters(call):
        return {0: 0}
    if call.operator in EXPERTS and len(call.inputs[1].shape) == 3:
        return {1: call.inputs[1].data_bytes // call.inputs[1].shape[0]}
    if call.region is not None:
        return dict.fromkeys(_sliced(call.region, len(call.inputs)), 0)
    return {}


def _scatters(call: Call) -> bool:
    return call.operator in SCATTERING and bool(call.mutated)


def _source(call: Call) -> int:
    """What a scattering operator writes: an element for each one of its last tensor."""
    last = call.inputs[-1]
    return last.data_bytes // ITEM_BYTES[last.dtype] * ITEM_BYTES[call.inputs[0].dtype]


def _sliced(region: Region, inputs: int) -> set[int]:
    """The inputs of a region that every one of its steps takes in part."""
    wholly: set[int] = set(region.returns)
    for step in region.steps:
        partly = step.operator in GATHERING | SLICING
        for place, argument in enumerate(step.arguments):
            if not (partly and place == 0):
                wholly |= set(tensors_of(argument.value))
    return set(range(inputs)) - wholly
