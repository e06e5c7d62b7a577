"""Trees that are held in memory while they are what the disk has."""

from dataclasses import replace

from kernelforge_engine.calls import Argument, Call, OutputSpec, TensorSpec
from kernelforge_engine.optimize import best_node
from kernelforge_engine.plans import LaunchPlan, Source
from kernelforge_engine.pool.orders import Sighting
from kernelforge_engine.records import Capture, Outcome, Status, Timing, Verdict
from kernelforge_engine.search.policy import POLICIES, policy
from kernelforge_engine.search.tree import Tree, TreeNode
from kernelforge_engine.store.captures import Captures
from kernelforge_engine.store.database import Database
from kernelforge_engine.store.outlines import Outlines
from kernelforge_engine.store.trees import Filing, Trees

SPEC = TensorSpec(dtype="float32", shape=(2, 3), stride=(3, 1), device="cpu")
CAPTURE = Capture(
    id="", model="m.py:make_model", inputs=(), device="cpu", device_name="a processor",
    torch_version="2.13.0", wall_us=None, busy_us=80.0, calls=3, output_drift=None, created_at=1.0,
)  # fmt: skip
TIMING = Timing(
    outcome=Outcome.FASTER, speedup=2.0, low=1.9, high=2.1, eager_us=10.0, candidate_us=5.0,
    scope="O",
)  # fmt: skip


def sighting():
    call = Call(
        operator="aten::relu", overload="", words=(1,),
        arguments=(Argument(name="self", value={"tensor": 0}),),
        inputs=(SPEC,), outputs=(OutputSpec(tensor=SPEC),),
    )  # fmt: skip
    return Sighting(
        call=call, calls=2, eager_us=10.0, share=0.5, floor_us=1.0, module="", target=True,
        reason=None, examples=(),
    )  # fmt: skip


def filing(variant, parent, digest="d"):
    plan = LaunchPlan(lets=(), launches=())
    return Filing(
        variant_id=variant, parent_id=parent, lease_id=None, author="a", note="",
        source=Source(text=digest, backend="cpu", plan=plan, digest=digest),
        verdict=Verdict(status=Status.VALID, reason=""), artifact_digest=None, at=1.0,
    )  # fmt: skip


async def test_a_tree_that_is_held_sees_what_another_process_files(tmp_path):
    async with (
        Database.open(tmp_path, None) as one,
        Database.open(tmp_path, None) as two,
    ):
        await Captures(one).add(CAPTURE, [sighting()])
        outlines, trees = Outlines(one), Trees(two)
        root = await trees.root("v1", 1.0)
        before = await outlines.tree("v1", 10.0, 1.0)
        node = await trees.file_node(filing("v1", root.id))
        filed = await outlines.tree("v1", 10.0, 1.0)
        await trees.file_timing(node.id, TIMING)
        timed = await outlines.tree("v1", 10.0, 1.0)
        found = await trees.file_verdict(node.id, Verdict(status=Status.WRONG_VALUES, reason=""))
        refused = await outlines.tree("v1", 10.0, 1.0)
        assert [len(t) for t in (before, filed, timed, refused)] == [1, 2, 2, 2]
        bests = [t.best_us(t.root) for t in (filed, timed, refused)]
        assert bests == [10.0, TIMING.candidate_us, 10.0]
        assert timed.weight(timed.root) == 2
        assert (found.timing, sum(n.parent_id == root.id for n in await trees.nodes("v1"))) == (
            None,
            1,
        )
        assert [n.id for n in await trees.line(node.id)] == [root.id, node.id]


async def test_what_is_best_is_found_as_a_search_over_all_nodes_finds_it(tmp_path):
    known = [(0.9, Outcome.SLOWER), (3.0, Outcome.INCONCLUSIVE), (1.5, Outcome.FASTER),
             (1.4, Outcome.FASTER), (9.0, Outcome.IMPLAUSIBLE)]  # fmt: skip
    async with Database.open(tmp_path, None) as database:
        captures, trees = Captures(database), Trees(database)
        await captures.add(CAPTURE, [sighting()])
        root = await trees.root("v1", 1.0)
        assert await trees.best("c1") == {}
        for number, (low, outcome) in enumerate(known):
            node = await trees.file_node(filing("v1", root.id, f"d{number}"))
            timing = replace(TIMING, outcome=outcome, low=low, speedup=low + 0.1)
            await trees.file_timing(node.id, timing)
        best = (await trees.best("c1"))["v1"]
        found = best_node(await trees.nodes("v1"))
        assert (best.node_id, best.speedup) == (found.id, found.timing.speedup)


def test_a_tree_under_leases_is_the_tree_that_was_built_with_them():
    parents = [None, 0, 0, 1, 1, 2, 3, 3, 6]
    held = {"n0": 1, "n3": 2, "n8": 1}

    def tree(held):
        return Tree(
            TreeNode(
                id=f"n{n}",
                parent_id=None if parent is None else f"n{parent}",
                visits=n + 1,
                pending=held.get(f"n{n}", 0),
                latency_us=10.0 - n,
            )
            for n, parent in enumerate(parents)
        )

    free, built = tree({}), tree(held)
    under = free.holding(held)
    nodes = [free.root]
    for node in nodes:
        nodes += free.children(node)
    assert len(nodes) == len(parents) == len(free)
    for node in nodes:
        assert under.weight(node) == built.weight(node)
        assert under.width(node) == built.width(node)
        assert free.weight(node) == node.visits
    assert under.weight(under.root) == 1 + 4
    for name in POLICIES:
        assert policy(name)(under).id == policy(name)(built).id
