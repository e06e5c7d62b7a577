"""What a report consists of before it is HTML or Markdown: sections of texts, tables, pictures."""

from dataclasses import dataclass
from typing import Literal

from kernelforge_server.report.drawing import Drawing

Tone = Literal["", "good", "bad", "quiet"]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What stands in one place of a table: a text, smaller lines below it, a bar for a part."""

    text: str
    more: tuple[str, ...] = ()
    tone: Tone = ""
    part: float | None = None

    @property
    def width(self) -> str:
        """The length of the bar."""
        return f"{100 * min(max(self.part or 0.0, 0.0), 1.0):.1f}"


@dataclass(frozen=True, kw_only=True)
class Column:
    """The head of a column; numbers are set to the right."""

    name: str
    is_number: bool = False


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table with its caption; the first cell of a row names it. `left` says what is missing."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    left: str | None = None


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One of several lengths that are compared."""

    name: str
    text: str
    part: float
    tone: Tone = ""


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A revision tree: its picture, every candidate in a table, and the best source."""

    heading: str
    aside: str
    drawing: Drawing
    table: Table
    source: str | None
    source_of: str


@dataclass(frozen=True, kw_only=True)
class Tile:
    """One figure that a reader should not miss."""

    name: str
    figure: str
    aside: str
    tone: Tone = ""


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the page, in this order: texts, bars, tables, trees, and what is small print."""

    name: str
    heading: str
    texts: tuple[str, ...] = ()
    bars: tuple[Bar, ...] = ()
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()
    small: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Page:
    """The whole report."""

    title: str
    headline: str
    tone: Tone
    facts: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]
    tiles: tuple[Tile, ...]
    sections: tuple[Section, ...]
    made: str


def columns(*names: str) -> tuple[Column, ...]:
    """Heads of columns; those of numbers begin with `>`."""
    return tuple(Column(name=n.removeprefix(">"), is_number=n.startswith(">")) for n in names)


def cells(*texts: str) -> tuple[Cell, ...]:
    """Plain cells."""
    return tuple(Cell(text=text) for text in texts)
