"""The picture of a revision tree stays readable, whatever the tree."""

from hypothesis import given, settings
from hypothesis import strategies as st
from report_cases import timing

from kernelforge_engine.exchanges import Attempt
from kernelforge_engine.records import Label, Node, Status, Verdict
from kernelforge_server.report.drawing import MOST_NODES, drawn


def node(number, parent, speedup):
    return Node(
        id=f"n{number}",
        variant_id="v1",
        parent_id=parent and f"n{parent}",
        source_digest=parent and f"d{number}",
        artifact_digest=None,
        label=Label.GENERATED if parent else Label.FALLBACK,
        author="a",
        note="",
        visits=1,
        timing=timing(speedup) if parent and speedup else None,
        verdict=Verdict(status=Status.VALID, reason="") if parent else None,
        created_at=0.0,
    )


@st.composite
def trees(draw):
    """Nodes below earlier ones, with speed-ups from nothing to a thousand, and failed attempts."""
    count = draw(st.integers(1, 150))
    speedups = st.none() | st.floats(1e-3, 1e3)
    nodes = [node(1, None, None)]
    nodes += [
        node(number, draw(st.integers(1, number - 1)), draw(speedups))
        for number in range(2, count + 1)
    ]
    failed = [
        Attempt(
            id=f"a{i}", variant_id="v1", parent_id=f"n{draw(st.integers(1, count))}", author="",
            note="", source_digest="", created_at=0.0,
            verdict=Verdict(status=draw(st.sampled_from(list(Status)[1:])), reason=""),
        )
        for i in range(draw(st.integers(0, 12)))
    ]  # fmt: skip
    timed = [n for n in nodes if n.timing]
    return nodes, failed, max(timed, key=lambda n: n.timing.speedup, default=None)


@settings(max_examples=40, deadline=None)
@given(trees())
def test_every_row_has_a_place_of_its_own_inside_the_picture(tree):
    nodes, failed, best = tree
    made = drawn(nodes, failed, best)
    rows = [mark.y for mark in made.marks]
    assert len(set(rows)) == len(rows)
    assert all(0 < mark.x < made.beside and 0 < mark.y < made.height for mark in made.marks)
    ends = [x for mark in made.marks if mark.span for x in mark.span]
    assert all(made.beside < x < made.width for x in ends + [x for x, _ in made.ticks])
    assert len(made.edges) == len(made.marks) - 1
    drawn_nodes = {mark.name for mark in made.marks if mark.tone != "failed"}
    assert best is None or best.id in drawn_nodes
    if len(nodes) <= MOST_NODES:
        assert len(drawn_nodes) == len(nodes)
        assert made.left_out is None
    else:
        assert f"{len(nodes) - len(drawn_nodes)} slower node" in made.left_out
