"""Rows of integers as whole multiples of one or two of their own columns, exactly or not at all."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, product
from math import gcd

Numbers = tuple[int, ...]

FEWEST = {1: 2, 2: 4}  # rows that a fit in so many symbols needs
FEW = 4  # fewer rows than this lie on one line too easily
MOST_HELD_OUT = 3
SPOTS = ((0.5, 0.5), (0.25, 0.75), (0.75, 0.25))  # where in the range a size is held out


@dataclass(frozen=True, kw_only=True)
class Places:
    """What the columns are: `sizes` of each tensor, and integer `arguments`; the rest is strides
    and the like, which follow."""

    sizes: tuple[Numbers, ...]
    arguments: Numbers


@dataclass(frozen=True, kw_only=True)
class Fit:
    """`rows` has for every column its constant and its multiple of each symbol; `columns` says
    which columns the symbols are."""

    columns: Numbers
    rows: tuple[Numbers, ...]

    def symbols_of(self, vector: Numbers) -> Numbers:
        """The values of the symbols in one row."""
        return tuple(vector[c] for c in self.columns)


def evaluated(rows: Iterable[Numbers], values: Sequence[int]) -> Numbers:
    """The numbers that a fit gives for values of its symbols."""
    return tuple(
        constant + sum(k * v for k, v in zip(multiples, values, strict=True))
        for constant, *multiples in rows
    )


def fitted(vectors: Sequence[Numbers], places: Places, count: int) -> Fit | None:
    """The first fit in `count` symbols that holds for every row and is no accident."""
    if len(vectors) < FEWEST[count]:
        return None
    for columns in combinations(_candidates(vectors, places), count):
        rows = _solved(vectors, columns)
        if rows is not None and _is_evident(vectors, Fit(columns=columns, rows=rows), places):
            return Fit(columns=columns, rows=rows)
    return None


def _candidates(vectors: Sequence[Numbers], places: Places) -> list[int]:
    """The varying sizes, each once; the varying strides where every size is the same."""
    table = list(zip(*vectors, strict=True))
    dims = [place for shape in places.sizes for place in shape]
    strides = sorted(set(range(len(table))) - set(dims) - set(places.arguments))
    for kind in (dims, strides):
        first = {table[place]: place for place in reversed(kind) if len(set(table[place])) > 1}
        if first:
            return sorted(first.values())
    return []


def _solved(vectors: Sequence[Numbers], columns: Numbers) -> tuple[Numbers, ...] | None:
    """A constant and multiples of the symbols for every column, by Cramer's rule."""
    base = vectors[0]
    steps = [tuple(v[c] - base[c] for c in columns) for v in vectors]
    chosen = _independent(steps)
    if len(chosen) < len(columns):
        return None
    matrix = [steps[i] for i in chosen]
    rows = []
    for place in range(len(base)):
        row = _row([vectors[i][place] - base[place] for i in chosen], matrix)
        if row is None:
            return None
        rows.append((base[place] - _dot(row, [base[c] for c in columns]), *row))
    found = tuple(rows)
    holds = all(evaluated(found, [v[c] for c in columns]) == v for v in vectors)
    return found if holds else None


def _independent(steps: Sequence[Numbers]) -> list[int]:
    """As many rows as there are symbols, that lie in no line; fewer where there are not so many."""
    chosen: list[int] = []
    for i, step in enumerate(steps):
        basis = [steps[c] for c in chosen]
        if len(basis) < len(step) and (
            _det([*basis, step]) if basis or len(step) == 1 else any(step)
        ):
            chosen.append(i)
    return chosen


def _row(wanted: Sequence[int], matrix: Sequence[Numbers]) -> Numbers | None:
    """The multiples of the symbols that give the wanted steps, None unless whole and positive."""
    if not any(wanted):
        return (0,) * len(matrix)
    whole, row = _det(matrix), []
    for i in range(len(matrix)):
        swapped = [(*m[:i], w, *m[i + 1 :]) for m, w in zip(matrix, wanted, strict=True)]
        multiple, rest = divmod(_det(swapped), whole)
        if rest or multiple < 0:
            return None
        row.append(multiple)
    return tuple(row)


def _det(matrix: Sequence[Numbers]) -> int:
    if len(matrix) == 1:
        return matrix[0][0]
    (a, b), (c, d) = matrix
    return a * d - b * c


def _dot(first: Sequence[int], second: Sequence[int]) -> int:
    return sum(a * b for a, b in zip(first, second, strict=True))


def _is_evident(vectors: Sequence[Numbers], fit: Fit, places: Places) -> bool:
    """Whether a fit can be believed: few rows fit by accident, and an argument that moves with no
    size (which dimension to reduce) is no size."""
    tensors = [[r for r in (fit.rows[p] for p in shape) if any(r[1:])] for shape in places.sizes]
    known = [row for rows in tensors for row in rows]
    moving = [fit.rows[p] for p in places.arguments if any(fit.rows[p][1:])]
    if not all(any(_follows(row, size) for size in known) for row in moving):
        return False
    if len(fit.columns) > 1:
        return _spans([fit.symbols_of(v) for v in vectors])
    if len(vectors) < FEW and any(len(set(rows)) > 1 for rows in tensors):
        return False
    return len(vectors) > FEWEST[1] or all(row[0] == 0 or row[1] == 1 for row in known)


def _follows(row: Numbers, size: Numbers) -> bool:
    """Whether an argument is a size and a constant, or a multiple of that size."""
    if row[1:] == size[1:]:
        return True
    times = max(row[1:]) // max(size[1:])
    return times > 0 and row == tuple(times * n for n in size)


def _spans(points: Sequence[Numbers]) -> bool:
    """Whether no line holds all points but one: it would hold two of the first three."""
    for (a, b), (c, d) in combinations(points[:3], 2):
        off = sum((c - a) * (q - b) != (d - b) * (p - a) for p, q in points)
        if off < 2:
            return False
    return True


def lines(vectors: Sequence[Numbers]) -> set[tuple[int, ...]]:
    """Every set of two or more rows that lie on one line on which no number falls."""
    points = list(zip(*_shapes_of_columns(vectors), strict=True))
    found: set[tuple[int, ...]] = set()
    for i, base in enumerate(points):
        along: dict[Numbers, list[int]] = {}
        for k, point in enumerate(points):
            step = [b - a for a, b in zip(base, point, strict=True)]
            if k == i or min(step) < 0 < max(step):
                continue
            size = gcd(*step) * (1 if max(step) > 0 else -1)
            along.setdefault(tuple(n // size for n in step), []).append(k)
        found.update(tuple(sorted([i, *others])) for others in along.values())
    return found


def _shapes_of_columns(vectors: Sequence[Numbers]) -> list[Numbers]:
    """The varying columns, each kept once of those that only differ by offset and scale."""
    found: dict[Numbers, None] = {}
    for column in zip(*vectors, strict=True):
        steps = [n - column[0] for n in column]
        scale = gcd(*steps)
        if scale:
            found[tuple(n // scale for n in steps)] = None
    return list(found)


def step_of(values: Iterable[int]) -> int:
    """The largest step that leads from each value to every other; 1 where there is one value."""
    ordered = sorted(set(values))
    return gcd(*(b - a for a, b in pairwise(ordered))) or 1


def held_out(vectors: Sequence[Numbers], fit: Fit, places: Places) -> tuple[Numbers, ...]:
    """Values of the symbols inside the range of the rows that no row has, where there are any."""
    members = {fit.symbols_of(v) for v in vectors}
    low, high = (tuple(f(c) for c in zip(*vectors, strict=True)) for f in (min, max))
    sized = {place for shape in places.sizes for place in shape}
    axes = [
        sorted(_along([m[i] for m in members], column in sized))
        for i, column in enumerate(fit.columns)
    ]

    def allowed(values: Numbers) -> bool:
        row = evaluated(fit.rows, values)
        return all(a <= n <= b for a, n, b in zip(low, row, high, strict=True))

    free = [v for v in product(*axes) if v not in members and allowed(v)]
    chosen: list[Numbers] = []
    for spot in SPOTS[: min(MOST_HELD_OUT, len(free))]:
        wanted = [a[0] + s * (a[-1] - a[0]) for a, s in zip(axes, spot, strict=False)]
        left = [v for v in free if v not in chosen]
        chosen.append(min(left, key=lambda v: (distance(v, wanted), v)))
    return tuple(sorted(chosen))


def distance(values: Numbers, wanted: Sequence[float]) -> float:
    """How far two sizes lie apart."""
    return sum(abs(v - w) for v, w in zip(values, wanted, strict=True))


def _along(values: Sequence[int], divisible: bool) -> set[int]:
    """The values of one symbol, and some between them: on the members' own grid, or on a finer one
    where that has no gap."""
    have = set(values)
    step = step_of(have)
    while not (found := set(_between(have, step))) and divisible and step > 1:
        step = step // 2 if step % 2 == 0 else 1
    return have | found


def _between(have: set[int], step: int) -> Iterator[int]:
    """Up to three values on a grid that are missing, near the spots."""
    low, high = min(have), max(have)
    for spot, _ in SPOTS:
        middle = low + int((high - low) // step * spot) * step
        reach = (middle + way * i * step for i in range(len(have) + 1) for way in (1, -1))
        near = next((v for v in reach if low < v < high and v not in have), None)
        if near is not None:
            yield near
