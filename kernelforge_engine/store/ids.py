"""Short typed ids: a letter for the noun and the row number, as in v12."""

from kernelforge_engine.errors import NoCapture, UnknownId

NOUNS = {
    "c": ("capture", "use an id as c1 that a capture was given, or name none for the newest"),
    "k": ("card", "list the cards of the capture; their ids look like k1"),
    "v": ("variant", "list the cards of the capture; the ids of their variants look like v1"),
    "n": ("node", "look at the tree of its variant; ids of nodes look like n1"),
    "l": ("lease", "call mcts_select, which hands out leases"),
    "a": ("attempt", "look at the tree of its variant; ids of attempts look like a1"),
    "j": ("job", "use the id that a slow tool answered with, as j1, or call that tool again"),
}
NEWEST = "latest"  # how the store names a capture that nobody named
MOST_SHOWN = 40
MOST_DIGITS = 18  # more than SQLite's integers hold names no row


def tag(letter: str, row: int) -> str:
    """The id of a row."""
    return f"{letter}{row}"


def row(letter: str, text: str) -> int:
    """The row number of an id.

    Raises:
        UnknownId: the text is not an id of this noun.
    """
    digits = text[1:]
    if not text.startswith(letter) or not digits.isascii() or not digits.isdigit():
        raise _unknown(letter, text)
    if len(digits) > MOST_DIGITS:
        raise _unknown(letter, text)
    return int(digits)


def unknown(letter: str, text: str) -> UnknownId:
    """The error for an id that names nothing."""
    return NoCapture() if (letter, text) == ("c", NEWEST) else _unknown(letter, text)


def _unknown(letter: str, text: str) -> UnknownId:
    noun, step = NOUNS[letter]
    return UnknownId(kind=noun, value=text[:MOST_SHOWN], step=step)
