"""Shape families as an agent reads them: which sizes vary, over which range, and who is in it."""

from kernelforge_engine.calls import Call
from kernelforge_engine.fitting import evaluated
from kernelforge_engine.records import Family, Member, Variant
from kernelforge_tools.answer import View
from kernelforge_tools.wording import counted, left_out, number_text, rounded

SHOWN_MEMBERS = 3
MAX_MEMBERS = 40
MAX_VARYING = 12
HINT = (
    "One source is judged at members and at held_out sizes: read sizes through expressions "
    "(in0.shape[1]), bake none in."
)


class FamilyView(View):
    """Variants that differ in sizes only, served by one source."""

    symbols: dict[str, str]
    """The range of every varying size."""
    varying: dict[str, str]
    """Where the sizes stand in the tensors."""
    members: list[str]
    left_out: str | None = None
    held_out: list[list[int]]
    hint: str = HINT

    @classmethod
    def of(cls, family: Family, *, full: bool = False) -> "FamilyView":
        """The view of a family, with its dearest members or, `full`, as many as fit."""
        dearest = sorted(family.members, key=lambda m: -m.calls * m.eager_us)
        kept = set(map(id, dearest[: MAX_MEMBERS if full else SHOWN_MEMBERS]))
        shown = [m for m in family.members if id(m) in kept]
        return cls(
            symbols=ranges(family),
            varying=varying(family),
            members=[_member(family, m) for m in shown],
            left_out=left_out(len(shown), len(family.members), _rest(full)),
            held_out=[list(sizes) for sizes in family.held_out],
        )


class FamilyRow(View):
    """A family of a card in short."""

    id: str
    symbols: dict[str, str]
    members: int
    calls: int
    share: float
    headroom: float
    not_a_target: str | None = None

    @classmethod
    def of(cls, variant: Variant, family: Family) -> "FamilyRow":
        """The row of a family variant."""
        return cls(
            id=variant.id,
            symbols=ranges(family),
            members=len(family.members),
            calls=variant.calls,
            share=rounded(variant.share),
            headroom=rounded(variant.headroom),
            not_a_target=None if variant.target else variant.reason,
        )


def ranges(family: Family) -> dict[str, str]:
    """The smallest and the largest value of every symbol."""
    columns = zip(*(m.sizes for m in family.members), strict=True)
    return {
        symbol: f"{min(values)} to {max(values)}"
        for symbol, values in zip(family.symbols, columns, strict=True)
    }


def varying(family: Family) -> dict[str, str]:
    """The dimensions that differ among the members, as what they are in the symbols."""
    listed = [_dimensions(m.call) for m in family.members]
    found = {}
    for name, first in listed[0].items():
        values = tuple(dimensions[name] for dimensions in listed)
        if any(value != first for value in values):
            found[name] = _fitted(family, values)
    return dict(list(found.items())[:MAX_VARYING])


def _dimensions(call: Call) -> dict[str, int]:
    specs = {f"in{i}": spec for i, spec in enumerate(call.inputs)}
    specs |= {f"out{i}": output.tensor for i, output in enumerate(call.outputs)}
    return {f"{n}.shape[{d}]": s for n, spec in specs.items() for d, s in enumerate(spec.shape)}


def _fitted(family: Family, values: tuple[int, ...]) -> str:
    """The fit that has these values at the members."""
    for fit in family.fits:
        if values == tuple(evaluated([fit], m.sizes)[0] for m in family.members):
            return _expression(fit, family.symbols)
    return "varies"


def _expression(fit: tuple[int, ...], symbols: tuple[str, ...]) -> str:
    terms = [s if k == 1 else f"{k} * {s}" for k, s in zip(fit[1:], symbols, strict=True) if k]
    return " + ".join([*terms, str(fit[0])] if fit[0] or not terms else terms)


def _member(family: Family, member: Member) -> str:
    named = zip(family.symbols, member.sizes, strict=True)
    sizes = ", ".join(f"{symbol} = {size}" for symbol, size in named)
    return f"{sizes}: {counted(member.calls, 'call')}, {number_text(member.eager_us)} us"


def _rest(full: bool) -> str:
    return "the dearest stand" if full else 'sections=["all_variants"]'
