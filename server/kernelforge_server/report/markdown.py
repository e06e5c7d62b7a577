"""The same report as Markdown, for a pull request or a chat."""

import re
from collections.abc import Iterator

from kernelforge_server.report.sheets import Cell, Page, Picture, Section, Table

SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~&$@!])")
CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


def markdown(page: Page) -> str:
    """The report; what is not ours stands as text in it, whatever it holds."""
    return "\n".join(_lines(page))


def _lines(page: Page) -> Iterator[str]:
    yield f"# {_text(page.title)}"
    yield f"\n**{_text(page.headline)}**\n"
    yield from (f"> Doubtful. {_text(warning)}\n" for warning in page.warnings)
    heads = [(t.name, f"{t.figure} ({t.aside})") for t in page.tiles]
    yield "| | |\n|---|---|"
    yield from (f"| {_text(n)} | {_text(t)} |" for n, t in (*heads, *page.facts))
    for section in page.sections:
        yield from _section(section)
    yield f"\n{_text(page.made)}\n"


def _section(section: Section) -> Iterator[str]:
    yield f"\n## {_text(section.heading)}\n"
    yield from (f"{_text(text)}\n" for text in section.texts)
    for table in section.tables:
        yield from _table(table)
    for picture in section.pictures:
        yield from _tree(picture)
    yield from (f"{_text(text)}\n" for text in section.small)


def _tree(picture: Picture) -> Iterator[str]:
    yield f"### {_text(picture.heading)}\n"
    yield f"{_text(picture.drawing.told)}\n"
    yield from _table(picture.table)


def _table(table: Table) -> Iterator[str]:
    yield f"{_text(table.caption)}:\n"
    yield f"| {' | '.join(_text(column.name) for column in table.columns)} |"
    yield f"|{'|'.join('---:' if column.is_number else '---' for column in table.columns)}|"
    yield from (f"| {' | '.join(map(_cell, row))} |" for row in table.rows)
    yield f"\n{_text(table.left)}\n" if table.left else ""


def _cell(cell: Cell) -> str:
    return "<br>".join(_text(text) for text in (cell.text, *cell.more))


def _text(text: str) -> str:
    """A text on one line, with every character that Markdown or HTML would read escaped."""
    return SPECIAL.sub(r"\\\1", CONTROL.sub(" ", text))
