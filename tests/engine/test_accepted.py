"""Records of the user's library: which are offered first, and whose they are."""

from dataclasses import replace

import cast_cases

from kernelforge_engine.library.accepted import Accepted, bare, best_first
from kernelforge_engine.library.folder import LibraryFolder
from kernelforge_engine.records import Status, Verdict

CALL = cast_cases.relu((8, 16))
OTHER = "// another\n"


def kernel(text="", speedup=2.0, shape=(8, 16), device="here", **more):
    machine = replace(cast_cases.origin().machine, device_name=device)
    return Accepted(
        text=cast_cases.RELU + text, call=bare(cast_cases.relu(shape)), machine=machine,
        verdict=Verdict(status=Status.VALID, reason=""), timing=cast_cases.timing(speedup),
        project="p", node_id="n2", accepted_at=1.0, **more,
    )  # fmt: skip


def test_the_very_call_comes_first_then_the_device_then_the_surest_gain():
    ranked = [
        kernel(),
        kernel(OTHER, 9.0, device="elsewhere"),
        kernel("// third\n", 9.0, (3, 5)),
        kernel("// fourth\n", 8.0, (3, 5)),
    ]
    assert best_first(reversed(ranked), CALL, "here") == ranked


def test_a_source_with_several_records_has_the_place_of_its_best():
    best, worst = kernel(), kernel(speedup=9.0, shape=(3, 5))
    between = kernel(OTHER, device="elsewhere")
    assert best_first([worst, between, best], CALL, "here") == [best, between]


def test_who_offers_a_kernel_again_does_not_become_its_author(tmp_path):
    folder = LibraryFolder(tmp_path)
    folder.add(kernel(author="an agent", note="no modulo"))
    folder.add(kernel(speedup=3.0, author="library", note="own_1234: your library", shape=(3, 5)))
    folder.add(kernel(speedup=4.0, author="library", note="own_1234: your library"))
    found = folder.all().kernels
    assert {(one.author, one.note) for one in found} == {("an agent", "no modulo")}
    assert {one.timing.speedup for one in found} == {3.0, 4.0}
