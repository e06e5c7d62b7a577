"""The library: hand-written kernels that are offered for a call, with no model and no network."""

from collections.abc import Callable, Iterator

from kernelforge_engine.calls import Call
from kernelforge_engine.library import dots, elementwise, norms, rows, windows
from kernelforge_engine.library.match import Offer, Site

__all__ = ["Offer", "offers"]

FAMILIES: dict[str, Callable[[Site], Iterator[Offer]]] = {
    **elementwise.FAMILIES,
    **rows.FAMILIES,
    **norms.FAMILIES,
    **windows.FAMILIES,
    **dots.FAMILIES,
}
# Operators whose in-place form, with an underscore, is served by the same kernels.
IN_PLACE = frozenset(elementwise.FAMILIES)


def offers(call: Call) -> tuple[Offer, ...]:
    """The library's candidates for a call, each another idea, best first; none where it has none.

    A kernel is offered only where its layout assumptions hold for this call. Sizes stay expressions
    of the launch header, and a plan refuses sizes its kernel was not rendered for.
    """
    family = FAMILIES.get(call.name)
    if family is None and call.operator.endswith("_"):
        base = call.name.replace("_.", ".", 1) if call.overload else call.name[:-1]
        family = FAMILIES[base] if base in IN_PLACE else None
    if family is None or not _ordinary(call):
        return ()
    return tuple(family(Site(call)))


def _ordinary(call: Call) -> bool:
    """Something to compute, one device, and no writes but an in-place operator's."""
    tensors = [*call.inputs, *(o.tensor for o in call.outputs)]
    writes = (0,) if call.operator.endswith("_") else ()
    return (
        len(call.inputs) > 0
        and len(call.outputs) > 0
        and all(t.numel > 0 for t in tensors)
        and len({t.device for t in tensors}) == 1
        and call.mutated == writes
        and all(o.alias == (writes[0] if writes else None) for o in call.outputs)
    )
