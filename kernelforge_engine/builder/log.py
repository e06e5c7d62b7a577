"""Compiler output as an agent may read it: errors first, short, and silent about the host."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

MAX_READ, MAX_CHARACTERS = 1 << 20, 8192
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
ERROR = re.compile(r"\berror\b", re.IGNORECASE)
CONTEXT = re.compile(r"^(?:In file included|\s+from )|: In |: At global scope|instantiation of")
# One diagnostic begins here: g++ writes file:1:2: error, NVRTC and nvcc write file(1): error.
BEGINS = re.compile(
    r"^(?P<file>[^\s:()]+)(?:\(\d+\)|(?::\d+){1,2}): (?:fatal |catastrophic )?"
    r"(?P<kind>error|warning|note|remark)\b"
)
OWN = re.compile(r"candidate\.\w+")
GENERATED = re.compile(r"launch\[\d+\]|unit\.\w+|repeat\.\w+")
# Whether a file exists is a fact about the host as well.
ABSENT = re.compile(r"Permission denied|No such file or directory")


def readable(log: str) -> str:
    """The part of a log worth reading, at most 8192 characters, paths cut to file names."""
    text = CONTROL.sub("", log[:MAX_READ].replace("\r\n", "\n"))
    text = ABSENT.sub("not available", _host_paths().sub("", text))
    text = "\n".join(_errors_first(_told(text.splitlines()))).strip()
    if len(text) <= MAX_CHARACTERS:
        return text
    return f"{text[:MAX_CHARACTERS]}\n[{len(text) - MAX_CHARACTERS} more characters]"


@cache
def _host_paths() -> re.Pattern[str]:
    """Absolute paths of this host up to their last part; a quotient such as a/b is none."""
    roots = "|".join(re.escape(entry.name) for entry in Path("/").iterdir())
    return re.compile(rf"(?<!/)/+(?:{roots})/(?:[\w.+@~-]+/+)*")


def _told(lines: list[str]) -> list[str]:
    """Every diagnostic once; those about our own code only when the candidate's has no error."""
    parts = list(_diagnostics(lines))
    own = any(h and h["kind"] == "error" and OWN.fullmatch(h["file"]) for h, _ in parts)
    kept: dict[str, str] = {}  # by their text without the context, which repeats may lack
    ours = False
    for head, part in parts:
        generated = bool(head and GENERATED.fullmatch(head["file"]))
        # A note belongs to the error or the warning before it.
        ours = generated or (ours and bool(head and head["kind"] == "note"))
        if not (own and ours):
            kept.setdefault(part[part.index(head[0]) :] if head else part, part)
    return "\n".join(kept.values()).splitlines()


def _diagnostics(lines: list[str]) -> Iterator[tuple[re.Match[str] | None, str]]:
    """Each diagnostic's first line, and all its lines with the context that g++ puts before it."""
    head: re.Match[str] | None = None
    part: list[str] = []
    for line in lines:
        begins = BEGINS.match(line)
        if head and (begins or CONTEXT.search(line)):
            yield head, "\n".join(part)
            head, part = None, []
        head = head or begins
        part.append(line)
    yield head, "\n".join(part)


def _errors_first(lines: list[str]) -> list[str]:
    first = next((i for i, line in enumerate(lines) if ERROR.search(line)), 0)
    while first > 0 and CONTEXT.search(lines[first - 1]):
        first -= 1
    return lines[first:] + lines[:first]
