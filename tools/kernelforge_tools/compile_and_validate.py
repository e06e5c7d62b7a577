"""The tool that judges a candidate."""

from typing import Annotated

from mcp.server.mcpserver import Context
from pydantic import Field

from kernelforge_engine.calls import Json
from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import Notice, Proposal, Submission
from kernelforge_engine.records import Tier, Verdict
from kernelforge_tools.answer import Answer, View, call
from kernelforge_tools.caller import call_key, caller
from kernelforge_tools.lookups import known_node
from kernelforge_tools.waiting import DEFAULT_WAIT_S, Wait, slow
from kernelforge_tools.wording import USED, meanings, shortened


class VerdictView(View):
    """What the engine found; `evidence` names draws, rules and ratios, never values."""

    reason: str
    log: str | None = None
    evidence: dict[str, Json] | None = None
    meaning: dict[str, str] | None = None
    """What the terms in the evidence stand for."""
    node_id: str | None = None
    attempt_id: str | None = None
    repairs_left: int | None = None
    """How often it may still be mended under its lease, which ends with the last."""


async def compile_and_validate(  # noqa: PLR0913  what an agent may say about a proposal
    ctx: Context[Engine],
    variant_id: str,
    source: Annotated[
        str, Field(description="the whole file: launch header, then device code", min_length=1)
    ],
    lease_id: Annotated[str | None, Field(description="from mcts_select")] = None,
    parent_id: Annotated[
        str | None, Field(description="without a lease: the node this revises; default eager")
    ] = None,
    note: Annotated[str, Field(description="the idea in one line", max_length=500)] = "",
    tier: Annotated[
        Tier,
        Field(description="quick: few draws; promotion: more, with repeats and sanitizers"),
    ] = "full",
    wait_s: Wait = DEFAULT_WAIT_S,
) -> Answer[VerdictView]:
    """Compile a candidate and check it against eager and float64 on captured and fresh tensors.

    A candidate replaces one call of an operator or of a region, or every member of a family.
    The status is the verdict: valid (it became a node: benchmark it), rejected_source (header),
    compile_failed, launch_failed, keeps_state, crashed, timed_out, wrong_structure,
    wrong_values, memory_violation, mutated_input or nondeterministic. None is an error: read its
    reason and log, mend the source and submit it again under the same lease while there are
    `repairs_left`. The format is in get_card(sections=["format"]).
    """
    proposal = Proposal(
        text=source,
        variant_id=variant_id,
        lease_id=lease_id,
        parent_id=parent_id,
        author=caller(ctx),
        note=note,
        tier=tier,
        call_key=call_key(ctx),
    )

    async def work(engine: Engine, notice: Notice) -> Answer[VerdictView]:
        known = await known_node(engine, proposal)
        return judged(proposal, await engine.submit(proposal, notice), known)

    arguments = {
        "variant_id": variant_id,
        "source": source,
        "lease_id": lease_id,
        "parent_id": parent_id,
        "note": note,
        "tier": tier,
    }
    return await slow(ctx, "compile_and_validate", arguments, wait_s, work)


def judged(
    proposal: Proposal, submission: Submission, known: str | None = None
) -> Answer[VerdictView]:
    """The answer to a proposal, whose very source may be that of the node `known`."""
    verdict, node = submission.verdict, submission.node
    if node:
        following = [call("benchmark", node_id=node.id)]
        summary = f"Valid: it is node {node.id} ({node.label}).{_close(verdict)}"
        if node.id == known:
            summary = f"Nothing new: this very source is node {node.id} already ({node.label})."
            select = call("mcts_select", variant_id=proposal.variant_id)
            following = [select] if node.timing else [*following, select]
    else:
        again = [] if submission.repairs_left == 0 else [_again(proposal)]
        following = [*again, call("mcts_select", variant_id=proposal.variant_id)]
        summary = f"{verdict.status}: {verdict.reason}"
    return Answer(
        status=verdict.status,
        summary=summary,
        data=VerdictView(
            reason=verdict.reason,
            log=_log(submission),
            evidence=verdict.evidence or None,
            meaning=meanings(verdict.evidence) or None,
            node_id=node.id if node else None,
            attempt_id=submission.attempt_id,
            repairs_left=submission.repairs_left,
        ),
        next=following,
    )


def _close(verdict: Verdict) -> str:
    """How near the errors of a valid candidate came to what is allowed, as a sentence."""
    used = [verdict.evidence.get(name) for name in USED]
    most = max((value for value in used if isinstance(value, float)), default=None)
    return "" if most is None else f" Its errors used at most {most:.0%} of what is allowed."


def _again(proposal: Proposal) -> str:
    under = {"lease_id": proposal.lease_id, "parent_id": proposal.parent_id}
    given = {name: value for name, value in under.items() if value}
    return call("compile_and_validate", variant_id=proposal.variant_id, source="(mended)", **given)


def _log(submission: Submission) -> str | None:
    named = submission.attempt_id or (submission.node.id if submission.node else "")
    rest = call("get_node", node_id=named, sections=["verdict"])
    return shortened(submission.verdict.log, rest)
