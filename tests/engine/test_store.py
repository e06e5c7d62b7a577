"""The project folder: what survives, what is refused, and in which words."""

import asyncio
import os
import sqlite3

import anyio
import pytest
from store_cases import CAPTURE, filing, lease, sighting

from kernelforge_engine.errors import (
    CaptureHoldsWork,
    SchemaTooNew,
    StoreUnavailable,
    UnknownId,
)
from kernelforge_engine.records import Family, Member, Status
from kernelforge_engine.store.blobs import blob_path
from kernelforge_engine.store.captures import Captures
from kernelforge_engine.store.database import Database
from kernelforge_engine.store.removal import Removal
from kernelforge_engine.store.trees import Trees


async def test_a_capture_comes_back_whole_after_reopening(tmp_path):
    async with Database.open(tmp_path, None) as database:
        capture = await Captures(database).add(CAPTURE, [sighting(1, 0.2), sighting(2, 0.7)])
    async with Database.open(tmp_path, None) as database:
        captures = Captures(database)
        assert await captures.get(None) == capture
        (card,) = await captures.cards(capture.id)
        assert (card.operator, card.calls, card.headroom) == ("aten::relu", 4, 10.0)
        assert [v.call.words[0] for v in card.variants] == [2, 1]
        assert await captures.variant(card.variants[0].id) == card.variants[0]


async def test_a_second_capture_finds_the_variants_of_the_first(tmp_path):
    async with Database.open(tmp_path, None) as database:
        captures = Captures(database)
        first = await captures.add(CAPTURE, [sighting(1)])
        second = await captures.add(CAPTURE, [sighting(1), sighting(2)])
        before = {v.id for c in await captures.cards(first.id) for v in c.variants}
        after = {v.id for c in await captures.cards(second.id) for v in c.variants}
        assert before < after


async def test_a_variant_stays_a_target_when_a_later_capture_kept_no_example_of_it(tmp_path):
    bare = sighting(share=0.9, target=False, reason="the budget is used up", examples=())
    async with Database.open(tmp_path, None) as database:
        captures = Captures(database)
        await captures.add(CAPTURE, [bare])
        assert (await captures.variant("v1")).reason == "the budget is used up"
        await captures.add(CAPTURE, [sighting(share=0.2)])
        await captures.add(CAPTURE, [sighting(share=0.3)])
        await captures.add(CAPTURE, [bare])
        seen = await captures.variant("v1")
        assert (seen.target, seen.share, seen.examples) == (True, 0.3, (("blob",),))


TABLES = ["captures", "cards", "sightings", "variants", "nodes", "attempts", "leases", "journal",
          "sources", "profiles"]  # fmt: skip


async def rows_of(database):
    return [len(await database.rows(f"SELECT 1 FROM {table}")) for table in TABLES]


async def test_a_removed_capture_takes_the_variants_that_only_it_saw(tmp_path):
    async with Database.open(tmp_path, None) as database:
        captures, trees = Captures(database), Trees(database)
        first = await captures.add(CAPTURE, [sighting(1), sighting(2)])
        second = await captures.add(CAPTURE, [sighting(1), sighting(3)])
        await trees.root("v2", 1.0)
        await trees.file_node(filing("v1", (await trees.root("v1", 1.0)).id))
        removed = await Removal(database, tmp_path / "blobs").capture(first.id, force=False)
        assert (removed.variants, removed.nodes) == (1, 0)
        assert [c.id for c in await captures.all()] == [second.id]
        assert (await captures.variant("v1")).card_id == "k2"
        with pytest.raises(UnknownId):
            await captures.variant("v2")
        assert len(await trees.nodes("v1")) == 2
        third = await captures.add(CAPTURE, [sighting(2)])
        assert (third.id, (await captures.variant("v4")).calls) == ("c3", 2)


async def test_a_capture_whose_variants_hold_nodes_is_removed_by_force_only(tmp_path):
    async with Database.open(tmp_path, None) as database:
        capture = await Captures(database).add(CAPTURE, [sighting(1), sighting(2)])
        trees, removal = Trees(database), Removal(database, tmp_path / "blobs")
        root = await trees.root("v1", 1.0)
        held = await lease(database)
        await trees.file_attempt(filing("v1", root.id, held.id, Status.WRONG_VALUES, "bad"))
        node = await trees.file_node(filing("v1", root.id, held.id))
        await trees.file_node(filing("v1", node.id, digest="e"))
        before = await rows_of(database)
        with pytest.raises(CaptureHoldsWork, match="n2 of v1, n3 of v1, which would go with it"):
            await removal.capture(capture.id, force=False)
        assert await rows_of(database) == before
        removed = await removal.capture(capture.id, force=True)
        assert (removed.variants, removed.nodes) == (2, 2)
        assert not any(await rows_of(database))


def blob(folder, name, age_seconds):
    path = blob_path(folder / "blobs", name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * 100)
    os.utime(path, (NOW - age_seconds,) * 2)
    return path


NOW, HOURS = 1_000_000.0, 7200.0


async def test_a_collection_keeps_what_is_named_or_young(tmp_path):
    call = sighting().call
    member = Member(sizes=(2,), call=call, calls=1, eager_us=1.0, floor_us=1.0, examples=(("mm",),))
    family = Family(symbols=("s0",), fits=((0, 1),), members=(member,), held_out=())
    seen = [sighting(1, examples=(("aa", "ss"), ("aa", "bb"))), sighting(2, family=family)]
    async with Database.open(tmp_path, None) as database:
        await Captures(database).add(CAPTURE, [*seen, sighting(3, examples=())])
        kept = [blob(tmp_path, name, HOURS) for name in ("aa", "bb", "ss", "mm", "blob")]
        young, old = blob(tmp_path, "young", 60.0), blob(tmp_path, "old", HOURS)
        found = await Removal(database, tmp_path / "blobs").collect(NOW)
        assert (found.blobs, found.bytes, found.young_bytes) == (1, 100, 100)
        assert all(path.exists() for path in [*kept, young])
        assert not old.exists()


async def test_servers_that_start_together_make_one_project(tmp_path):
    async def start():
        async with Database.open(tmp_path / "project", None) as database:
            await Captures(database).add(CAPTURE, [sighting()])

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(start)
    async with Database.open(tmp_path / "project", None) as database:
        assert len(await Captures(database).all()) == 8


async def half_a_transaction(database):
    async with database.transaction():
        await database.insert("INSERT INTO captures (record, created_at) VALUES ('{}', ?)", (1.0,))
        raise ZeroDivisionError


async def cancel_by_scope(write):
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(write)
            await anyio.sleep(0.2)
            scope.cancel()


async def cancel_by_task(write):
    task = asyncio.ensure_future(write())
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("cancelled", [cancel_by_scope, cancel_by_task])
async def test_a_writer_cancelled_while_it_waits_leaves_no_transaction_open(tmp_path, cancelled):
    async with Database.open(tmp_path, None) as database:
        captures = Captures(database)

        async def write():
            await captures.add(CAPTURE, [sighting()])

        other = sqlite3.connect(tmp_path / "forge.db", isolation_level=None, timeout=0.5)
        other.execute("BEGIN IMMEDIATE")
        async with anyio.create_task_group() as group:
            group.start_soon(cancelled, write)
            await anyio.sleep(0.5)
            other.execute("COMMIT")
        await anyio.sleep(0.3)
        other.execute("BEGIN IMMEDIATE")
        other.execute("COMMIT")
        other.close()
        await write()
        assert len(await captures.all()) == 1


async def fill(captures):
    for number in range(10_000):
        await captures.add(CAPTURE, [sighting(number)])


async def test_nothing_of_a_failed_transaction_is_kept(tmp_path):
    async with Database.open(tmp_path, None) as database:
        with pytest.raises(ZeroDivisionError):
            await half_a_transaction(database)
        assert await Captures(database).all() == ()


async def test_a_full_disk_is_named_and_loses_nothing(tmp_path):
    async with Database.open(tmp_path, 400_000) as database:
        captures = Captures(database)
        with pytest.raises(StoreUnavailable, match="full: its quota is 400000 bytes"):
            await fill(captures)
        filed = await captures.all()
    async with Database.open(tmp_path, None) as database:
        assert await Captures(database).all() == filed != ()


async def test_a_project_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable, match="choose another folder with --project"):
        async with Database.open(tmp_path / "file" / "project", None):
            pass


async def test_a_newer_schema_is_left_alone(tmp_path):
    async with Database.open(tmp_path, None):
        pass
    with sqlite3.connect(tmp_path / "forge.db") as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    with pytest.raises(SchemaTooNew, match="upgrade"):
        async with Database.open(tmp_path, None):
            pass


@pytest.mark.parametrize(
    "text", ["v", "x1", "v1; DROP TABLE nodes", "v-1", "", "v99", "v²", "v" + "9" * 40]
)
async def test_an_id_that_names_nothing_says_where_ids_come_from(tmp_path, text):
    async with Database.open(tmp_path, None) as database:
        with pytest.raises(UnknownId, match="Next: list the cards"):
            await Captures(database).variant(text)
