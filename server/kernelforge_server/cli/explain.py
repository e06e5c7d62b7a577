"""`kernelforge explain`: what a verdict rests on, or what a rule is for."""

import re
from typing import Annotated

import typer

from kernelforge_engine.engine import Engine
from kernelforge_engine.errors import BadOption
from kernelforge_engine.explanations import NAMED
from kernelforge_engine.records import Timing, Verdict
from kernelforge_server.cli.options import JsonOption, ProjectOption
from kernelforge_server.cli.session import Session
from kernelforge_tools.lookups import attempt
from kernelforge_tools.views import ExplanationRow, explanation_rows
from kernelforge_tools.wording import evidence_text, shortened

ID = re.compile(r"[an]\d+")
PARTS = ("checks", "why", "evidence", "satisfied by")


def explain(
    what: Annotated[
        str,
        typer.Argument(
            metavar="ATTEMPT|NODE|RULE",
            help="An attempt (a1), a node (n1), a status, a timing outcome or a rule (T1).",
        ),
    ],
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what a verdict rests on: its rules, why they exist and what satisfies them."""
    session = Session(project=project, as_json=as_json)
    rows: list[ExplanationRow]
    if what in NAMED:
        found, rows = None, [ExplanationRow(**vars(NAMED[what]))]
    else:
        found, timing = session.run(lambda engine: _of(engine, what))
        rows = explanation_rows(found.status, found.evidence) if found else []
        rows += explanation_rows(timing.outcome, timing.evidence) if timing else []
    if as_json:
        session.emit(
            {
                "id": what,
                "status": found.status if found else None,
                "reason": found.reason if found else None,
                "evidence": found.evidence if found else None,
                "explained": [row.model_dump() for row in rows],
            }
        )
        return
    if found:
        _show_verdict(session, what, found)
    for row in rows:
        _show(session, row)


async def _of(engine: Engine, what: str) -> tuple[Verdict | None, Timing | None]:
    if not ID.fullmatch(what):
        accepted = f"an attempt (a1), a node (n1), or one of {', '.join(NAMED)}"
        raise BadOption(field="what", value=what, why="nothing has that name", accepted=accepted)
    if what.startswith("a"):
        return (await attempt(engine, what)).verdict, None
    node = await engine.node(what)
    return node.verdict, node.timing


def _show_verdict(session: Session, what: str, found: Verdict) -> None:
    session.show(f"{what} is {found.status}: {found.reason}")
    log = shortened(found.log, "--json")
    facts = evidence_text(found.evidence)
    for line in [*(log.splitlines() if log else []), *([f"found: {facts}"] if facts else [])]:
        session.show(f"  {line}", style="dim")


def _show(session: Session, row: ExplanationRow) -> None:
    session.show(f"{row.name}", style="bold")
    texts = (row.checks, row.why, row.evidence, row.satisfied_by)
    for part, text in zip(PARTS, texts, strict=True):
        session.show(f"  {part}: {text}")
