"""The mean curves of the study as one small SVG."""

from collections.abc import Mapping, Sequence

WIDE, HIGH, GAP, ACROSS = 210, 120, 44, 3
COLOURS = ("#1f6feb", "#d1242f", "#57606a", "#1a7f37", "#bf8700", "#8250df")
Curves = Mapping[str, Sequence[float]]


def drawn(families: Mapping[str, Curves], most: int) -> str:
    """One panel for each family: ln(speed-up over eager) against proposals."""
    rows = -(-len(families) // ACROSS)
    width, height = ACROSS * (WIDE + GAP) + 10, rows * (HIGH + GAP) + 26
    panels = [
        _panel(name, curves, 34 + (i % ACROSS) * (WIDE + GAP), 30 + (i // ACROSS) * (HIGH + GAP))
        for i, (name, curves) in enumerate(families.items())
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="10">'
        f'<rect width="{width}" height="{height}" fill="white"/>'
        f"{_legend(next(iter(families.values())), most)}{''.join(panels)}</svg>\n"
    )


def _legend(curves: Curves, most: int) -> str:
    words = [
        f'<text x="{34 + 60 * i}" y="12" fill="{COLOURS[i]}">{name}</text>'
        for i, name in enumerate(curves)
    ]
    axes = f"ln(speed-up over eager), 1 to {most} proposals"
    return "".join([*words, f'<text x="{40 + 60 * len(curves)}" y="12">{axes}</text>'])


def _panel(name: str, curves: Curves, left: float, top: float) -> str:
    values = [v for curve in curves.values() for v in curve]
    low, high = min(values), max(values)
    span = (high - low) or 1.0

    def points(curve: Sequence[float]) -> str:
        step = WIDE / (len(curve) - 1)
        return " ".join(
            f"{left + i * step:.0f},{top + HIGH - (v - low) / span * HIGH:.0f}"
            for i, v in enumerate(curve)
        )

    lines = "".join(
        f'<polyline points="{points(curve)}" fill="none" stroke="{COLOURS[i]}"/>'
        for i, curve in enumerate(curves.values())
    )
    return (
        f'<rect x="{left}" y="{top}" width="{WIDE}" height="{HIGH}" fill="none" stroke="#ccc"/>'
        f'<text x="{left}" y="{top - 4}">{name}</text>'
        f'<text x="{left - 4}" y="{top + 8}" text-anchor="end">{high:.1f}</text>'
        f'<text x="{left - 4}" y="{top + HIGH}" text-anchor="end">{low:.1f}</text>{lines}'
    )
