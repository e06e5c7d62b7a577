"""What no log, no error text and no job log may hold: credentials, and the name of one's home."""

import re
from collections.abc import Collection

HIDDEN = "[hidden]"
LEAST_CHARS = 8  # a shorter value says too little to be told from a word
SHAPES = tuple(
    (re.compile(pattern, re.DOTALL), replacement)
    for pattern, replacement in (
        (r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", HIDDEN),
        (r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}", rf"\1 {HIDDEN}"),
        (
            r"(?i)((?:api[_-]?key|token|secret|passw(?:or)?d|authorization)['\"]?\s*[=:]\s*"
            r"['\"]?)(?!bearer\b|basic\b)[^\s'\",;&]{6,}",
            rf"\1{HIDDEN}",
        ),
        (r"://[^/\s:@]+:[^/\s@]+@", f"://{HIDDEN}@"),
        (
            r"\b(?:sk-[\w-]{16,}|hf_\w{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
            r"|xox[abeoprs]-[\w-]{10,}|AKIA[0-9A-Z]{16}|AIza[\w-]{30,}"
            r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)",
            HIDDEN,
        ),
    )
)


class Redactor:
    """Takes out of a text what a secret is known by: its value or its shape.

    Args:
        secrets: values that are credentials.
        home: the user's home, of which only what lies below it is shown.
    """

    def __init__(self, secrets: Collection[str], home: str) -> None:
        known = sorted((s for s in secrets if len(s) >= LEAST_CHARS), key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, known))) if known else None
        within = home.rstrip("/")
        self._home = re.compile(rf"{re.escape(within)}(?![\w.-])") if within else None

    def __call__(self, text: str) -> str:
        """The text without them."""
        if self._known:
            text = self._known.sub(HIDDEN, text)
        for shape, replacement in SHAPES:
            text = shape.sub(replacement, text)
        return self._home.sub("~", text) if self._home else text
