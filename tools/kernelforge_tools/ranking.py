"""In which order cards are worth looking at."""

from collections.abc import Iterable
from typing import Literal

from kernelforge_engine.records import Card

Sort = Literal["gain", "share"]


def has_targets(card: Card) -> bool:
    """Whether a kernel can be written for any of its variants."""
    return any(variant.target for variant in card.variants)


def ranked(cards: Iterable[Card], sort: Sort) -> list[Card]:
    """Cards by what can be gained, those without targets last, or by share of operator time."""
    if sort == "share":
        return sorted(cards, key=lambda card: -card.share)
    return sorted(cards, key=lambda card: (not has_targets(card), -card.gain))
