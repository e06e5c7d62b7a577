"""What a run has found, read from what the tools answered."""

from dataclasses import dataclass, field

from kernelforge_agent.conversation import Json, ToolOutcome

OUTCOMES = {"faster", "slower", "inconclusive", "implausible"}


@dataclass(kw_only=True)
class Findings:
    """Candidates, nodes that are faster by their newest timing, and casts."""

    candidates: int = 0
    valid: int = 0
    faster: dict[str, Json] = field(default_factory=dict)
    casts: list[str] = field(default_factory=list)

    def inherited(self) -> "Findings":
        """What another run goes on with: what is faster, and no count."""
        return Findings(faster=dict(self.faster))

    def learn(self, outcome: ToolOutcome) -> None:
        """Take in what came of a call."""
        match outcome.tool:
            case "compile_and_validate" if outcome.answer:
                self.candidates += 1
                self.valid += outcome.status == "valid"
            case "benchmark" if outcome.status in OUTCOMES:
                self._timed(outcome.data)
            case "export_cast" if path := outcome.data.get("path"):
                self.casts.append(path)

    def reaching(self, speedup: float) -> str | None:
        """That a node is so much faster than eager by the whole of its interval, in words."""
        for node, found in self.faster.items():
            if found["low"] >= speedup:
                interval = f"{found['low']} to {found['high']}"
                return f"{node} of {found['variant_id']} is {found['speedup']}x eager ({interval})"
        return None

    def _timed(self, data: Json) -> None:
        node = data.get("node_id")
        if node is None:
            return
        self.faster.pop(node, None)
        timing = data["timing"]
        if timing["outcome"] == "faster":
            kept = ("speedup", "low", "high")
            self.faster[node] = {"variant_id": data["variant_id"]} | {k: timing[k] for k in kept}
