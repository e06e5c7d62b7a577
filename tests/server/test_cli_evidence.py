"""`evaluate --tier`, `explain` and `cast verify --rerun`: what a verdict rests on, and again."""

import dataclasses
import json

import pytest

from kernelforge_engine import codec
from kernelforge_engine.cast import manifest

pytestmark = pytest.mark.calm

TRIES = 6  # on a busy machine a timing may be inconclusive
WRONG = "y[(i + 1) % n] = x[i];"


@pytest.fixture(scope="session")
def promoted(forged):
    # A node of its own: what a benchmark finds of it is no other test's business.
    text = (forged.folder / "roll.cpp").read_text() + "// promoted\n"
    (forged.folder / "promoted.cpp").write_text(text)
    command = ("evaluate", "--variant", forged.variant, "promoted.cpp", "--json")
    for _ in range(TRIES):
        document = json.loads(forged.run(*command, "--tier", "promotion").stdout)
        assert document["status"] == "valid", document
        if document["timing"]["outcome"] == "faster":
            return document
    pytest.fail(f"promoted.cpp was never found faster: {document}")


@pytest.fixture(scope="session")
def cast(forged, promoted):
    exported = forged.run(
        "export", "-o", "promoted.cast", "--node", promoted["node_id"], "--no-measure"
    )
    assert exported.returncode == 0, exported.stderr
    return forged.folder / "promoted.cast"


def test_a_promotion_answers_with_its_evidence_bundle(forged, promoted):
    bundle = promoted["bundle"]
    evidence = bundle["verdict"]["evidence"]
    assert bundle["node_id"] == promoted["node_id"]
    assert evidence["policy"] == "promotion"
    assert evidence["sanitizers"]
    assert evidence["sandbox"]
    assert len(evidence["draws"]) > 7
    assert bundle["plan"]["launches"][0]["kernel"] == "k"
    assert bundle["timing"]["evidence"]
    origin = bundle["origin"]
    assert "-O3" in origin["compiler"]
    assert origin["machine"]["torch"]
    assert len(origin["samples"]) == 1


def test_a_quick_node_is_not_exported(forged, sentence):
    (forged.folder / "quick.cpp").write_text((forged.folder / "roll.cpp").read_text() + "// q\n")
    ended = forged.run(
        "evaluate", "--variant", forged.variant, "quick.cpp", "--tier", "quick", "--json"
    )
    node = json.loads(ended.stdout)["node_id"]
    said = sentence(forged.run("export", "-o", "quick.cast", "--node", node), 2)
    assert "quick tier only" in said


def test_a_cast_is_judged_and_timed_again_without_its_project(forged, cast):
    run = forged.run("cast", "verify", cast, "--rerun", "--project", "elsewhere", "--json")
    (row,) = json.loads(run.stdout)["rerun"]
    assert row["verdict"]["status"] == "valid", row
    assert row["now"]["scope"] == "O"
    assert row["then"]["outcome"] == "faster"
    assert run.returncode == (0 if row["holds"] else 1)


def test_a_cast_whose_kernel_is_wrong_fails_its_rerun_though_it_is_intact(forged, cast):
    file = manifest.read(cast)
    (entry,) = file.entries
    text = file.source(entry).text
    assert WRONG in text
    text = text.replace(WRONG, "y[i] = x[i];")
    other = dataclasses.replace(entry, source_digest=codec.sha256(text))
    manifest.write(
        forged.folder / "forgery.cast",
        file.header,
        [other],
        sources={other.source_digest: text},
        binaries={},
    )
    assert forged.run("cast", "verify", "forgery.cast").returncode == 0
    run = forged.run("cast", "verify", "forgery.cast", "--rerun")
    assert run.returncode == 1
    assert "wrong_values" in run.stdout


def test_a_cast_with_values_of_other_inputs_says_so(forged, cast):
    file = manifest.read(cast)
    (entry,) = file.entries
    (values,) = entry.origin.samples
    few = dataclasses.replace(values, data=values.data[:8])
    other = dataclasses.replace(entry, origin=dataclasses.replace(entry.origin, samples=(few,)))
    sources = {entry.source_digest: file.source(entry).text}
    path = forged.folder / "few.cast"
    manifest.write(path, file.header, [other], sources=sources, binaries={})
    run = forged.run("cast", "verify", path, "--rerun")
    assert run.returncode == 1
    assert "damaged, or of other inputs" in run.stdout


def test_explain_says_why_an_attempt_failed_and_what_mends_it(forged):
    (forged.folder / "copy.cpp").write_text(
        (forged.folder / "roll.cpp").read_text().replace(WRONG, "y[i] = 0;")
    )
    forged.run("evaluate", "--variant", forged.variant, "copy.cpp")
    tree = json.loads(forged.run("tree", "--variant", forged.variant, "--json").stdout)
    attempt = tree["attempts"][0]["id"]
    run = forged.run("explain", attempt)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith(f"{attempt} is wrong_values")
    document = json.loads(forged.run("explain", attempt, "--json").stdout)
    assert [e["name"] for e in document["explained"]] == ["wrong_values", "exact"]
    assert all(e["why"] and e["satisfied_by"] for e in document["explained"])


def test_explain_knows_rules_by_name_and_says_what_it_does_not_know(forged, sentence):
    assert "eager's own error" in forged.run("explain", "T1").stdout
    assert "nothing has that name" in sentence(forged.run("explain", "T9"), 2)
