"""Compiler output as an agent may read it: errors first, short, and silent about the host."""

import re
from functools import cache
from pathlib import Path

MAX_READ, MAX_CHARACTERS = 1 << 20, 8192
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
ERROR = re.compile(r"\berror\b", re.IGNORECASE)
CONTEXT = re.compile(r"^(?:In file included|\s+from )|: In |: At global scope|instantiation of")
# Whether a file exists is a fact about the host as well.
ABSENT = re.compile(r"Permission denied|No such file or directory")


def readable(log: str) -> str:
    """The part of a log worth reading, at most 8192 characters, paths cut to file names."""
    text = CONTROL.sub("", log[:MAX_READ].replace("\r\n", "\n"))
    text = ABSENT.sub("not available", _host_paths().sub("", text))
    text = "\n".join(_errors_first(text.splitlines())).strip()
    if len(text) <= MAX_CHARACTERS:
        return text
    return f"{text[:MAX_CHARACTERS]}\n[{len(text) - MAX_CHARACTERS} more characters]"


@cache
def _host_paths() -> re.Pattern[str]:
    """Absolute paths of this host up to their last part; a quotient such as a/b is none."""
    roots = "|".join(re.escape(entry.name) for entry in Path("/").iterdir())
    return re.compile(rf"(?<!/)/+(?:{roots})/(?:[\w.+@~-]+/+)*")


def _errors_first(lines: list[str]) -> list[str]:
    first = next((i for i, line in enumerate(lines) if ERROR.search(line)), 0)
    while first > 0 and CONTEXT.search(lines[first - 1]):
        first -= 1
    return lines[first:] + lines[:first]
