"""The rows of what a capture found: operators, regions and shape families."""

from collections.abc import Sequence

from kernelforge_engine.launch.describe import tensor_text
from kernelforge_engine.records import Capture, Variant
from kernelforge_server.cli.sheet import Sheet
from kernelforge_server.cli.tables import microseconds
from kernelforge_tools.families import ranges
from kernelforge_tools.plans import PlanRow


def operators_table(variants: Sequence[Variant], made: Capture) -> Sheet:
    """Exact variants of operators."""
    sheet = Sheet("card", "~operator", "variant", "<inputs", ">calls", ">eager", ">share", ">wall",
                  ">head-room", ">gain")  # fmt: skip
    for variant in variants:
        sheet.add_row(
            variant.card_id,
            variant.call.name,
            variant.id,
            " ".join(tensor_text(spec) for spec in variant.call.inputs),
            str(variant.calls),
            microseconds(variant.eager_us),
            f"{variant.share:.1%}",
            _wall(variant, made),
            f"{variant.headroom:.1f}x",
            f"{variant.gain:.1%}",
        )
    return sheet


def _wall(variant: Variant, made: Capture) -> str:
    return f"{variant.calls * variant.eager_us / made.wall_us:.1%}" if made.wall_us else "-"


def regions_table(variants: Sequence[Variant], _made: Capture) -> Sheet:
    """Regions, with the operators that one call of each runs."""
    sheet = Sheet("card", "~region", "variant", ">calls", ">launches", ">eager", ">share",
                  ">head-room", ">gain", "<operators inside", "<within")  # fmt: skip
    for variant in variants:
        sheet.add_row(
            variant.card_id,
            variant.call.operator.partition("::")[2],
            variant.id,
            str(variant.calls),
            "-" if variant.launches is None else str(variant.launches),
            microseconds(variant.eager_us),
            f"{variant.share:.1%}",
            f"{variant.headroom:.1f}x",
            f"{variant.gain:.1%}",
            _inside(variant),
            ", ".join(name.partition("::")[2] or name for name in variant.within) or "-",
        )
    return sheet


def _inside(variant: Variant) -> str:
    """The operators of a region, as `linear x3, silu, mul`."""
    names: dict[str, int] = {}
    for inner in variant.inside:
        name = inner.operator.partition("::")[2].partition(".")[0]
        names[name] = names.get(name, 0) + inner.calls
    return ", ".join(f"{name} x{n}" if n > 1 else name for name, n in names.items())


def families_table(variants: Sequence[Variant], _made: Capture) -> Sheet:
    """Shape families, with the sizes they were seen at."""
    sheet = Sheet("card", "~operator", "variant", "<sizes", ">members", ">calls", ">share",
                  ">head-room", ">gain")  # fmt: skip
    for variant in variants:
        sheet.add_row(
            variant.card_id,
            variant.call.name.removeprefix("region::"),
            variant.id,
            _sizes(variant),
            str(len(variant.family.members) if variant.family else 0),
            str(variant.calls),
            f"{variant.share:.1%}",
            f"{variant.headroom:.1f}x",
            f"{variant.gain:.1%}",
        )
    return sheet


def plan_table(rows: Sequence[PlanRow]) -> Sheet:
    """How a budget is spent, with why a target is given nothing."""
    sheet = Sheet(">proposals", "variant", "~operator", ">left to save", ">chance", ">tried",
                  ">best", "<why none")  # fmt: skip
    for row in rows:
        sheet.add_row(
            str(row.proposals),
            row.variant_id,
            row.operator.removeprefix("region::"),
            f"{row.left:.2%}",
            f"{row.chance:.0%}",
            str(row.tried or 0),
            f"{row.best:.3g}x" if row.best else "-",
            row.why_none or "",
        )
    return sheet


def _sizes(variant: Variant) -> str:
    """The range of every size of a family, as `s0 = 12 to 16`."""
    if variant.family is None:
        return ""
    named = ranges(variant.family).items()
    return ", ".join(f"{symbol} = {values}" for symbol, values in named)
