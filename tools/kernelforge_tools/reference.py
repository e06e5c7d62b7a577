"""What a target computes, to be read: an operator's arguments, or the operators of a region."""

import json
from collections.abc import Sequence

from kernelforge_engine.calls import Argument, Call, Json, Region
from kernelforge_engine.launch.describe import PROGRAM
from kernelforge_tools.answer import View
from kernelforge_tools.wording import left_out

MAX_LINES = 80
MAX_SOURCE_CHARS = 4_000


class Reference(View):
    """The call as code; of a region, the text of its forward and every operator that it runs."""

    call: str
    owner: str | None = None
    source: str | None = None
    steps: list[str] | None = None
    left_out: str | None = None


def reference(call: Call) -> Reference:
    """The reference of a call, in the names that its buffers have in a launch header."""
    outs = ", ".join(f"out{i}" for i in range(len(call.outputs)))
    inputs = [f"in{i}" for i in range(len(call.inputs))]
    given = ", ".join(
        f"{a.name}={_text(a.value, inputs)}"
        for a in call.arguments
        if a.value is not None and not (call.region and a.name == PROGRAM)
    )
    shown = f"{outs} = {call.name}({given})"
    if call.region is None:
        return Reference(call=shown)
    steps = listing(call.region, inputs)
    return Reference(
        call=shown,
        owner=call.region.owner,
        source=_cut(call.region.source) or None,
        steps=steps[:MAX_LINES],
        left_out=left_out(min(MAX_LINES, len(steps)), len(steps), "the source stands"),
    )


def listing(region: Region, inputs: Sequence[str]) -> list[str]:
    """The operators of a region, one a line, then what it returns."""
    names, lines = list(inputs), []
    for step in region.steps:
        made = [f"v{len(names) + i}" for i in range(step.results)]
        operator = step.operator + (f".{step.overload}" if step.overload else "")
        given = _given(step.arguments, names)
        lines.append(f"{', '.join(made)} = {operator}({given})" if made else f"{operator}({given})")
        names += made
    returned = [names[n] for n in region.returns if n >= 0]
    return [*lines, *(f"out{i} = {name}" for i, name in enumerate(returned))]


def _given(arguments: Sequence[Argument], names: Sequence[str]) -> str:
    """Arguments as a call shows them: leading tensors by themselves, all else with its name."""
    leading, texts = True, []
    for argument in arguments:
        leading = leading and _is_tensor(argument.value)
        text = _text(argument.value, names)
        if argument.value is not None:
            texts.append(text if leading else f"{argument.name}={text}")
    return ", ".join(texts)


def _is_tensor(value: Json) -> bool:
    return isinstance(value, dict) and "tensor" in value


def _text(value: Json, names: Sequence[str]) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_text(entry, names) for entry in value)}]"
    if isinstance(value, dict):
        (held,) = value.values()
        return names[held] if "tensor" in value and isinstance(held, int) else str(held)
    return json.dumps(value)


def _cut(source: str) -> str:
    if len(source) <= MAX_SOURCE_CHARS:
        return source
    return f"{source[:MAX_SOURCE_CHARS]}\n(cut; the steps hold all of it)"
