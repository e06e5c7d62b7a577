"""The picture of a revision tree: a row for every node, below its parent, with its speed-up over
eager and the interval of it on one logarithmic axis."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Literal

from kernelforge_engine.exchanges import Attempt
from kernelforge_engine.records import Node, Outcome, Status, Timing
from kernelforge_server.report import figures
from kernelforge_tools.wording import counted

ROW, TOP, BOTTOM = 26, 34, 12
LEFT, STEP, DEEPEST = 14, 20, 140  # of the tree itself
WORDS, AXIS, MARGIN = 290, 440, 34  # the widths of what stands beside it
MOST_NODES = 60
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0)
LEAST_RANGE = 1.25

Tone = Literal["eager", "faster", "slower", "unclear", "failed"]
TONES: dict[Outcome, Tone] = {Outcome.FASTER: "faster", Outcome.SLOWER: "slower"}


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A node, or the attempts below one that failed in one way; `span` is its interval on the axis
    with the speed-up between, where it was timed."""

    x: float
    y: float
    name: str
    words: str
    tone: Tone
    is_best: bool = False
    span: tuple[float, float, float] | None = None


@dataclass(frozen=True, kw_only=True)
class Edge:
    """From a parent down and to the right, as the path of an SVG."""

    path: str
    is_best: bool


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A picture with all its places computed; `told` says what it shows."""

    width: float
    height: float
    beside: float
    marks: tuple[Mark, ...]
    edges: tuple[Edge, ...]
    ticks: tuple[tuple[float, str], ...]
    told: str
    left_out: str | None


@dataclass(frozen=True, kw_only=True)
class _Row:
    depth: int
    parent: int | None
    node: Node | None = None
    failed: tuple[Attempt, ...] = ()


def drawn(nodes: Sequence[Node], attempts: Sequence[Attempt], best: Node | None) -> Drawing:
    """The picture of a tree that has at least its root."""
    known = {node.id: node for node in nodes}
    path = _line(known, best)
    shown = _shown(known, path)
    rows = _rows(shown, attempts)
    axis = _Axis([n.timing for n in shown if n.timing])
    step = min(STEP, DEEPEST / max(row.depth for row in rows)) if len(rows) > 1 else STEP
    beside = LEFT + step * max(row.depth for row in rows) + STEP
    at = beside + WORDS
    places = [(LEFT + step * row.depth, TOP + ROW * (i + 0.5)) for i, row in enumerate(rows)]
    pairs = zip(rows, places, strict=True)
    marks = tuple(_mark(row, place, path, axis, at) for row, place in pairs)
    left = len(nodes) - len(shown)
    return Drawing(
        width=round(at + AXIS + MARGIN, 1),
        height=TOP + ROW * len(rows) + BOTTOM,
        beside=round(beside, 1),
        marks=marks,
        edges=tuple(sorted(_edges(rows, places, marks), key=lambda edge: edge.is_best)),
        ticks=tuple((round(at + axis.place(t), 1), f"{t:g}x") for t in axis.ticks),
        told=_told(nodes, attempts, best, path),
        left_out=f"{counted(left, 'slower node')} not drawn." if left else None,
    )


class _Axis:
    """A logarithmic axis that holds eager's speed and every interval."""

    def __init__(self, timings: Sequence[Timing]) -> None:
        self._low = min([1 / LEAST_RANGE, *(t.low for t in timings if t.low > 0)])
        self._high = max([LEAST_RANGE, *(t.high for t in timings)])
        inside = [t for t in TICKS if self._low <= t <= self._high]
        every = len(inside) // 6 + 1
        self.ticks = sorted({1.0, *inside[::every]}) if every > 1 else inside

    def place(self, speedup: float) -> float:
        """Where a speed-up is, from the left end."""
        within = min(max(speedup, self._low), self._high)
        return AXIS * log(within / self._low) / log(self._high / self._low)


def _line(known: Mapping[str, Node], node: Node | None) -> list[str]:
    """What led to a node, eager first."""
    line: list[str] = []
    at = node
    while at is not None:
        line.insert(0, at.id)
        at = known.get(at.parent_id or "")
    return line


def _shown(known: Mapping[str, Node], path: Sequence[str]) -> list[Node]:
    """All nodes, or the fastest with what they were made from."""
    if len(known) <= MOST_NODES:
        return list(known.values())
    kept = set(path)
    for node in sorted(known.values(), key=lambda n: -(n.timing.speedup if n.timing else 0.0)):
        line = {*kept, *_line(known, node)}
        if len(line) <= MOST_NODES:
            kept = line
        if len(kept) >= MOST_NODES:
            break
    return [node for name, node in known.items() if name in kept]


def _rows(nodes: Sequence[Node], attempts: Sequence[Attempt]) -> list[_Row]:
    """Depth first; below a node its failed attempts by status, then its children, oldest first."""
    children: dict[str | None, list[Node]] = {}
    for node in nodes:
        children.setdefault(node.parent_id, []).append(node)
    failed: dict[str, dict[Status, list[Attempt]]] = {}
    for attempt in reversed(attempts):
        below = failed.setdefault(attempt.parent_id, {})
        below.setdefault(attempt.verdict.status, []).append(attempt)
    rows: list[_Row] = []
    waiting: list[tuple[Node, int, int | None]] = [(n, 0, None) for n in children.get(None, ())]
    while waiting:
        node, depth, parent = waiting.pop()
        place = len(rows)
        rows.append(_Row(depth=depth, parent=parent, node=node))
        groups = failed.get(node.id, {}).values()
        rows += [_Row(depth=depth + 1, parent=place, failed=tuple(group)) for group in groups]
        waiting += [(child, depth + 1, place) for child in reversed(children.get(node.id, []))]
    return rows


def _mark(
    row: _Row, place: tuple[float, float], path: Sequence[str], axis: _Axis, at: float
) -> Mark:
    x, y = round(place[0], 1), round(place[1], 1)
    if row.node is None:
        status = row.failed[0].verdict.status.replace("_", " ")
        names = ", ".join(attempt.id for attempt in row.failed[:2])
        count = f"{len(row.failed)} times " if len(row.failed) > 1 else ""
        rest = ", ..." if len(row.failed) > 2 else ""
        return Mark(x=x, y=y, name=names + rest, words=f"{count}{status}", tone="failed")
    node, timing = row.node, row.node.timing
    span = None
    if timing:
        ends = (at + axis.place(v) for v in (timing.low, timing.speedup, timing.high))
        low, middle, high = (round(end, 1) for end in ends)
        span = (low, middle, high)
    return Mark(
        x=x,
        y=y,
        name="eager" if node.parent_id is None else node.id,
        words=_words(node),
        tone=_tone(node),
        is_best=node.id in path and node.parent_id is not None,
        span=span,
    )


def _words(node: Node) -> str:
    if node.parent_id is None:
        return "the model's own operator"
    if node.verdict is not None and node.verdict.status != Status.VALID:
        return f"{node.verdict.status.replace('_', ' ')}, found later"
    if node.timing is None:
        return "valid, not timed"
    said = "" if node.timing.outcome in TONES else f" {node.timing.outcome}"
    return f"{figures.speedup(node.timing)}{said}"


def _tone(node: Node) -> Tone:
    if node.parent_id is None:
        return "eager"
    if node.verdict is not None and node.verdict.status != Status.VALID:
        return "failed"
    return TONES.get(node.timing.outcome, "unclear") if node.timing else "unclear"


def _edges(
    rows: Sequence[_Row], places: Sequence[tuple[float, float]], marks: Sequence[Mark]
) -> Iterator[Edge]:
    for row, (x, y), mark in zip(rows, places, marks, strict=True):
        if row.parent is not None:
            left, above = places[row.parent]
            path = f"M{left:.1f} {above:.1f}V{y:.1f}H{x:.1f}"
            yield Edge(path=path, is_best=mark.is_best)


def _told(
    nodes: Sequence[Node], attempts: Sequence[Attempt], best: Node | None, path: Sequence[str]
) -> str:
    valid = sum(node.parent_id is not None for node in nodes)
    told = f"{counted(valid, 'node')} below eager, {counted(len(attempts), 'failed attempt')}."
    if best is None or best.timing is None:
        return f"{told} None was timed."
    line = " to ".join(["eager", *path[1:]])
    return f"{told} The best is {best.id} with {figures.speedup(best.timing)}: {line}."
