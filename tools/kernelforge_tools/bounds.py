"""How much a tool takes and how much it answers, whatever it is asked."""

import json
from typing import Any

from mcp.server.mcpserver.exceptions import ToolError

from kernelforge_engine.plans import MAX_SOURCE_BYTES

MAX_TEXT_BYTES = 4096
MAX_ENTRIES = 256
MAX_INTEGER = 2**63 - 1
LONG_TEXTS = {"source": MAX_SOURCE_BYTES}
MAX_ANSWER_CHARS = 40_000  # some clients cut there without a word, others write it to a file
SPARE_CHARS = 400  # for the words that say what was cut


class TooMuch(ToolError):
    """An argument that is larger than any use of it."""

    def __init__(self, tool: str, name: str, why: str) -> None:
        super().__init__(f"`{name}` {why}. Next: send less of it and call {tool} again.")


def check(tool: str, arguments: dict[str, Any]) -> None:
    """Refuse arguments that are too large, before anything else looks at them.

    Raises:
        TooMuch
    """
    for name, value in arguments.items():
        _check(tool, name, value, LONG_TEXTS.get(name, MAX_TEXT_BYTES))


def _check(tool: str, name: str, value: Any, most: int) -> None:
    if isinstance(value, str):
        size = len(value.encode(errors="surrogatepass"))
        if size > most:
            raise TooMuch(tool, name, f"has {size} bytes, and {most} are the most")
    elif isinstance(value, list | dict):
        if len(value) > MAX_ENTRIES:
            raise TooMuch(tool, name, f"has {len(value)} entries, and {MAX_ENTRIES} are the most")
        entries = value if isinstance(value, list) else [*value, *value.values()]
        for entry in entries:
            _check(tool, name, entry, MAX_TEXT_BYTES)
    elif isinstance(value, int) and abs(value) > MAX_INTEGER:
        raise TooMuch(tool, name, f"is beyond {MAX_INTEGER}")


def bounded(content: dict[str, Any]) -> dict[str, Any]:
    """An answer whose longest texts are cut until all of it fits; each says what it leaves out."""
    while (over := len(compact(content)) - MAX_ANSWER_CHARS) > 0:
        place, key = max(_texts(content), key=lambda found: len(found[0][found[1]]))
        text = place[key]
        kept = max(len(text) - over - SPARE_CHARS, 0)
        place[key] = f"{text[:kept]}\n(cut: {kept} of {len(text)} characters; ask for this alone)"
    return content


def compact(content: Any) -> str:
    """JSON in the fewest characters."""
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False)


def _texts(value: Any) -> list[tuple[Any, Any]]:
    """Where every text stands: what holds it, and under which key."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    found: list[tuple[Any, Any]] = []
    for key, entry in pairs:
        if isinstance(entry, str):
            found.append((value, key))
        elif isinstance(entry, dict | list):
            found += _texts(entry)
    return found
