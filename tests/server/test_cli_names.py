"""Names that mean nothing in a project, and files that are not what they should be."""

import json
import shutil

import pytest

UNKNOWN = [
    ("cards --capture c9", "capture 'c9'"),
    ("optimize --capture c9 --json", "capture 'c9'"),
    ("evaluate roll.cpp --variant v99", "variant 'v99'"),
    ("evaluate roll.cpp --variant k1 --json", "variant 'k1'"),
    ("evaluate other.cpp --variant VARIANT --parent n99", "node 'n99'"),
    ("tree --variant banana", "variant 'banana'"),
    ("tree --json --variant v" + "9" * 30, "variant 'v999"),
    ("export -o x.cast --node n99 --json", "node 'n99'"),
]


@pytest.mark.parametrize(("line", "words"), UNKNOWN)
def test_an_id_that_names_nothing_is_refused(forged, sentence, line, words):
    (forged.folder / "other.cpp").write_text("int x;")
    arguments = line.replace("VARIANT", forged.variant).split()
    assert f"There is no {words}" in sentence(forged.run(*arguments), 2)


def test_a_variant_that_is_no_target_says_why(forged, sentence):
    ended = forged.run("evaluate", "roll.cpp", "--variant", forged.no_target, "--json")
    assert f"Variant {forged.no_target} is not a target: " in sentence(ended, 2)


def test_a_parent_of_another_variant_is_refused(forged, sentence):
    cards = json.loads(forged.run("cards", "--json").stdout)["cards"]
    add = next(c["variants"][0]["id"] for c in cards if c["operator"] == "aten::add.Tensor")
    ended = forged.run("evaluate", "roll.cpp", "--variant", add, "--parent", forged.node)
    assert f"it belongs to {forged.variant}" in sentence(ended, 2)


def test_a_missing_file_among_good_ones_is_found_before_anything_is_judged(forged, sentence):
    (forged.folder / "new.cpp").write_text("int new_one;")
    tree = forged.run("tree", "--variant", forged.variant, "--json").stdout
    for wrong in ("missing.cpp", "."):
        ended = forged.run("evaluate", "new.cpp", wrong, "--variant", forged.variant, "--json")
        assert f"no readable file at {wrong}" in sentence(ended, 2)
    assert forged.run("tree", "--variant", forged.variant, "--json").stdout == tree


def test_an_example_that_was_lost_is_named_with_its_file(forged, sentence, tmp_path):
    shutil.copytree(forged.folder / ".kernelforge", tmp_path / "project")
    (forged.folder / "again.cpp").write_text((forged.folder / "roll.cpp").read_text() + "//")
    arguments = ["evaluate", "again.cpp", "--variant", forged.variant]
    for blob in (tmp_path / "project" / "blobs").glob("*/*"):
        blob.write_bytes(blob.read_bytes()[:40])
    text = sentence(forged.run(*arguments, "--project", tmp_path / "project"), 1)
    assert f"The example tensor {tmp_path}" in text
    assert "capture the model again" in text


def test_a_database_that_is_none_is_named(forged, sentence, tmp_path):
    (tmp_path / "forge.db").write_text("no database at all" * 100)
    text = sentence(forged.run("cards", "--project", tmp_path, "--json"), 1)
    assert "file is not a database" in text


def damaged(good):
    flipped = bytearray(good)
    flipped[len(good) // 2] ^= 1
    return {
        "truncated": good[: len(good) // 2],
        "flipped": bytes(flipped),
        "text": b"PK\x03\x04 not a cast\n",
        "empty": b"",
    }


@pytest.mark.parametrize("damage", ["truncated", "flipped", "text", "empty"])
def test_a_damaged_cast_is_no_cast(forged, sentence, damage):
    path = forged.folder / f"{damage}.cast"
    path.write_bytes(damaged((forged.folder / "good.cast").read_bytes())[damage])
    assert f"{path} is not a cast" in sentence(forged.run("cast", "verify", path, "--json"), 2)


def test_every_command_that_reads_a_cast_checks_it(forged, sentence):
    (forged.folder / "bad.cast").write_text("text")
    for arguments in (
        ["cast", "inspect", "bad.cast"],
        ["measure", "model.py", "--cast", "bad.cast"],
    ):
        assert "bad.cast is not a cast" in sentence(forged.run(*arguments), 2)


def test_a_cast_is_never_written_over_unasked(forged, sentence):
    before = (forged.folder / "good.cast").read_bytes()
    ended = forged.run("export", "-o", "good.cast", "--node", forged.node)
    assert "it exists" in sentence(ended, 2)
    assert (forged.folder / "good.cast").read_bytes() == before


def test_eager_itself_is_not_exported(forged, sentence):
    root = json.loads(forged.run("tree", "--variant", forged.variant, "--json").stdout)["nodes"][0]
    ended = forged.run("export", "-o", "root.cast", "--node", root["id"], "--json")
    assert "it is eager itself" in sentence(ended, 2)
