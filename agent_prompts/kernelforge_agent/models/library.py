"""`library`: no model; tries what the server's library offers for every target."""

from collections.abc import Callable, Generator, Iterator

from kernelforge_agent.conversation import Json, ToolOutcome
from kernelforge_agent.models.player import Move, Outcomes, Play

MOST_CARDS = 100


def library(model: str, device: str, cards: tuple[str, ...], cast: str) -> Callable[[], Play]:
    """A play that captures `model`, tries the library on `cards` or all, and exports to `cast`."""
    return lambda: _played(model, device, cards, cast)


def _played(model: str, device: str, cards: tuple[str, ...], cast: str) -> Play:
    captured = yield from _called("capture_model", model=model, device=device)
    listed = yield from _called(
        "list_cards", capture_id=captured.data.get("capture_id"), limit=MOST_CARDS
    )
    tried = faster = 0
    for card, variant in _targets(listed, cards):
        shown = yield from _called(
            "get_card", card_id=card, variant_id=variant, sections=["starting_points"]
        )
        for point in shown.data.get("starting_points") or ():
            if point.get("source"):
                tried += 1
                faster += yield from _tried(variant, point)
    if not faster:
        return f"{tried} kernels of the library were tried and none was faster."
    exported = yield from _called("export_cast", path=cast)
    said = (exported.answer or {}).get("summary", exported.error)
    return f"{faster} of {tried} kernels of the library are faster. {said}"


def _called(tool: str, **arguments: object) -> Generator[Move, Outcomes, ToolOutcome]:
    outcomes = yield Move(calls=((tool, dict(arguments)),))
    return outcomes[0]


def _targets(listed: ToolOutcome, cards: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for card in listed.data.get("cards") or ():
        if not cards or card["id"] in cards:
            for variant in [*(card.get("targets") or ()), *(card.get("families") or ())]:
                yield card["id"], variant


def _tried(variant: str, point: Json) -> Generator[Move, Outcomes, bool]:
    """Whether a kernel is faster than eager."""
    lease = yield from _called("mcts_select", variant_id=variant)
    judged = yield from _called(
        "compile_and_validate",
        variant_id=variant,
        lease_id=lease.data.get("lease_id"),
        source=point["source"],
        note=f"library: {point['name']}",
    )
    if judged.status != "valid":
        return False
    timed = yield from _called("benchmark", node_id=judged.data["node_id"])
    return timed.status == "faster"
