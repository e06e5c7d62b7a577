"""What is judged again from a cast alone, and what a cast becomes on the machine it comes to."""

import dataclasses

import cast_cases
import pytest

from kernelforge_engine.adapt import adapted
from kernelforge_engine.calls import ITEM_BYTES
from kernelforge_engine.cast import manifest
from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import DeviceStatus
from kernelforge_engine.pool.orders import Probed
from kernelforge_engine.records import Artifact, Outcome, Status, Verdict
from kernelforge_engine.rerun import Rerun, Trial
from kernelforge_engine.store.samples import made_up, stand_in
from kernelforge_server.settings import resolve

pytestmark = pytest.mark.calm

MACHINE = Probed(
    torch_version="2.14.0",
    devices=(DeviceStatus(backend="cuda", name="NVIDIA B200", usable=True, detail=""),),
    archs={"cuda": "sm_100"},
)
VALID = Verdict(status=Status.VALID, reason="every rule holds", evidence={"policy": "full"})


def silent(_progress):
    pass


async def test_what_cannot_be_run_again_is_said_and_floats_are_made_up(tmp_path):
    bare = cast_cases.origin(samples=())
    flat = cast_cases.entry(origin=bare)
    places = cast_cases.entry(call=cast_cases.relu((4,), dtype="int64"), origin=bare)
    gpu, image = cast_cases.gpu_entry("sm_20", "a GPU of long ago", node="n2")
    opens = dataclasses.replace(cast_cases.relu((5,)), operator="aten::from_file")
    path = tmp_path / "x.cast"
    cast_cases.written(path, flat, places, gpu, cast_cases.entry(call=opens), binaries=image)
    async with Engine.open(resolve(tmp_path / "project")) as engine:
        rows = await engine.rerun_cast(path, silent)
        has_gpu = "cuda" in [d.backend for d in (await engine.status()).devices if d.usable]
    assert rows[0].inputs == "normal"
    assert rows[0].verdict.status == Status.VALID
    assert rows[1].verdict is None
    assert "those of in0 (int64) cannot be made up" in rows[1].why
    assert "exported with samples" in rows[1].why
    assert "opens files" in rows[3].why
    if not has_gpu:
        assert "no cuda device" in rows[2].why


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "bool"])
def test_made_up_values_are_the_same_each_time_and_of_their_type(tmp_path, dtype):
    (spec,) = cast_cases.relu((8, 16), dtype=dtype).inputs
    values = made_up(dtype)
    assert values == made_up(dtype)
    assert not values.whole
    assert stand_in(tmp_path, values, spec).startswith("s")
    wide = dataclasses.replace(spec, dtype="complex128")
    with pytest.raises(ValueError, match="damaged, or of other inputs"):
        stand_in(tmp_path, values, wide)


@pytest.mark.parametrize("dtype", sorted(set(ITEM_BYTES) - {"float32", "float16", "float64"}))
def test_what_has_to_mean_something_is_not_made_up(dtype):
    assert (made_up(dtype) is None) == (dtype not in {"bfloat16", "bool"})


@pytest.mark.parametrize("change", [
    {"data": "!"}, {"data": "AAAA"}, {"data": ""}, {"dtype": "F64"}, {"dtype": "x"},
    {"whole": True},
])  # fmt: skip
def test_values_that_do_not_fit_their_tensor_are_refused(tmp_path, change):
    (spec,) = cast_cases.relu((8, 16)).inputs
    with pytest.raises(ValueError, match="damaged, or of other inputs"):
        stand_in(tmp_path, dataclasses.replace(cast_cases.SAMPLE, **change), spec)
    assert list(tmp_path.iterdir()) == []


def trial(entry, *, outcome=Outcome.FASTER, verdict=VALID, **more):
    """What a device would answer for a cuda entry: its artifact, verdict and timing."""
    artifact = Artifact(
        digest="b" * 64, backend="cuda", arch="sm_100", path="", symbols={"k": "k"},
        compiler="nvcc 13.0", made_by="nvcc 13.0 -arch=sm_100",
    )  # fmt: skip
    row = Rerun(
        node_id=entry.node_id, operator=entry.call.name, variant="", then=entry.timing,
        verdict=verdict, now=dataclasses.replace(cast_cases.timing(1.7), outcome=outcome), **more,
    )  # fmt: skip
    return Trial(entry=entry, row=row, artifact=artifact, image=b"code for sm_100")


def test_an_adapted_cast_has_the_code_and_the_evidence_of_its_machine_only(tmp_path):
    entry, image = cast_cases.gpu_entry("sm_90", "NVIDIA H200")
    cast = cast_cases.written(tmp_path / "there.cast", entry, binaries=image)
    target = tmp_path / "here.cast"
    found = adapted(cast, [trial(entry)], MACHINE, target, 5.0)
    here = manifest.read(target)
    assert found.cast.sha256 == here.sha256
    (made,) = here.entries
    (binary,) = made.binaries
    assert (binary.arch, here.files[binary.file]) == ("sm_100", b"code for sm_100")
    assert set(here.files) & set(cast.files) == {manifest.HEADER, manifest.MANIFEST, entry.file}
    assert made.timing.speedup == 1.7
    assert made.origin.machine.device_name == "NVIDIA B200"
    assert made.origin.machine.torch == here.header.torch == "2.14.0"
    assert made.origin.compiler == "nvcc 13.0 -arch=sm_100"
    assert made.origin.samples == entry.origin.samples
    assert (here.header.created_at, here.header.made_from) == (5.0, (cast.sha256,))
    assert "inputs" not in made.verdict.evidence


def test_evidence_says_where_no_value_was_captured(tmp_path):
    entry, image = cast_cases.gpu_entry("sm_90", "NVIDIA H200")
    cast = cast_cases.written(tmp_path / "there.cast", entry, binaries=image)
    target = tmp_path / "here.cast"
    adapted(cast, [trial(entry, inputs="normal")], MACHINE, target, 5.0)
    (made,) = manifest.read(target).entries
    assert made.verdict.evidence["inputs"] == "normal, none was captured"


@pytest.mark.parametrize("change", [
    {"outcome": Outcome.SLOWER}, {"outcome": Outcome.INCONCLUSIVE},
    {"outcome": Outcome.IMPLAUSIBLE},
    {"verdict": Verdict(status=Status.WRONG_VALUES, reason="")},
])  # fmt: skip
def test_what_is_not_valid_and_faster_here_is_in_no_cast(tmp_path, change):
    entry, image = cast_cases.gpu_entry("sm_90", "NVIDIA H200")
    cast = cast_cases.written(tmp_path / "there.cast", entry, binaries=image)
    target = tmp_path / "here.cast"
    found = adapted(cast, [trial(entry, **change)], MACHINE, target, 5.0)
    assert found.cast is None
    assert not target.exists()
