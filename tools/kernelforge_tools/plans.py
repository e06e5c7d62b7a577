"""What a plan gives a target, as agents and people read it."""

from kernelforge_engine.planning import Planned
from kernelforge_tools.answer import View
from kernelforge_tools.wording import rounded


class PlanRow(View):
    """A target with the proposals it is given, or why none; `left` is the part of the model's time
    still to be saved, `chance` that of the next proposal to find something faster."""

    variant_id: str
    operator: str
    proposals: int
    left: float
    chance: float
    tried: int | None = None
    best: float | None = None
    why_none: str | None = None

    @classmethod
    def of(cls, planned: Planned) -> "PlanRow":
        """The row of a target."""
        given = planned.allotment
        return cls(
            variant_id=planned.variant.id,
            operator=planned.card.operator,
            proposals=given.evaluations,
            left=rounded(given.stake.left),
            chance=rounded(given.stake.chance),
            tried=len(given.stake.results) or None,
            best=rounded(given.stake.best) if given.stake.best else None,
            why_none=given.why_none,
        )
