"""What a run came to."""

from dataclasses import dataclass, field
from typing import Any

from kernelforge_agent.accounts import Accounts
from kernelforge_agent.conversation import Json
from kernelforge_agent.errors import AgentError
from kernelforge_agent.findings import Findings
from kernelforge_agent.journal import Journal
from kernelforge_agent.loop import End

DONE, NOTHING_FASTER, BUDGET_REACHED, SIGNALLED = 0, 3, 4, 128


@dataclass(kw_only=True)
class Result:
    """What a run came to; `document` is what programs read."""

    exit_code: int
    document: Json = field(default_factory=dict)


@dataclass(kw_only=True)
class AtWork:
    """How an author ended, or why it could not go on."""

    journal: Journal
    findings: Findings = field(default_factory=Findings)
    end: End | None = None
    error: AgentError | None = None


async def summed_up(
    authors: list[AtWork], accounts: Accounts, signalled: int | None, wall_s: float
) -> Result:
    """The result of a run, of all its authors together.

    Raises:
        ServerFailed
    """
    meter = accounts.meter
    faster: Json = {}
    for author in authors:
        faster |= author.findings.faster
    errors = [author.error for author in authors if author.error]
    ends = [author.end for author in authors if author.end]
    outcome, code = _outcome(signalled, errors, ends, faster=bool(faster))
    document: dict[str, Any] = {
        "outcome": outcome,
        "exit_code": code,
        "session": authors[0].journal.path.parent.name,
        "transcripts": str(authors[0].journal.path.parent),
        "turns": meter.turns,
        "candidates": sum(author.findings.candidates for author in authors),
        "valid": sum(author.findings.valid for author in authors),
        "faster": faster,
        "casts": list(dict.fromkeys(c for author in authors for c in author.findings.casts)),
        "tokens": meter.tokens,
        "dollars": "unknown" if meter.unpriced else round(meter.dollars, 6),
        "wall_s": round(wall_s, 3),
        "device_s": None if signalled or errors else await accounts.device_s(),
        "report": "\n\n".join(_reports(ends)),
        "errors": [str(error) for error in errors],
    }
    return Result(exit_code=code, document=document)


def _reports(ends: list[End]) -> list[str]:
    """What authors ended with; what several ended for is said once."""
    shared = {end.text: None for end in ends if end.how != "finished"}
    return [*(end.text for end in ends if end.how == "finished"), *shared]


def _outcome(
    signalled: int | None, errors: list[AgentError], ends: list[End], *, faster: bool
) -> tuple[str, int]:
    if signalled:
        return "interrupted", SIGNALLED + signalled
    if errors:
        return "failed", errors[0].exit_code
    if any(end.how == "enough" for end in ends):
        return "enough", DONE
    if any(end.how == "budget" for end in ends):
        return "budget", BUDGET_REACHED
    return "finished", DONE if faster else NOTHING_FASTER
