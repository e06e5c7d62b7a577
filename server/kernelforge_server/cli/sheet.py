"""A table without a frame that fits a terminal: ids and numbers are never cut, wrapped or left out.

The first letter of a column's name says what may become of it where there is too little room.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

NUMBER, REASON, DESCRIPTION, EXTRA, WORDS = ">", "!", "<", "-", "~"
MOST = 140
LEAST = 14
GAPS = (2, 1)


@dataclass(kw_only=True)
class Column:
    """One column: a `>` number stays whole, to the right. The others give way in this order: a `!`
    reason is shortened, a `<` description is shortened or dropped, a `-` extra is dropped, and `~`
    words are shortened. A column of no kind stays whole."""

    name: str
    kind: str
    cells: list[str] = field(default_factory=list)

    @property
    def width(self) -> int:
        natural = max(map(len, [self.name, *self.cells]))
        return min(natural, MOST) if self.kind == DESCRIPTION else natural


class Sheet:
    """Rows under named columns; what Rich prints of it depends on the width it is given."""

    def __init__(self, *names: str) -> None:
        kinds = (NUMBER, REASON, DESCRIPTION, EXTRA, WORDS)
        self._columns = [
            Column(name=name.lstrip("".join(kinds)), kind=name[0] if name[0] in kinds else "")
            for name in names
        ]
        self._styles: list[str | None] = []

    def add_row(self, *cells: str, style: str | None = None) -> None:
        """Add a row with a cell for every column."""
        for column, cell in zip(self._columns, cells, strict=True):
            column.cells.append(cell)
        self._styles.append(style)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The lines that fit; too narrow a terminal wraps them itself, and nothing is lost."""
        yield from self.lines(options.max_width)

    def lines(self, width: int) -> Iterator[Text]:
        """The heading and the rows, at most `width` wide if that can be."""
        fits = [(gap, _fitted(self._columns, width, gap)) for gap in GAPS]
        gap, shown = next((g, f) for g, f in fits if _width(f, g) <= width or g == GAPS[-1])
        yield Text(_joined([(c, w, c.name) for c, w in shown], gap), style="dim", no_wrap=True)
        for row, style in enumerate(self._styles):
            line = _joined([(c, w, c.cells[row]) for c, w in shown], gap)
            yield Text(line, style=style or "", no_wrap=True)


def _width(shown: list[tuple[Column, int]], gap: int) -> int:
    return sum(width + gap for _, width in shown) - gap


def _fitted(columns: list[Column], width: int, gap: int) -> list[tuple[Column, int]]:
    """The columns that are shown, with their widths."""
    widths = {id(c): c.width for c in columns}
    shown = list(columns)

    def over() -> int:
        return _width([(c, widths[id(c)]) for c in shown], gap) - width

    for kind in (REASON, DESCRIPTION, EXTRA, WORDS):
        for column in [c for c in reversed(columns) if c.kind == kind]:
            lacking = max(over(), 0)
            least = min(LEAST, column.width)
            hopeless = kind == DESCRIPTION and column.width - lacking < least
            if lacking and (kind == EXTRA or hopeless):
                shown.remove(column)
            else:
                widths[id(column)] = max(column.width - lacking, least)
    return [(column, widths[id(column)]) for column in shown]


def _joined(cells: list[tuple[Column, int, str]], gap: int) -> str:
    parts = [
        text.rjust(width) if column.kind == NUMBER else _cut(text, width).ljust(width)
        for column, width, text in cells
    ]
    return (" " * gap).join(parts).rstrip()


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
