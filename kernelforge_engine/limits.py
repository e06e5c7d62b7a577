"""How much of a thing is taken from a caller, and the words in which more is refused."""

import math

from kernelforge_engine.errors import BadOption

SHOWN = 60  # characters of a value that is refused
YEAR_9999 = 253_370_764_800  # seconds since 1970; no calendar goes further
NAME = 200  # characters of a name that a caller chooses


def text(field: str, value: str, most: int, accepted: str = "a shorter one") -> None:
    """Refuse what is longer than `most` bytes, or cannot be stored as UTF-8.

    Raises:
        BadOption
    """
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        lone = error.object[error.start]
        why = "half of a character, which cannot be stored"
        raise BadOption(field=field, value=lone, why=why, accepted="whole ones") from error
    if size > most:
        why = f"it has {size} bytes, and {most} are the most"
        raise BadOption(field=field, value=f"{value[:SHOWN]}...", why=why, accepted=accepted)


def number(field: str, value: float, least: float, most: float) -> None:
    """Refuse what lies outside a range, or is no number.

    Raises:
        BadOption
    """
    if not (math.isfinite(value) and least <= value <= most):
        accepted = f"a number from {least:g} to {most:g}"
        raise BadOption(field=field, value=value, why="it is out of range", accepted=accepted)
