"""Names as a message or a record lists them."""

from collections.abc import Sequence

from kernelforge_engine.calls import Json

MOST = 8  # names in one message
MOST_KEPT = 24  # and in one record


def listed(names: list[str]) -> str:
    """The names with commas and an "and", those beyond the first eight as a number."""
    shown = names[:MOST]
    if len(names) > MOST:
        shown.append(f"{len(names) - MOST} more")
    return " and ".join([*([", ".join(shown[:-1])] if shown[:-1] else []), shown[-1]])


def shortened(names: Sequence[str]) -> list[Json]:
    """The names for a record, those beyond the first 24 as a number."""
    more = len(names) - MOST_KEPT
    return [*names[:MOST_KEPT], *([f"{more} more"] if more > 0 else [])]
