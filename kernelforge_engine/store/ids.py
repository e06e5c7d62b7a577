"""Short typed ids: a letter for the noun and the row number, as in v12."""

from kernelforge_engine.errors import UnknownId

NOUNS = {
    "c": ("capture", "run `kernelforge capture` or capture_model; list_cards names its captures"),
    "k": ("card", "list_cards or `kernelforge cards` shows the cards there are"),
    "v": ("variant", "get_card or `kernelforge cards` shows the variants there are"),
    "n": ("node", "`kernelforge tree --variant ID` or get_card shows the nodes there are"),
    "l": ("lease", "mcts_select hands out leases"),
    "a": ("attempt", "get_card shows what was tried"),
    "j": ("job", "slow tools answer with the job they started"),
}


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
        raise unknown(letter, text)
    if len(digits) > MOST_DIGITS:
        raise unknown(letter, text)
    return int(digits)


def unknown(letter: str, text: str) -> UnknownId:
    """The error for an id that names nothing."""
    noun, step = NOUNS[letter]
    return UnknownId(kind=noun, value=text, step=step)
