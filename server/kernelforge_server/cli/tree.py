"""`kernelforge tree`: the revision tree of a variant."""

from typing import Annotated

import typer
from rich.text import Text
from rich.tree import Tree

from kernelforge_engine import codec
from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import Attempt
from kernelforge_engine.records import Node, Outcome
from kernelforge_engine.search.journal import Replay
from kernelforge_server.cli.options import JsonOption, ProjectOption, VariantOption
from kernelforge_server.cli.session import Session
from kernelforge_server.cli.tables import GOOD, interval, microseconds
from kernelforge_tools.views import AttemptRow, NodeRow
from kernelforge_tools.wording import counted, first_error

ReplayOption = Annotated[
    bool, typer.Option("--replay", help="Make the search again from its record.")
]


def tree(
    variant: VariantOption,
    replay: ReplayOption = False,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show every node of a variant with its timing, and the proposals that failed."""
    session = Session(project=project, as_json=as_json)
    if replay:
        _replayed(session, variant)
        return

    async def work(engine: Engine) -> tuple[tuple[Node, ...], tuple[Attempt, ...]]:
        found = await engine.variant(variant)
        return await engine.tree(found.id), await engine.attempts(found.id)

    nodes, attempts = session.run(work)
    if as_json:
        session.emit(
            {
                "variant_id": variant,
                "nodes": [NodeRow.of(node).model_dump() for node in nodes],
                "attempts": [AttemptRow.of(attempt).model_dump() for attempt in attempts],
            }
        )
    else:
        session.show(_drawn(variant, nodes, attempts))


def _replayed(session: Session, variant: str) -> None:
    """Say whether each recorded choice, and the tree, come out again; exit with 1 where one does
    not."""

    async def work(engine: Engine) -> Replay:
        return await engine.selector.replay(variant)

    again = session.run(work)
    rows = [codec.dump(choice) for choice in again.differing]
    filed, replayed = codec.dumps(again.filed), codec.dumps(again.tree)
    if session.as_json:
        session.emit(
            {
                "variant_id": variant,
                "choices": len(again.choices),
                "differing": rows,
                "filed": [codec.dump(node) for node in again.filed],
                "replayed": [codec.dump(node) for node in again.tree],
            }
        )
    else:
        for choice in again.differing:
            session.show(
                f"{choice.lease_id} ({choice.policy}) was given {choice.recorded}, and is given "
                f"{choice.replayed} now"
            )
        same = len(again.choices) - len(rows)
        session.show(f"{same} of {counted(len(again.choices), 'choice')} came out the same.")
        nodes = counted(len(again.tree), "node")
        same_tree = "is" if filed == replayed else "is not"
        session.show(f"The tree of {nodes} that the journal gives {same_tree} the one on record.")
    if rows or filed != replayed:
        raise typer.Exit(1)


def _drawn(variant: str, nodes: tuple[Node, ...], attempts: tuple[Attempt, ...]) -> Tree:
    failed = counted(len(attempts), "failed proposal")
    drawing = Tree(f"{variant}: {counted(len(nodes), 'node')}, {failed}")
    branches: dict[str | None, Tree] = {None: drawing}
    for node in nodes:
        branches[node.id] = branches[node.parent_id].add(_line(node))
    for attempt in attempts:
        text = f"{attempt.id} {attempt.verdict.status}: {attempt.verdict.reason}"
        branch = branches[attempt.parent_id].add(Text(text, style="dim"))
        if error := first_error(attempt.verdict.log):
            branch.add(Text(error, style="dim"))
    return drawing


def _line(node: Node) -> Text:
    parts = [node.id, node.label, counted(node.visits, "visit")]
    if timing := node.timing:
        parts += [
            timing.outcome,
            interval(timing.speedup, timing.low, timing.high),
            microseconds(timing.candidate_us),
        ]
    parts += [node.author, node.note]
    faster = node.timing is not None and node.timing.outcome == Outcome.FASTER
    return Text("  ".join(part for part in parts if part), style=GOOD if faster else "")
