"""What a turn was spent on, as far as its calls tell: a node, an attempt or a card."""

from collections.abc import Sequence

from kernelforge_agent.conversation import Json, ToolCall, ToolOutcome

MADE = ("node_id", "attempt_id")
ON_A_NODE = ("compile_and_validate", "benchmark", "profile_node")
ON_A_VARIANT = ("compile_and_validate", "mcts_select", "get_tree")


class Subjects:
    """Remembers which card a variant belongs to, from what answers said."""

    def __init__(self) -> None:
        self._cards: dict[str, str] = {}

    def learn(self, outcome: ToolOutcome) -> None:
        """Take in which variants the cards of an answer have."""
        if outcome.tool == "list_cards":
            for card in outcome.data.get("cards") or ():
                self._own(card["id"], [*(card.get("targets") or ()), *(card.get("families") or ())])
        if outcome.tool == "get_card" and outcome.data:
            data = outcome.data
            rows = [*(data.get("variants") or ()), *(data.get("families") or ())]
            self._own(data["card"]["id"], [row["id"] for row in rows])

    def _own(self, card: str, variants: Sequence[str]) -> None:
        self._cards |= dict.fromkeys(variants, card)

    def about(self, calls: Sequence[ToolCall], outcomes: Sequence[ToolOutcome]) -> str | None:
        """The last node, attempt or card that the calls of a turn came to, None for none."""
        arguments = {call.id: call.arguments or {} for call in calls}
        for outcome in reversed(outcomes):
            if found := self._subject(outcome, arguments[outcome.id]):
                return found
        return None

    def _subject(self, outcome: ToolOutcome, given: Json) -> str | None:
        if outcome.tool in ON_A_NODE:
            made = [outcome.data[name] for name in MADE if outcome.data.get(name)]
            if made:
                return str(made[0])
        if outcome.tool == "get_node" and outcome.data:
            return str(outcome.data["node"]["id"])
        if outcome.tool == "get_card" and outcome.data:
            return str(outcome.data["card"]["id"])
        if outcome.tool in ON_A_VARIANT:
            return self._cards.get(str(given.get("variant_id")))
        return None
