"""Operators and regions with what was found for them, and what no more work is worth."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from kernelforge_engine.launch.describe import variant_text
from kernelforge_engine.planning import model_share
from kernelforge_engine.records import Variant
from kernelforge_engine.reporting import CardReport, ProjectReport, TargetReport
from kernelforge_engine.search.budget import LEAST_GAIN, amdahl, amdahl_line, not_worth_it
from kernelforge_server.report import figures
from kernelforge_server.report.sheets import Cell, Section, Table, Tone, columns
from kernelforge_tools.findings import OVERLAP, not_targets
from kernelforge_tools.ranking import has_targets
from kernelforge_tools.wording import brief, counted

MENTIONED_SHARE = 0.005
MOST_TARGETS = 4
MOST_LEFT = 40
INPUT_CHARS = 60
FACTORY = ":make_model"


def short(model: str) -> str:
    """The name of a model without its folder."""
    name = model.removesuffix(FACTORY)
    return PurePath(name).name if "/" in name and not name.startswith("hf:") else name


def inputs(variant: Variant) -> str:
    """What tells a variant from others of its operator."""
    text = brief(variant_text(variant.call), INPUT_CHARS) or ""
    if variant.family is None:
        return text
    return f"{text} and {counted(len(variant.family.members) - 1, 'other size')}"


def cards_section(found: ProjectReport) -> Section:
    """Every card that takes time or was worked on, by share."""
    shown = [c for c in found.cards if c.card.share >= MENTIONED_SHARE or _tried(c)]
    left = len(found.cards) - len(shown)
    share = sum(c.card.share for c in found.cards if c not in shown and not c.card.is_region)
    table = Table(
        caption="Operators and regions by their share of operator time",
        columns=columns(
            "Operator", ">Share", ">Eager, all calls", ">Head-room", "Best kernel", "Candidates",
            ">Cost", ">Whole model at most",
        ),
        rows=tuple(_row(one) for one in shown),
        left=f"{counted(left, 'card')} more, {share:.1%} of operator time." if left else None,
    )  # fmt: skip
    texts = [_ceiling(found)] if found.cards else []
    if any(c.card.is_region for c in shown):
        texts.append(OVERLAP)
    if why := not_targets(c.card for c in found.cards):
        texts.append(f"No kernel can be written for: {why}.")
    heading = "Where the time goes, and what was found"
    return Section(name="cards", heading=heading, texts=tuple(texts), tables=(table,))


def _ceiling(found: ProjectReport) -> str:
    """Amdahl's bound for all operators together; regions would count them twice."""
    exact = [c for c in found.cards if not c.card.is_region]
    stakes = [
        (model_share(c.card, v.share), max(v.headroom, 1.0))
        for c in exact
        for v in c.card.variants
        if v.target and v.family is None
    ]
    saved = min(1.0, sum(share * (1 - 1 / headroom) for share, headroom in stakes))
    share = min(1.0, sum(share for share, _ in stakes))
    most = "without bound" if saved >= 1 else f"{1 / (1 - saved):.2f}x"
    return (
        f"Amdahl: kernels can be written for operators that take {share:.1%} of the model's time. "
        f"All of them at their floors would save {saved:.1%} of it, and make the model at most "
        f"{most} as fast; fewer launches, as regions have, come on top."
    )


def _tried(one: CardReport) -> bool:
    return any(target.candidates for target in one.targets)


def _row(one: CardReport) -> tuple[Cell, ...]:
    card = one.card
    share = model_share(card, card.share)
    bound = figures.NONE
    if has_targets(card):
        bound = figures.times(amdahl(share, card.headroom))
    return (
        Cell(text=card.operator, more=(card.id,)),
        Cell(text=figures.part(card.share), part=card.share),
        Cell(text=figures.time(card.total_us), more=(counted(card.calls, "call"),)),
        Cell(text=figures.times(card.headroom)),
        _best(one),
        _candidates(one.targets),
        _cost(one),
        Cell(text=bound),
    )


def _best(one: CardReport) -> Cell:
    timed = [t for t in one.targets if t.best and t.best.timing]
    timed.sort(key=lambda t: (not t.is_faster, -t.variant.share))
    if not timed:
        why = None if has_targets(one.card) else one.card.variants[0].reason
        nothing = "none valid" if _tried(one) else "not tried"
        return Cell(text=why or nothing, tone="quiet")
    lines = [_best_words(target) for target in timed[:MOST_TARGETS]]
    if len(timed) > MOST_TARGETS:
        lines.append(f"and {len(timed) - MOST_TARGETS} more")
    tone: Tone = "good" if timed[0].is_faster else ""
    return Cell(text=lines[0], more=tuple(lines[1:]), tone=tone)


def _best_words(target: TargetReport) -> str:
    node = target.best
    if node is None or node.timing is None:
        return figures.NONE
    said = "" if target.is_faster else f"{node.timing.outcome}: "
    return f"{said}{figures.speedup(node.timing)} {node.label} {node.id} of {target.variant.id}"


def _candidates(targets: Sequence[TargetReport]) -> Cell:
    proposed = sum(target.candidates for target in targets)
    if not proposed:
        return Cell(text="0", tone="quiet")
    refused = Counter(str(a.verdict.status) for t in targets for a in t.attempts)
    valid = proposed - sum(refused.values())
    more = [f"{valid} valid", *([figures.statuses(refused)] if refused else [])]
    return Cell(text=str(proposed), more=tuple(more))


def _cost(one: CardReport) -> Cell:
    spent = one.spending
    devices = [figures.device(spent.device_seconds)] if spent.device_seconds else []
    if not spent.reports:
        return Cell(text=devices[0] if devices else figures.NONE, tone="quiet")
    return Cell(text=figures.cost(spent), more=(f"{figures.tokens(spent)} tokens", *devices))


def left_section(found: ProjectReport) -> Section | None:
    """Targets on which nothing more should be spent, each with its arithmetic."""
    closed = [(one, target) for one in found.cards for target in one.targets if target.why_none]
    if not closed:
        return None
    closed.sort(key=lambda pair: (not pair[1].candidates, -pair[1].stake.share))
    table = Table(
        caption="Targets that get no more proposals",
        columns=columns("Target", "Why", "Arithmetic"),
        rows=tuple(_closed(one, target) for one, target in closed[:MOST_LEFT]),
        left=figures.more(len(closed) - MOST_LEFT, "target"),
    )
    text = (
        "A target is worth a candidate while it could still save half a percent of the model's "
        "time, and while candidates bring something."
    )
    heading = "Not worth it, or done"
    return Section(name="left", heading=heading, texts=(text,), tables=(table,))


def _closed(one: CardReport, target: TargetReport) -> tuple[Cell, ...]:
    stake, why = target.stake, target.why_none or ""
    arithmetic = amdahl_line(stake.share, stake.headroom)
    if not_worth_it(stake) == why:
        why = f"under {LEAST_GAIN:.1%} of the model's time to save"
    else:
        arithmetic += f"; {stake.left:.2%} are left to save"
    name = Cell(text=one.card.operator, more=(f"{target.variant.id}: {inputs(target.variant)}",))
    return name, Cell(text=why), Cell(text=arithmetic, tone="quiet")


def worked_on(found: ProjectReport) -> Iterator[tuple[CardReport, TargetReport]]:
    """Targets that were worked on, those with most of the time first."""
    worked = [(one, t) for one in found.cards for t in one.targets if t.candidates]
    return iter(sorted(worked, key=lambda pair: (not pair[1].is_faster, -pair[1].variant.share)))
