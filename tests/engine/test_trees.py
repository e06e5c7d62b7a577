"""Trees, leases and the journal on disk."""

import random
from dataclasses import replace

import pytest
from store_cases import CAPTURE, TIMING, filing, lease, request, sighting

from kernelforge_engine import codec
from kernelforge_engine.errors import StaleLease
from kernelforge_engine.records import Outcome, Status, Verdict
from kernelforge_engine.search.journal import replay
from kernelforge_engine.search.policy import POLICIES, policy
from kernelforge_engine.store import database as database_module
from kernelforge_engine.store.captures import Captures
from kernelforge_engine.store.database import Database, migrations
from kernelforge_engine.store.leases import Leases
from kernelforge_engine.store.trees import Trees

JOURNAL = 6  # the migration that brought it


async def test_a_node_adds_its_visit_to_every_ancestor_once(tmp_path):
    async with Database.open(tmp_path, None) as database:
        await Captures(database).add(CAPTURE, [sighting()])
        trees = Trees(database)
        root = await trees.root("v1", 1.0)
        child = await trees.file_node(filing("v1", root.id))
        grandchild = await trees.file_node(filing("v1", child.id, digest="e"))
        for timed in (child, grandchild, grandchild):
            await trees.file_timing(timed.id, TIMING)
        assert [n.visits for n in await trees.nodes("v1")] == [3, 2, 1]


async def test_a_lease_is_a_virtual_visit_until_it_expires(tmp_path):
    async with Database.open(tmp_path, None) as database:
        await Captures(database).add(CAPTURE, [sighting()])
        leases = Leases(database)
        await Trees(database).root("v1", 1.0)
        held = await lease(database)
        assert (await leases.tree("v1", 10.0, 50.0)).seen()[0].pending == 1
        assert (await leases.tree("v1", 10.0, 100.0)).seen()[0].pending == 0
        with pytest.raises(StaleLease, match="has expired"):
            await leases.open_lease(held.id, 100.0)


async def test_a_used_lease_cannot_be_used_again(tmp_path):
    async with Database.open(tmp_path, None) as database:
        await Captures(database).add(CAPTURE, [sighting()])
        trees = Trees(database)
        root = await trees.root("v1", 1.0)
        held = await lease(database)
        await trees.file_attempt(filing("v1", root.id, held.id, Status.WRONG_VALUES))
        assert (await Leases(database).open_lease(held.id, 3.0)).id == held.id
        await trees.file_node(filing("v1", root.id, held.id))
        with pytest.raises(StaleLease, match="been used"):
            await Leases(database).open_lease(held.id, 3.0)


@pytest.mark.parametrize("most", [0, 2])
async def test_a_lease_ends_with_its_last_repair_and_no_count_changes(tmp_path, most):
    async with Database.open(tmp_path, None) as database:
        await Captures(database).add(CAPTURE, [sighting()])
        trees, leases = Trees(database), Leases(database)
        root = await trees.root("v1", 1.0)
        before = (await leases.tree("v1", 10.0, 1.0)).seen()
        held = await lease(database, max_repairs=most)
        for left in range(most, -1, -1):
            assert (await leases.tree("v1", 10.0, 1.0)).seen()[0].pending == 1
            bad = filing("v1", root.id, held.id, Status.WRONG_VALUES, f"bad{left}")
            assert (await trees.file_attempt(bad))[1] == left
        with pytest.raises(StaleLease, match="used up its repairs"):
            await leases.open_lease(held.id, 3.0)
        assert (await leases.tree("v1", 10.0, 1.0)).seen() == before
        assert len(await trees.attempts("v1", root.id)) == most + 1


async def test_of_sources_judged_under_one_lease_at_a_time_one_becomes_a_node(tmp_path):
    async with Database.open(tmp_path, None) as one, Database.open(tmp_path, None) as other:
        await Captures(one).add(CAPTURE, [sighting()])
        root = await Trees(one).root("v1", 1.0)
        held = await lease(one)
        first = await Trees(one).file_node(filing("v1", root.id, held.id))
        with pytest.raises(StaleLease, match="been used"):
            await Trees(other).file_node(filing("v1", root.id, held.id, digest="e"))
        assert await Trees(other).nodes("v1") == (root, first)
        assert await Trees(other).source("e") is None
        assert await Trees(other).file_node(filing("v1", root.id, held.id)) == first


@pytest.mark.parametrize(
    ("outcome", "status"),
    [(Outcome.IMPLAUSIBLE, Status.VALID), (Outcome.FASTER, Status.WRONG_VALUES)],
)
async def test_the_search_does_not_believe_the_latency_of(tmp_path, outcome, status):
    async with Database.open(tmp_path, None) as database:
        await Captures(database).add(CAPTURE, [sighting()])
        trees = Trees(database)
        root = await trees.root("v1", 1.0)
        node = await trees.file_node(filing("v1", root.id, status=status))
        await trees.file_timing(node.id, replace(TIMING, outcome=outcome))
        tree = await Leases(database).tree("v1", 10.0, 1.0)
        assert [n.latency_us for n in tree] == [10.0, None]


async def test_a_source_that_was_judged_twice_is_one_node(tmp_path):
    async with Database.open(tmp_path, None) as one, Database.open(tmp_path, None) as other:
        await Captures(one).add(CAPTURE, [sighting()])
        root = await Trees(one).root("v1", 1.0)
        first = await Trees(one).file_node(filing("v1", root.id))
        second = await Trees(other).file_node(filing("v1", root.id))
        assert second == first
        assert await Trees(other).nodes("v1") == (root, first)


def _text(tree):
    return "\n".join(codec.dumps(node) for node in tree)


async def timed(trees, node, us):
    await trees.file_timing(node.id, replace(TIMING, candidate_us=us))


class Agents:
    """Two servers on one project, whose agents do at random what agents do."""

    def __init__(self, seed, *databases):
        self._random, self._databases = random.Random(seed), databases
        self.clock, self._held, self._number = 1.0, [], 0

    async def act(self, name):
        database = self._random.choice(self._databases)
        self.clock += self._random.choice([0.0, 1.0, 20.0])
        trees = Trees(database)
        deed = self._random.random()
        if deed < 0.4 or not self._held:
            until = self.clock + 30.0
            self._held.append(
                await lease(database, policy=name, at=self.clock, expires_at=until, max_repairs=1)
            )
        elif deed < 0.5:
            held = self._held.pop(self._random.randrange(len(self._held)))
            await Leases(database).close(held.id, held.parent_id, self.clock)
        else:
            await self._proposed(trees)

    async def _proposed(self, trees):
        held = self._random.choice(self._held)
        self._number += 1
        status = self._random.choice([Status.VALID, Status.VALID, Status.WRONG_VALUES])
        proposal = filing("v1", held.parent_id, held.id, status, f"s{self._number}")
        if status != Status.VALID:
            await trees.file_attempt(proposal)
            return
        try:
            node = await trees.file_node(proposal)
        except StaleLease:
            return
        if self._random.random() < 0.9:
            await timed(trees, node, self._random.uniform(0.1, 30.0))
        if self._random.random() < 0.1:
            wrong = Verdict(status=Status.WRONG_VALUES, reason="when it was timed")
            await trees.file_verdict(node.id, wrong)


@pytest.mark.parametrize("name", POLICIES)
async def test_a_search_is_made_again_from_its_journal_byte_for_byte(tmp_path, name):
    async with Database.open(tmp_path, None) as one, Database.open(tmp_path, None) as other:
        await Captures(one).add(CAPTURE, [sighting()])
        await Trees(one).root("v1", 1.0)
        agents = Agents(5, one, other)
        for _ in range(120):
            await agents.act(name)
        now = agents.clock
    async with Database.open(tmp_path, None) as database:
        leases = Leases(database)
        again = replay(await leases.journal("v1"), 10.0, now)
        assert again.differing == ()
        assert len(again.choices) > 30
        assert len({choice.recorded for choice in again.choices}) > 2
        kept = await leases.tree("v1", 10.0, now)
        assert _text(again.tree) == _text(kept.seen())


async def test_a_choice_that_was_not_the_policys_is_found(tmp_path):
    async with Database.open(tmp_path, None) as database:
        await Captures(database).add(CAPTURE, [sighting()])
        trees, leases = Trees(database), Leases(database)
        root = await trees.root("v1", 1.0)
        node = await trees.file_node(filing("v1", root.id))
        await timed(trees, node, 1.0)
        await leases.take(request(policy="greedy"), 10.0, policy("linear"))
        await leases.take(request(policy="greedy"), 10.0, lambda tree: tree.root)
        again = replay(await leases.journal("v1"), 10.0, 1.0)
        (choice,) = again.differing
        assert (choice.recorded, choice.replayed) == (root.id, node.id)


async def test_a_tree_that_is_older_than_the_journal_goes_on(tmp_path, monkeypatch):
    known = migrations()
    monkeypatch.setattr(database_module, "migrations", lambda: [m for m in known if m[0] < JOURNAL])
    async with Database.open(tmp_path, None) as database:
        await Captures(database).add(CAPTURE, [sighting()])
        verdict, timing = codec.dumps(Verdict(status=Status.VALID, reason="")), codec.dumps(TIMING)
        async with database.transaction():
            await database.execute(
                """INSERT INTO nodes (variant_id, parent_id, label, author, note, visits, timing,
                                      verdict, created_at)
                   VALUES (1, NULL, 'fallback', 'engine', 'eager', 2, NULL, NULL, 1.0),
                          (1, 1, 'generated', 'me', '', 1, ?, ?, 1.0)""",
                (timing, verdict),
            )
            await database.execute(
                """INSERT INTO leases (variant_id, parent_id, holder, policy, expires_at)
                   VALUES (1, 1, 'me', 'log', 100.0)"""
            )
    monkeypatch.undo()
    async with Database.open(tmp_path, None) as database:
        leases = Leases(database)
        assert (await leases.open_lease("l1", 2.0)).repairs_left == 3
        await lease(database)
        again = replay(await leases.journal("v1"), 10.0, 50.0)
        assert [c.lease_id for c in again.choices] == ["l2"]
        assert again.differing == ()
        assert again.tree == (await leases.tree("v1", 10.0, 50.0)).seen()
