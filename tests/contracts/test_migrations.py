"""A project folder of any age becomes one of today."""

import sqlite3

from kernelforge_engine.store.database import MIGRATIONS, Database, migrations


def test_migrations_are_numbered_one_after_another():
    # A folder remembers the last number that it has seen: one that comes later with a lower number,
    # or with the same, would be left out.
    assert [number for number, _ in migrations()] == list(range(1, len(migrations()) + 1))
    assert len(migrations()) == len(list(MIGRATIONS.glob("*.sql")))


async def test_a_tree_of_an_older_version_is_found_again(tmp_path):
    (tmp_path / "p").mkdir()
    with sqlite3.connect(tmp_path / "p" / "forge.db") as old:
        for number, script in migrations()[:2]:
            old.executescript(script)
            old.execute(f"PRAGMA user_version = {number}")
        old.execute("INSERT INTO variants (digest, call) VALUES ('d', '{}')")
        old.execute(
            """INSERT INTO nodes (variant_id, label, author, note, timing, verdict, created_at)
               VALUES (1, 'generated', 'a', '', '{"outcome":"faster","low":1.5,"speedup":1.6}',
                       '{"status":"valid"}', 0)"""
        )
    async with Database.open(tmp_path / "p", None) as database:
        (found,) = await database.rows("SELECT valid, faster, low, outcome FROM nodes")
        assert tuple(found) == (1, 1, 1.5, "faster")
        (variant,) = await database.rows("SELECT revision FROM variants")
        assert variant["revision"] == 0
