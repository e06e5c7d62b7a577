"""Casts of several projects and machines become one, and two casts can be told apart."""

import dataclasses

import cast_cases
import pytest

from kernelforge_engine.cast import archive, keys, manifest, publish
from kernelforge_engine.cast.across import across_text
from kernelforge_engine.cast.compare import compare
from kernelforge_engine.cast.merging import merge
from kernelforge_engine.cast.report import report
from kernelforge_engine.errors import BadOption, CastRejected, CastsConflict
from kernelforge_engine.records import Label


@pytest.fixture
def cast(tmp_path):
    """Writes a cast and reads it back."""

    def made(name, *entries, **more):
        return cast_cases.written(tmp_path / f"{name}.cast", *entries, **more)

    return made


def merged(tmp_path, *casts, **more):
    """The merged cast, read back, and the choices that were made."""
    found = merge(casts, **more)
    publish.save(tmp_path / "merged.cast", found.draft)
    return manifest.read(tmp_path / "merged.cast"), found.choices


def test_different_calls_stand_side_by_side_with_their_machines(tmp_path, cast):
    one = cast("a", cast_cases.entry(), device_name="AMD EPYC")
    bare = dataclasses.replace(cast_cases.entry(call=cast_cases.relu((4,))), origin=None)
    other = cast("b", bare, device_name="Apple M4", torch="2.12.0", created_at=1_800_000_000.0)
    found, choices = merged(tmp_path, one, other)
    assert choices == ()
    assert [len(e.call.inputs[0].shape) for e in found.entries] == [2, 1]
    machines = [e.origin.machine for e in found.entries]
    assert [m.device_name for m in machines] == ["AMD EPYC", "Apple M4"]
    assert machines[1].torch == "2.12.0"
    header = found.header
    assert (header.device_name, header.torch) == ("AMD EPYC, Apple M4", "2.13.0, 2.12.0")
    assert (header.made_by, header.made_from) == ("merge", (one.sha256, other.sha256))
    assert header.created_at == 1_800_000_000.0
    assert [e.timing for e in found.entries] == [one.entries[0].timing, other.entries[0].timing]


def test_the_same_casts_give_the_same_bytes(tmp_path, cast):
    casts = [cast(n, cast_cases.entry(call=cast_cases.relu((i,)))) for i, n in ((4, "a"), (5, "b"))]
    first = merged(tmp_path, *casts)[0].sha256
    assert merged(tmp_path, *casts)[0].sha256 == first


def test_one_kernel_for_two_architectures_is_one_entry_with_two_binaries(tmp_path, cast):
    hopper, image = cast_cases.gpu_entry("sm_90", "NVIDIA H200", speedup=2.0)
    ampere, other = cast_cases.gpu_entry("sm_80", "NVIDIA A100", speedup=1.2, node="n7")
    found, choices = merged(
        tmp_path, cast("a", hopper, binaries=image), cast("b", ampere, binaries=other)
    )
    (entry,) = found.entries
    assert choices == ()
    assert [b.arch for b in entry.binaries] == ["sm_90", "sm_80"]
    assert [found.files[b.file] for b in entry.binaries] == [b"cubin of sm_90", b"cubin of sm_80"]
    evidence = found.evidence(entry)
    assert [e.origin.machine.device_name for e in evidence] == ["NVIDIA H200", "NVIDIA A100"]
    assert [e.timing.speedup for e in evidence] == [2.0, 1.2]
    assert [e.node_id for e in evidence] == ["n1", "n7"]
    (kernel,) = report(found.path).kernels
    assert kernel.archs == ("sm_90", "sm_80")
    assert [f.arch for f in kernel.sizes[0].found] == ["sm_90", "sm_80"]


def test_a_binary_that_nothing_was_found_about_is_refused(tmp_path):
    entry, images = cast_cases.gpu_entry("sm_90", "NVIDIA H200")
    other, more = cast_cases.gpu_entry("sm_80", "NVIDIA A100")
    two = dataclasses.replace(entry, binaries=(*entry.binaries, *other.binaries))
    with pytest.raises(CastRejected, match="binaries that nothing was found about"):
        cast_cases.written(tmp_path / "x.cast", two, binaries={**images, **more})
    moved = dataclasses.replace(entry, origin=cast_cases.origin("NVIDIA A100", "sm_80"))
    with pytest.raises(CastRejected, match="binaries that nothing was found about"):
        cast_cases.written(tmp_path / "x.cast", moved, binaries=images)
    twice = dataclasses.replace(entry, binaries=entry.binaries * 2)
    with pytest.raises(CastRejected, match="binaries that nothing was found about"):
        cast_cases.written(tmp_path / "x.cast", twice, binaries=images)


def test_evidence_about_other_code_does_not_come_along(tmp_path, cast):
    one, image = cast_cases.gpu_entry("sm_90", "NVIDIA H100", image=b"one compiler")
    other, image2 = cast_cases.gpu_entry("sm_90", "NVIDIA H200", image=b"another compiler")
    found, _ = merged(tmp_path, cast("a", one, binaries=image), cast("b", other, binaries=image2))
    (entry,) = found.entries
    assert found.files[entry.binaries[0].file] == b"one compiler"
    assert [e.origin.machine.device_name for e in found.evidence(entry)] == ["NVIDIA H100"]


def test_of_two_kernels_timed_on_one_device_the_faster_is_kept(tmp_path, cast):
    slow = cast("slow", cast_cases.entry(speedup=1.2))
    fast = cast("fast", cast_cases.entry(cast_cases.OTHER_RELU, speedup=1.9, node="n4"))
    for casts in ((slow, fast), (fast, slow)):
        found, (choice,) = merged(tmp_path, *casts)
        assert [e.node_id for e in found.entries] == ["n4"]
        assert (choice.kept_of, choice.dropped_of) == (str(fast.path), str(slow.path))
        assert "at least 1.80x against 1.10x on AMD EPYC" in choice.why
    found, (choice,) = merged(tmp_path, slow, fast, prefer=slow.path)
    assert [e.node_id for e in found.entries] == ["n1"]
    assert choice.why == "preferred"
    with pytest.raises(BadOption, match="none of the casts"):
        merge([slow, fast], prefer=tmp_path / "other.cast")


@pytest.mark.parametrize("how", ["device", "torch", "untimed", "split"])
def test_two_kernels_that_nothing_decides_between_are_a_conflict(tmp_path, cast, how):
    mine = cast_cases.entry(speedup=1.2)
    theirs = cast_cases.entry(cast_cases.OTHER_RELU, speedup=1.9)
    change = {
        "device": {"origin": cast_cases.origin("Apple M4")},
        "torch": {"origin": cast_cases.origin(torch="2.12.0")},
        "untimed": {"timing": None},
        "split": {},
    }[how]
    casts = [cast("a", mine), cast("b", dataclasses.replace(theirs, **change))]
    if how == "split":  # on the second machine it is the other way round
        elsewhere = {"device_name": "Apple M4"}
        there = [
            dataclasses.replace(
                e, timing=cast_cases.timing(s), origin=cast_cases.origin("Apple M4")
            )
            for e, s in ((mine, 1.9), (theirs, 1.2))
        ]
        more = [cast(n, e, **elsewhere) for n, e in zip("cd", there, strict=True)]
        drafts = [merge(pair).draft for pair in zip(casts, more, strict=True)]
        casts = []
        for name, draft in zip(("a", "b"), drafts, strict=True):
            publish.save(tmp_path / f"{name}.cast", draft)
            casts.append(manifest.read(tmp_path / f"{name}.cast"))
    with pytest.raises(CastsConflict) as caught:
        merge(casts)
    for part in ("a.cast", "b.cast", "aten::relu", "--prefer", "Next: "):
        assert part in str(caught.value)
    found, _ = merged(tmp_path, *casts, prefer=casts[1].path)
    assert found.entries[0].source_digest == theirs.source_digest


def test_node_ids_of_two_projects_do_not_collide(tmp_path, cast):
    one = cast("a", cast_cases.entry())
    sizes = [cast_cases.relu((n,)) for n in (4, 5)]
    other = cast("b", *(cast_cases.entry(cast_cases.OTHER_RELU, call) for call in sizes))
    found, _ = merged(tmp_path, one, other)
    first, *rest = [e.node_id for e in found.entries]
    assert first == "n1"
    assert set(rest) == {f"n1-{other.entries[0].source_digest[:8]}"}
    again = cast("c", cast_cases.entry(call=cast_cases.relu((6,))))
    assert {e.node_id for e in merged(tmp_path, one, again)[0].entries} == {"n1"}


def test_values_of_the_inputs_can_be_left_out(tmp_path, cast):
    one = cast("a", cast_cases.entry())
    assert report(one.path).kernels[0].sampled == 1
    found, _ = merged(tmp_path, one, samples=False)
    assert report(found.path).kernels[0].sampled == 0
    assert b"AACAPwAAAMAAAEBA" in archive.read(one.path).files[manifest.MANIFEST]
    assert b"AACAPwAAAMAAAEBA" not in archive.read(found.path).files[manifest.MANIFEST]


def test_the_text_of_a_region_is_left_out_with_them_and_makes_no_other_kernel(tmp_path, cast):
    named = cast("a", cast_cases.region_entry("def forward(self, x): secret()"))
    assert report(named.path).kernels[0].owners == ("package.Chain",)
    found, _ = merged(tmp_path, named, samples=False)
    assert report(found.path).kernels[0].owners == ()
    assert b"secret" not in archive.read(found.path).files[manifest.MANIFEST]
    both, choices = merged(tmp_path, named, cast("b", *found.entries))
    assert (len(both.entries), choices) == (1, ())


def test_too_much_for_one_cast_is_not_written(tmp_path):
    texts = [cast_cases.RELU + f"// {i}\n" for i in range(300)]
    entries = [
        cast_cases.entry(text, cast_cases.relu((i + 1,)), node=f"n{i}")
        for i, text in enumerate(texts)
    ]
    sources = {e.source_digest: t for e, t in zip(entries, texts, strict=True)}
    draft = publish.Draft(header=cast_cases.header(), entries=entries, sources=sources, binaries={})
    with pytest.raises(CastRejected, match="Next: put fewer kernels into one cast"):
        publish.save(tmp_path / "x.cast", draft)
    assert not list(tmp_path.iterdir())


def test_a_diff_names_what_differs(tmp_path, cast):
    shared, only = cast_cases.entry(), cast_cases.entry(call=cast_cases.relu((4,)))
    one, same = cast("a", shared, only), cast("b", shared, only)
    found = compare(one, same)
    assert (found.equal, found.same_bytes) == (True, True)
    swapped = compare(one, cast("c", only, shared))
    assert (swapped.equal, swapped.same_bytes) == (True, False)

    found = compare(one, cast("d", shared, created_at=5.0))
    assert [k.variant for k in found.only_first] == ["f32[4]"]
    assert found.only_second == found.changed == ()
    assert list(found.header) == ["created_at"]
    assert not found.equal

    changes = {
        "source": cast_cases.entry(cast_cases.OTHER_RELU),
        "timing": dataclasses.replace(shared, timing=cast_cases.timing(3.0)),
        "evidence": dataclasses.replace(shared, origin=cast_cases.origin("Apple M4")),
        "label": dataclasses.replace(shared, label=Label.WRAPPER),
        "share": dataclasses.replace(shared, share=0.5),
        "node": dataclasses.replace(shared, node_id="n8"),
    }
    for name, entry in changes.items():
        (changed,) = compare(cast("a", shared), cast("b", entry)).changed
        assert changed.differs == (name,)
    assert changed.node_ids == ("n1", "n8")
    (changed,) = compare(cast("a", shared), cast("b", changes["source"])).changed
    assert [line[0] for line in changed.source_diff if line[0] in "+-"] == ["-", "+"]


def test_a_diff_sees_binaries_and_signatures(tmp_path, cast):
    one, image = cast_cases.gpu_entry("sm_90", "NVIDIA H200", image=b"one")
    other, image2 = cast_cases.gpu_entry("sm_90", "NVIDIA H200", image=b"two")
    casts = cast("a", one, binaries=image), cast("b", other, binaries=image2)
    (changed,) = compare(*casts).changed
    assert changed.differs == ("binaries",)
    keys.generate(tmp_path / "k")
    signed = publish.sign(casts[0].path, tmp_path / "k")
    found = compare(cast("b", one, binaries=image), manifest.read(casts[0].path))
    assert found.header == {"signature": ("unsigned", signed.fingerprint)}


def test_the_sizes_of_a_kernel_are_one_line():
    def text(*shapes):
        return across_text([cast_cases.relu(shape) for shape in shapes])

    assert text((8, 16)) == "f32[8, 16]"
    assert text((8, 16), (9, 16)) == "f32[8|9, 16]"
    assert text((8, 16), (24, 16), (9, 16)) == "f32[8..24, 16]"
    assert text((8, 16), (4,)) == "f32[8, 16]"
