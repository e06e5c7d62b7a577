"""The files of example tensors: what is collected, and what a running capture keeps."""

import os

import pytest

from kernelforge_engine.exchanges import Collected
from kernelforge_engine.store.blobs import UNLOCKED, blob_path, collect, sizes, staged

NOW, HOURS = 1_000_000.0, 7200.0


def aged(path, seconds):
    os.utime(path, (NOW - seconds, NOW - seconds))


@pytest.fixture
def old(tmp_path):
    path = blob_path(tmp_path, "old")
    path.parent.mkdir()
    path.write_bytes(b"x" * 100)
    aged(path, HOURS)
    return path


def test_nothing_is_collected_while_a_capture_stores_its_tensors(tmp_path, old):
    with staged(tmp_path), staged(tmp_path):
        assert collect(tmp_path, set(), NOW) == Collected(running=2)
    assert collect(tmp_path, set(), NOW) == Collected(blobs=1, bytes=100)
    assert not old.exists()


def test_what_a_capture_has_found_is_young_again(tmp_path, old):
    with staged(tmp_path) as stage:
        assert stage.has("old")
        assert not stage.has("new")
    assert collect(tmp_path, set(), NOW) == Collected(young_bytes=100)
    aged(old, HOURS)
    assert collect(tmp_path, {"old"}, NOW) == Collected()
    assert sizes(tmp_path) == {"old": 100}


def test_what_was_published_is_there_and_the_rest_of_a_stage_is_not(tmp_path):
    with staged(tmp_path) as stage:
        for name in ("aa", "bb"):
            stage.path(name).write_bytes(b"x")
        stage.publish({"aa"})
        stage.publish({"aa"})
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [blob_path(tmp_path, "aa")]


def test_what_killed_captures_left_is_collected_an_hour_later(tmp_path):
    killed = tmp_path / "staged" / "killed"
    killed.mkdir(parents=True)
    (killed / "half.part").write_bytes(b"x")
    (killed / "whole.safetensors").write_bytes(b"xx")
    unlocked = tmp_path / "staged" / f"{UNLOCKED}early"
    unlocked.mkdir()
    assert collect(tmp_path, set(), NOW) == Collected(young_bytes=2)
    assert not killed.exists()
    aged(blob_path(tmp_path, "whole"), HOURS)
    aged(unlocked, HOURS)
    assert collect(tmp_path, set(), NOW) == Collected(blobs=1, bytes=2)
    assert list((tmp_path / "staged").iterdir()) == []
