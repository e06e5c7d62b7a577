"""The arguments of a call as an agent reads them, and the names a launch header may use."""

from kernelforge_engine.calls import Call, Json
from kernelforge_engine.launch.describe import tensor_text
from kernelforge_engine.launch.resolve import environment
from kernelforge_tools.answer import View


class BufferRow(View):
    """A buffer a launch can name."""

    name: str
    argument: str | None = None
    """The schema argument it belongs to."""
    tensor: str
    same_as: str | None = None
    """Set when the operator writes in place: both names mean one memory block."""


class HeaderReference(View):
    """What a launch header for one variant may name."""

    variant_id: str
    buffers: list[BufferRow]
    names: dict[str, Json]
    """The operator's own arguments, usable in expressions, with their values here."""


def plain_arguments(call: Call) -> dict[str, Json]:
    """The arguments of a call that hold no tensor."""
    return {a.name: a.value for a in call.arguments if not _indices(a.value)}


def header_reference(variant_id: str, call: Call) -> HeaderReference:
    """The buffers and names of one variant, in launch order."""
    owners = {index: a.name for a in call.arguments for index in _indices(a.value)}
    inputs = [
        BufferRow(name=f"in{i}", argument=owners.get(i), tensor=tensor_text(spec))
        for i, spec in enumerate(call.inputs)
    ]
    outputs = [
        BufferRow(
            name=f"out{i}",
            tensor=tensor_text(output.tensor),
            same_as=None if output.alias is None else f"in{output.alias}",
        )
        for i, output in enumerate(call.outputs)
    ]
    return HeaderReference(
        variant_id=variant_id, buffers=inputs + outputs, names=_expression_names(call)
    )


def _expression_names(call: Call) -> dict[str, Json]:
    usable = environment(call)
    return {a.name: a.value for a in call.arguments if a.name in usable}


def _indices(value: Json) -> list[int]:
    if isinstance(value, list):
        return [index for entry in value for index in _indices(entry)]
    if isinstance(value, dict) and isinstance(index := value.get("tensor"), int):
        return [index]
    return []
