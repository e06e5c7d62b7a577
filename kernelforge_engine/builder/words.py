"""Names as a message lists them."""

MOST = 8  # names in one message


def listed(names: list[str]) -> str:
    """The names with commas and an "and", those beyond the first eight as a number."""
    shown = names[:MOST]
    if len(names) > MOST:
        shown.append(f"{len(names) - MOST} more")
    return " and ".join([*([", ".join(shown[:-1])] if shown[:-1] else []), shown[-1]])
