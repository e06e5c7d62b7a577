"""`kernelforge cast`: a cast is signed, looked into, compared, merged and made this machine's."""

import dataclasses
import json
import stat

import pytest

from kernelforge_engine import codec
from kernelforge_engine.cast import archive, manifest
from kernelforge_engine.cast.words import call_words
from kernelforge_engine.launch.resolve import resolve

pytestmark = pytest.mark.calm

TRIES = 6  # on a busy machine a timing may be inconclusive
ELSEWHERE = "A machine far away"


@pytest.fixture
def folder(forged, tmp_path):
    """A folder without a project, with a cast in it."""
    (tmp_path / "good.cast").write_bytes((forged.folder / "good.cast").read_bytes())
    return tmp_path


@pytest.fixture
def run(kernelforge, folder):
    return kernelforge


def written(path, file, *entries, **header):
    """A cast of entries of another one, whose sources may be given anew as text."""
    texts = {e.source_digest: file.source(e).text for e in file.entries}
    texts |= {codec.sha256(text): text for text in header.pop("texts", ())}
    header = dataclasses.replace(file.header, **header)
    manifest.write(path, header, entries, sources=texts, binaries={})


def resized(entry, shape):
    """The entry for another shape of as many dimensions."""

    def moved(spec):
        return dataclasses.replace(spec, shape=shape, stride=(shape[1], 1))

    outputs = tuple(dataclasses.replace(o, tensor=moved(o.tensor)) for o in entry.call.outputs)
    call = dataclasses.replace(
        entry.call, inputs=tuple(map(moved, entry.call.inputs)), outputs=outputs
    )
    call = dataclasses.replace(call, words=call_words(call))
    return dataclasses.replace(entry, call=call, resolved=resolve(entry.plan, call))


def test_a_cast_is_signed_and_believed_by_those_who_name_the_key(forged, run, folder, sentence):
    made = json.loads(run("cast", "keygen", "me.key", "--json").stdout)
    assert stat.S_IMODE((folder / "me.key").stat().st_mode) == 0o600
    assert "that file exists" in sentence(run("cast", "keygen", "me.key"), 2)
    assert "it is not signed" in sentence(
        run("cast", "verify", "good.cast", "--key", "me.key.pub"), 2
    )
    assert "none: nothing tells who made it" in run("cast", "verify", "good.cast").stdout

    assert run("cast", "sign", "good.cast", "--key", "me.key").returncode == 0
    for key in ("me.key.pub", made["fingerprint"]):
        document = json.loads(run("cast", "verify", "good.cast", "--key", key, "--json").stdout)
        assert (document["signature"], document["signed_by"]) == ("signed", made["fingerprint"])
    assert made["fingerprint"] in run("cast", "inspect", "good.cast").stdout

    run("cast", "keygen", "other.key")
    refused = ("--key", "other.key.pub")
    ended = run("cast", "inspect", "good.cast", *refused)
    assert "is no key that was named" in sentence(ended, 2)
    (folder / "model.py").write_text((forged.folder / "model.py").read_text())
    ended = run("measure", "model.py", "--cast", "good.cast", *refused)
    assert "is no key that was named" in sentence(ended, 2)


def test_a_wrongly_signed_cast_is_named_as_that(run, folder, sentence):
    run("cast", "keygen", "me.key")
    run("cast", "sign", "good.cast", "--key", "me.key")
    files = archive.read(folder / "good.cast").files
    header = files["HEADER.json"].replace(b'"torch":"', b'"torch":"9')
    archive.write(folder / "good.cast", {**files, "HEADER.json": header})
    for command in ("verify", "inspect"):
        assert "it is wrongly signed" in sentence(run("cast", command, "good.cast"), 2)


def test_inspect_tells_where_a_cast_comes_from_and_shows_its_sources(run, folder, sentence):
    said = run("cast", "inspect", "good.cast").stdout
    for part in ("exported by Kernel Forge", "judged on", "runs on", "any CPU", "signature", "none",
                 "are inside", "sha256", "aten::roll", "full", "generated"):  # fmt: skip
        assert part in said
    document = json.loads(run("cast", "inspect", "good.cast", "--json").stdout)
    (kernel,) = document["kernels"]
    node = kernel["sizes"][0]["node_id"]
    file = manifest.read(folder / "good.cast")
    text = file.source(file.entries[0]).text
    assert run("cast", "inspect", "good.cast", "--source", 1).stdout == text
    shown = run("cast", "inspect", "good.cast", "--source", node, "--json").stdout
    assert json.loads(shown)["source"] == text
    assert "a number from 1 to 1" in sentence(run("cast", "inspect", "good.cast", "--source", 7), 2)


def test_a_family_is_one_kernel_with_its_sizes_below_it(run, folder):
    file = manifest.read(folder / "good.cast")
    (entry,) = file.entries
    sizes = [resized(entry, (n, 8)) for n in range(2, 14)]
    untimed = dataclasses.replace(sizes[-1], timing=None)
    written(folder / "family.cast", file, *sizes[:-1], untimed)
    said = run("cast", "inspect", "family.cast").stdout
    assert "1 kernel for 12 calls" in said
    (row,) = [line for line in said.splitlines() if line.startswith("1  ")]
    assert "f32[2..13, 8]" in row
    assert "  f32[2, 8], shifts=[1]" in said
    assert "and 4 sizes more" in said
    written(folder / "few.cast", file, sizes[0], untimed)
    said = run("cast", "inspect", "few.cast").stdout
    assert "f32[2|13, 8]" in said
    assert "as its neighbours" in said


def test_looking_into_casts_makes_no_project(run, folder):
    run("cast", "keygen", "k")
    for command in ("inspect good.cast", "verify good.cast", "diff good.cast good.cast",
                    "merge -o m.cast good.cast", "sign m.cast --key k"):  # fmt: skip
        assert run("cast", *command.split()).returncode == 0
    assert {p.name for p in folder.iterdir()} == {"good.cast", "m.cast", "k", "k.pub"}


def test_diff_ends_with_0_where_casts_are_equal_and_with_1_where_not(run, folder, sentence):
    ended = run("cast", "diff", "good.cast", "good.cast")
    assert (ended.returncode, "the same, byte for byte" in ended.stdout) == (0, True)
    file = manifest.read(folder / "good.cast")
    (entry,) = file.entries
    text = file.source(entry).text + "// the same again\n"
    other = dataclasses.replace(entry, source_digest=codec.sha256(text))
    more = dataclasses.replace(resized(entry, (4, 4)), node_id="n9")
    written(folder / "b.cast", file, other, more, texts=[text], torch="9.9")
    ended = run("cast", "diff", "good.cast", "b.cast", "--sources")
    assert ended.returncode == 1
    assert "+// the same again" in ended.stdout
    for part in ("torch: ", " -> 9.9", "Only in b.cast:", "f32[4, 4]", "source (-0 +1 lines)"):
        assert part in ended.stdout
    document = json.loads(run("cast", "diff", "good.cast", "b.cast", "--json").stdout)
    assert not document["equal"]
    assert document["changed"][0]["differs"] == ["source"]
    assert "none.cast" in sentence(run("cast", "diff", "good.cast", "none.cast"), 2)


def test_merge_says_what_it_chose_and_asks_where_it_cannot(run, folder, sentence):
    file = manifest.read(folder / "good.cast")
    (entry,) = file.entries
    text = file.source(entry).text + "// other\n"
    faster = dataclasses.replace(
        entry,
        source_digest=codec.sha256(text),
        node_id="n77",
        timing=dataclasses.replace(entry.timing, speedup=90.0, low=80.0, high=99.0),
    )
    written(folder / "b.cast", file, faster, texts=[text])
    ended = run("cast", "merge", "-o", "m.cast", "good.cast", "b.cast")
    assert ended.returncode == 0, ended.stderr
    assert f"kept n77 of {folder}/b.cast" in ended.stdout
    assert "it exists" in sentence(run("cast", "merge", "-o", "m.cast", "b.cast"), 2)

    machine = dataclasses.replace(entry.origin.machine, device_name=ELSEWHERE)
    far = dataclasses.replace(faster, origin=dataclasses.replace(entry.origin, machine=machine))
    written(folder / "far.cast", file, far, texts=[text], device_name=ELSEWHERE)
    said = sentence(run("cast", "merge", "-o", "x.cast", "good.cast", "far.cast"), 2)
    assert f"--prefer {folder}/far.cast" in said
    assert not (folder / "x.cast").exists()
    ended = run("cast", "merge", "-o", "x.cast", "good.cast", "far.cast", "--prefer", "far.cast",
                "--json")  # fmt: skip
    document = json.loads(ended.stdout)
    assert [choice["kept"] for choice in document["choices"]] == ["n77"]


def test_values_of_the_model_are_left_out_where_that_is_asked_for(forged, run, folder):
    out = folder / "bare.cast"
    where = ("--project", ".kernelforge", "--no-measure")
    options = ("--no-samples", "--no-measure", *where)
    ended = forged.run("export", "-o", out, "--node", forged.node, *options)
    assert ended.returncode == 0, ended.stderr
    assert "no values of them are inside" in run("cast", "inspect", "bare.cast").stdout
    assert manifest.read(out).entries[0].origin.samples == ()
    assert manifest.read(out).entries[0].origin.compiler
    merged = run("cast", "merge", "-o", "m.cast", "good.cast", "--no-samples")
    assert merged.returncode == 0
    assert "no values of them are inside" in run("cast", "inspect", "m.cast").stdout


def test_without_values_a_rerun_draws_normal_ones_and_says_so(run, folder):
    run("cast", "merge", "-o", "bare.cast", "good.cast", "--no-samples")
    said = run("cast", "verify", "bare.cast", "--rerun").stdout
    assert "1 kernel ran on normal values: the cast carries none" in said
    assert "valid, " in said


def test_a_cast_from_elsewhere_becomes_one_of_this_machine(run, folder):
    file = manifest.read(folder / "good.cast")
    (entry,) = file.entries
    machine = dataclasses.replace(entry.origin.machine, device_name=ELSEWHERE)
    timing = dataclasses.replace(entry.timing, speedup=77.0, low=76.0, high=78.0)
    origin = dataclasses.replace(entry.origin, machine=machine)
    far = dataclasses.replace(entry, origin=origin, timing=timing)
    wrong = file.source(entry).text.replace("y[(i + 1) % n] = x[i];", "y[i] = x[i];")
    broken = file.source(entry).text.replace("x[i];", "nothing[i];")
    bare = dataclasses.replace(far, origin=dataclasses.replace(origin, samples=()))
    bad = [
        dataclasses.replace(resized(bare, shape), source_digest=codec.sha256(text), node_id=node)
        for shape, text, node in (((8, 4), wrong, "n8"), ((4, 4), broken, "n9"))
    ]
    path = folder / "far.cast"
    written(path, file, far, *bad, texts=[wrong, broken], device_name=ELSEWHERE)
    for _ in range(TRIES):
        ended = run("cast", "adapt", "far.cast", "-o", "here.cast", "--json")
        document = json.loads(ended.stdout)
        if document["cast"] is not None:
            break
        assert ended.returncode == 3
        assert not (folder / "here.cast").exists()
    assert ended.returncode == 0
    assert [row["kept"] for row in document["rows"]] == [True, False, False]
    statuses = [row["verdict"]["status"] for row in document["rows"]]
    assert statuses == ["valid", "wrong_values", "compile_failed"]
    here = manifest.read(folder / "here.cast")
    (kept,) = here.entries
    assert kept.origin.machine == entry.origin.machine
    assert kept.timing.speedup == document["rows"][0]["now"]["speedup"] != 77.0
    assert kept.origin.samples == entry.origin.samples
    assert (here.header.made_by, here.header.made_from) == ("adapt", (manifest.read(path).sha256,))
    assert here.header.device_name == entry.origin.machine.device_name


def test_where_nothing_holds_nothing_is_written(run, folder):
    file = manifest.read(folder / "good.cast")
    (entry,) = file.entries
    wrong = file.source(entry).text.replace("y[(i + 1) % n] = x[i];", "y[i] = 0;")
    written(
        folder / "bad.cast",
        file,
        dataclasses.replace(entry, source_digest=codec.sha256(wrong)),
        texts=[wrong],
    )
    ended = run("cast", "adapt", "bad.cast", "-o", "here.cast")
    assert ended.returncode == 3
    assert "wrong_values" in ended.stdout
    assert "nothing is written" in ended.stdout
    assert not (folder / "here.cast").exists()
