"""What the agent adds to answers: the facts for the next step, filled into its prompt."""

from collections import Counter
from typing import Any

from kernelforge_agent.conversation import Json, ToolCall, ToolOutcome
from kernelforge_agent.prompts import prompt

SHOWN = 4
MAX_CHARS = 160
VALID = "valid"


class Briefing:
    """Remembers what answers said of cards, and writes a brief where a step begins."""

    def __init__(self, hardware: str) -> None:
        self._hardware = hardware
        self._cards: dict[str, tuple[str, str]] = {}
        self._failures: Counter[str] = Counter()

    def brief(self, call: ToolCall, outcome: ToolOutcome) -> str:
        """What is added to an outcome, empty where nothing is."""
        given, data = call.arguments or {}, outcome.data
        match outcome.tool:
            case "get_card":
                self._learn_card(data)
            case "mcts_select" if data:
                return self._proposal(data)
            case "compile_and_validate" if data:
                return self._verdict(str(given.get("variant_id")), given, outcome)
            case "profile_node" if data:
                return self._profile(str(given.get("node_id")), outcome)
        return ""

    def _learn_card(self, data: Json) -> None:
        card = data.get("card") or {}
        about = f"{card.get('operator')}, {card.get('share', 0):.1%} of operator time"
        if inside := card.get("inside"):
            about += f", runs {', '.join(inside)}"
        for row in [*(data.get("variants") or ()), *(data.get("families") or ())]:
            shape = _short(row.get("variant") or "a family of sizes")
            floor = f"eager takes {row['headroom']} times as long" if "headroom" in row else ""
            if "floor_us" in row:
                floor = f"{row['floor_us']} us; eager takes {row['eager_us']} us"
            self._cards[row["id"]] = f"{about}: {shape}", floor

    def _known(self, variant: str) -> dict[str, object]:
        unread = f"not read yet: get_card of {variant} tells"
        card, floor = self._cards.get(variant, (unread, unread))
        return {"hardware": self._hardware, "card": card, "floor": floor}

    def _proposal(self, data: Json) -> str:
        variant = str(data["variant_id"])
        known = {**self._known(variant), "lineage": _lineage(data), "rules": prompt("rules")}
        if not data.get("source"):
            return prompt("generator", variant=variant, **known)
        return prompt("reviser", parent=_node(data["parent"]), **known)

    def _verdict(self, variant: str, given: Json, outcome: ToolOutcome) -> str:
        if outcome.status == VALID:
            del self._failures[variant]
            return ""
        self._failures[variant] += 1
        return prompt(
            "repairer",
            status=outcome.status,
            reason=_short(outcome.data.get("reason")),
            lease=given.get("lease_id") or "none",
            variant=variant,
            failures=self._failures[variant],
            rules=prompt("rules"),
        )

    def _profile(self, node: str, outcome: ToolOutcome) -> str:
        variant = str(outcome.data.get("variant_id"))
        known = self._known(variant)
        del known["card"]
        found = (outcome.answer or {}).get("summary")
        return prompt("profiler", node=node, found=found, **known)


def hardware(status: ToolOutcome) -> str:
    """The usable devices, as get_status tells of them."""
    usable = [d for d in status.data.get("devices") or () if d["usable"]]
    return "; ".join(f"{d['name']} ({d['backend']}): {_short(d['detail'])}" for d in usable)


def _short(text: Any) -> str:
    words = " ".join(str(text).split())
    return words if len(words) <= MAX_CHARS else f"{words[:MAX_CHARS]}..."


def _node(node: Json) -> str:
    timing = node.get("timing") or {}
    if not timing.get("speedup"):
        return f"{node['id']} (not timed)"
    return f"{node['id']} ({timing['outcome']}, {timing['speedup']}x eager)"


def _lineage(data: Json) -> str:
    """The line to the parent, what was tried below it, and what failed."""
    parts = [
        _listed("led here", [_step(row) for row in data.get("line") or ()]),
        _listed("tried", [_step(row) for row in data.get("tried") or ()]),
        _listed("failed", [f"{r.get('note') or r['id']} ({r['status']})" for r in data["failed"]]),
    ]
    return "; ".join(part for part in parts if part) or "nothing was tried yet"


def _step(row: Json) -> str:
    timing = row.get("timing") or row
    gave = f"{timing['speedup']}x" if timing.get("speedup") else "not timed"
    return f"{_short(row.get('idea') or row.get('note') or row['id'])}: {gave}"


def _listed(title: str, rows: list[str]) -> str:
    return f"{title}: {', '.join(rows[-SHOWN:])}" if rows else ""
