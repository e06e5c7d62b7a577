"""A transcript as people read it: Markdown."""

import json
import re
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

SHOWN_CHARS = 2_000
REMARKS = {
    "fork": "From here on apart from session {of}.",
    "resume": "Another process goes on here.",
    "api_retry": "The model was asked again: {why}",
    "error": "Failed: {text}",
    "end": "Ended: {how}.",
}


def markdown(author: str, records: list[Json]) -> str:
    """What one author was told, said and did."""
    turns = 0
    parts = [f"# Author {author}"]
    for record in records:
        turns += record["type"] == "message"
        parts += _parts(record, turns)
    return "\n\n".join(parts) + "\n"


def _parts(record: Json, turns: int) -> Iterator[str]:
    match record["type"]:
        case "reply" if record["text"]:
            yield "## Told"
            yield _fenced(record["text"])
        case "message":
            yield from _turn(record, turns)
        case "tool_result":
            yield f"**{record['tool']}** gave `{record['status']}` in {record['seconds']:.1f} s:"
            yield _fenced(_shortened(_answer(record)))
            if record["brief"]:
                yield _fenced(record["brief"])
        case kind if kind in REMARKS:
            yield f"*{REMARKS[kind].format(**record)}*"


def _turn(record: Json, number: int) -> Iterator[str]:
    yield f"## Turn {number}"
    if record["text"]:
        yield record["text"]
    for call in record["calls"]:
        yield from _call(call)


def _call(call: Json) -> Iterator[str]:
    """A call; a source is shown as the file that it is."""
    given = dict(call["arguments"] or {})
    source = given.pop("source", None)
    yield f"**{call['tool']}**"
    if given:
        yield _fenced(json.dumps(given, ensure_ascii=False), "json")
    if source:
        yield _fenced(str(source), "cpp")


def _answer(record: Json) -> str:
    answer = record["answer"]
    if answer is None:
        return str(record["error"])
    found = {name: value for name, value in answer.items() if name == "data" and value}
    return "\n".join([str(answer.get("summary", "")), *(json.dumps(v) for v in found.values())])


def _shortened(text: str) -> str:
    if len(text) <= SHOWN_CHARS:
        return text
    return f"{text[:SHOWN_CHARS]}\n({len(text) - SHOWN_CHARS} more characters: --format jsonl)"


def _fenced(text: str, language: str = "") -> str:
    """Text between fences that are longer than any in it."""
    longest = max((len(ticks) for ticks in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
