"""The arguments of a call as an agent reads them, and the names a launch header may use."""

from kernelforge_engine.calls import Call, Json
from kernelforge_engine.launch.describe import owners, tensor_text
from kernelforge_engine.launch.resolve import environment
from kernelforge_tools.answer import View
from kernelforge_tools.wording import left_out

SHOWN_INPUTS = 10
SHOWN_OUTPUTS = 4


class HeaderReference(View):
    """What a launch header for one variant may name."""

    variant_id: str
    buffers: dict[str, str]
    """Each buffer's tensor, then the argument it belongs to or the block it shares."""
    names: dict[str, Json]
    """The operator's own numbers, usable in expressions, with their values here."""
    left_out: str | None = None


def header_reference(variant_id: str, call: Call, *, full: bool = False) -> HeaderReference:
    """The buffers and names of one variant, in launch order; long lists shortened or `full`."""
    inputs, outputs = _inputs(call), _outputs(call)
    shown_inputs = inputs if full else inputs[:SHOWN_INPUTS]
    shown = [*shown_inputs, *(outputs if full else outputs[:SHOWN_OUTPUTS])]
    usable = environment(call)
    return HeaderReference(
        variant_id=variant_id,
        buffers=dict(shown),
        names={a.name: a.value for a in call.arguments if a.name in usable},
        left_out=left_out(len(shown), len(inputs) + len(outputs), 'sections=["reference"]'),
    )


def _inputs(call: Call) -> list[tuple[str, str]]:
    owner = owners(call)
    return [
        (f"in{i}", f"{tensor_text(spec)} {owner.get(i, '')}".rstrip())
        for i, spec in enumerate(call.inputs)
    ]


def _outputs(call: Call) -> list[tuple[str, str]]:
    return [
        (f"out{i}", tensor_text(o.tensor) + ("" if o.alias is None else f", same as in{o.alias}"))
        for i, o in enumerate(call.outputs)
    ]
