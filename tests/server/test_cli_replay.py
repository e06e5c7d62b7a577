"""A project's nodes judged and timed again: what does not hold any more is told, and kept apart."""

import json
import shutil
import sqlite3
from contextlib import closing

import pytest

pytestmark = pytest.mark.calm

RIGHT, WRONG = "y[(i + 1) % n] = x[i];", "y[i] = x[i];"


class Copied:
    """A copy of a project with one node."""

    def __init__(self, folder, run, node):
        self.folder, self.node, self._run = folder, node, run

    def sql(self, statement, *values):
        with (
            closing(sqlite3.connect(self.folder / ".kernelforge" / "forge.db")) as database,
            database,
        ):
            return database.execute(statement, values).fetchall()

    def rewrite(self, old, new):
        """Make the kernel another one, as another machine may."""
        self.sql("UPDATE sources SET text = replace(text, ?, ?)", old, new)

    def record(self):
        return self.sql("SELECT * FROM nodes")

    def replay(self, *options):
        ended = self._run("replay", self.folder, "--json", *options)
        return ended.returncode, json.loads(ended.stdout)


@pytest.fixture
def copied(forged, tmp_path):
    shutil.copytree(forged.folder / ".kernelforge", tmp_path / ".kernelforge")
    made = Copied(tmp_path, forged.run, forged.node)
    made.sql("DELETE FROM nodes WHERE parent_id IS NOT NULL AND id <> ?", forged.node[1:])
    made.sql("DELETE FROM attempts")
    return made


def test_a_node_that_does_not_hold_any_more_is_told_and_its_record_stays(copied):
    before = copied.record()
    copied.rewrite(RIGHT, WRONG)
    code, found = copied.replay()
    (row,) = found["rows"]
    assert (code, found["lost"], found["unsettled"]) == (1, [copied.node], [])
    assert (row["before"], row["then"]["outcome"]) == ("valid", "faster")
    assert (row["verdict"]["status"], row["now"]) == ("wrong_values", None)
    assert row["change"].startswith("valid -> wrong_values: ")
    assert copied.record() == before

    # What a replay that was killed leaves: rows, and no end.
    copied.rewrite(WRONG, RIGHT)
    copied.sql("UPDATE replays SET finished_at = NULL")
    code, again = copied.replay()
    assert (code, again["id"], again["resumed"]) == (1, found["id"], 1)
    assert again["rows"] == found["rows"]

    code, fresh = copied.replay("--fresh")
    (row,) = fresh["rows"]
    assert (code, fresh["lost"], fresh["resumed"]) == (0, [], 0)
    assert row["verdict"]["status"] == "valid"
    assert row["now"]["speedup"] > 0
    assert row["then"] == found["rows"][0]["then"]
    assert copied.record() == before


def test_a_replay_makes_no_project_where_there_is_none(kernelforge, sentence, tmp_path):
    assert "There is no project in" in sentence(kernelforge("replay", "nowhere"), 2)
    assert list(tmp_path.iterdir()) == []
