"""A cast from the records of a call to eager torch that runs its kernels, and back out again."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from kernelforge_engine import cast as casts
from kernelforge_engine import codec
from kernelforge_engine.calls import Call
from kernelforge_engine.cast import archive, keys, manifest, publish
from kernelforge_engine.cast.words import call_words
from kernelforge_engine.dispatch import build
from kernelforge_engine.dispatch.guard import describe
from kernelforge_engine.errors import CastRejected, CastUntrusted, MeasurementFailed, NoCompiler
from kernelforge_engine.launch.header import parse_source
from kernelforge_engine.launch.resolve import resolve
from kernelforge_engine.records import Label, Outcome, Status, Timing, Verdict
from kernelforge_engine.statistics import paired_interval

CACHE = Path.home() / ".cache" / "kernelforge"
HEADER = manifest.Header(
    created_at=1_700_000_000.0, kernelforge="0.1.0", torch="2.13.0", device_name="a cpu"
)
TIMING = Timing(
    outcome=Outcome.FASTER, speedup=1.5, low=1.4, high=1.6, eager_us=3.0, candidate_us=2.0,
    scope="O",
)  # fmt: skip

SOFTMAX = """/* kernelforge
[let]
cols = "in0.shape[-1]"
[workspace.ws0]
bytes = "4 * in0.numel"
init = "zero"
[[launch]]
kernel = "exponentials"
args = ["in0", "ws0", "i64:in0.numel / cols", "i32:cols"]
[[launch]]
kernel = "normalise"
args = ["ws0", "out0", "i64:in0.numel / cols", "i32:cols", "f32:1.0"]
*/
#include <cmath>
extern "C" void exponentials(const float* x, float* y, long rows, int cols) {
  #pragma omp parallel for
  for (long r = 0; r < rows; ++r) {
    float most = -INFINITY;
    for (int c = 0; c < cols; ++c) most = std::fmax(most, x[r * cols + c]);
    for (int c = 0; c < cols; ++c) y[r * cols + c] += std::exp(x[r * cols + c] - most);
  }
}
extern "C" void normalise(const float* x, float* y, long rows, int cols, float one) {
  for (long r = 0; r < rows; ++r) {
    float sum = 0;
    for (int c = 0; c < cols; ++c) sum += x[r * cols + c];
    for (int c = 0; c < cols; ++c) y[r * cols + c] = x[r * cols + c] * one / sum;
  }
}
"""
RELU_ = """/* kernelforge
[[launch]]
kernel = "clip"
args = ["in0", "i64:in0.numel"]
*/
extern "C" void clip(float* x, long n) {
  for (long i = 0; i < n; ++i) x[i] = x[i] > 0 ? x[i] : 0;
}
"""
GPU = """/* kernelforge
[[launch]]
kernel = "clip"
grid = [1]
block = [32]
args = ["in0", "out0"]
*/
extern "C" __global__ void clip(const float* x, float* y) {}
"""


def call_of(op, *args):
    with torch.no_grad():
        return describe(op, args, {}, op(*args))


def entry_of(call: Call, text: str, node_id: str, backend="cpu", binaries=()) -> manifest.Entry:
    source = parse_source(text, backend)
    return manifest.Entry(
        node_id=node_id,
        call=call,
        backend=backend,
        source_digest=source.digest,
        plan=source.plan,
        resolved=resolve(source.plan, call),
        binaries=binaries,
        verdict=Verdict(status=Status.VALID, reason="all rules hold"),
        timing=TIMING,
        label=Label.GENERATED,
        share=0.25,
        calls=3,
    )


def sources(*texts):
    return {codec.sha256(text): text for text in texts}


def softmax_entry():
    return entry_of(call_of(torch.ops.aten.softmax.int, torch.randn(6, 16), -1), SOFTMAX, "node-1")


@pytest.fixture
def path(tmp_path):
    """A cast of a two-launch softmax with a workspace and an in-place relu."""
    path = tmp_path / "model.cast"
    relu = entry_of(call_of(torch.ops.aten.relu_.default, torch.randn(6, 16)), RELU_, "node-2")
    manifest.write(
        path, HEADER, [softmax_entry(), relu], sources=sources(SOFTMAX, RELU_), binaries={}
    )
    return path


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x.clone().relu_(), -1)


def test_cast_serves_what_it_covers_and_counts_the_rest(path):
    model, x, other = Model(), torch.randn(6, 16), torch.randn(7, 16)
    expected, expected_other = model(x), model(other)
    cast = casts.load(path)
    assert torch.equal(model(x), expected)
    assert cast.counters().hits == 0
    assert cast.enable(model) is model
    with torch.inference_mode():
        assert torch.allclose(model(x), expected, atol=1e-6)
        assert torch.equal(model(other), expected_other)
    counters = cast.counters()
    assert [(s.node_id, s.operator, s.hits, s.inactive) for s in counters.served] == [
        ("node-1", "aten::softmax.int", 1, None),
        ("node-2", "aten::relu_", 1, None),
    ]
    assert counters.fallbacks == {"aten::softmax.int": {"guard": 1}, "aten::relu_": {"guard": 1}}
    assert "2 of 2 usable, enabled" in repr(cast)
    cast.disable()
    assert torch.equal(model(x), expected)
    assert cast.counters() == replace(counters, enabled=False)
    with cast:
        model(x)
    assert cast.counters().hits == 4


def test_a_cast_of_a_trusted_key_serves_and_any_other_is_not_loaded(path, tmp_path):
    for name in ("mine", "other"):
        keys.generate(tmp_path / name)
    x = torch.randn(6, 16)
    with pytest.raises(CastUntrusted, match="it is not signed"):
        casts.load(path, trusted=[tmp_path / "mine.pub"])
    publish.sign(path, tmp_path / "mine")
    with pytest.raises(CastUntrusted, match="is no key that was named"):
        casts.load(path, trusted=[tmp_path / "other.pub"], cache=tmp_path / "unused")
    assert not (tmp_path / "unused").exists()
    with casts.load(path, trusted=[tmp_path / "mine.pub"]) as cast:
        Model()(x)
    assert cast.counters().hits == 2


def test_kernels_of_a_cast_run_in_training(path):
    layer, x = torch.nn.Linear(16, 16), torch.randn(6, 16)
    expected = torch.autograd.grad(Model()(layer(x)).square().sum(), layer.weight)[0]
    with casts.load(path) as cast:
        found = torch.autograd.grad(Model()(layer(x)).square().sum(), layer.weight)[0]
    assert torch.allclose(found, expected, atol=1e-5)
    assert cast.counters().fallbacks == {"aten::softmax.int": {"autograd": 1}}


def test_kill_switch(path, monkeypatch):
    monkeypatch.setenv("KERNELFORGE_DISABLE", "1")
    cast, x = casts.load(path, cache=path.parent / "unused"), torch.randn(6, 16)
    with cast:
        Model()(x)
    assert (cast.counters().hits, cast.counters().enabled) == (0, False)
    assert cast.counters().disabled_by == "KERNELFORGE_DISABLE"
    assert "switched off by KERNELFORGE_DISABLE" in repr(cast)
    assert not (path.parent / "unused").exists()


def test_two_casts_stack(path):
    first, second, x = casts.load(path), casts.load(path), torch.randn(6, 16)
    with first:
        with second:
            Model()(x)
        Model()(x)
    assert (first.counters().hits, second.counters().hits) == (2, 2)


def test_cuda_entries_stay_inactive_without_their_device(tmp_path):
    call = call_of(torch.ops.aten.relu.default, torch.randn(4))
    specs = [replace(t, device="cuda") for t in (call.inputs[0], call.outputs[0].tensor)]
    moved = replace(call, inputs=(specs[0],), outputs=(replace(call.outputs[0], tensor=specs[1]),))
    moved = replace(moved, words=call_words(moved))
    cubin = b"not a cubin"
    binary = manifest.Binary(
        arch="sm_20", digest=codec.sha256(cubin), symbols={"clip": "clip"}, compiler="nvcc"
    )
    entry = entry_of(moved, GPU, "node-3", "cuda", (binary,))
    path = tmp_path / "gpu.cast"
    held = {binary.digest: cubin}
    manifest.write(path, HEADER, [entry], sources=sources(GPU), binaries=held)
    assert casts.read(path).files[binary.file] == cubin
    with casts.load(path) as cast:
        torch.relu(torch.randn(4))
    [served] = cast.counters().served
    reason = "architecture" if torch.cuda.is_available() else "device"
    assert served.inactive.startswith(reason)
    wrong = replace(entry, binaries=(replace(binary, symbols={"other": "clip"}),))
    with pytest.raises(CastRejected, match="does not hold the kernels"):
        manifest.write(path, HEADER, [wrong], sources=sources(GPU), binaries=held)


def test_source_that_does_not_build_here_stays_inactive(tmp_path):
    broken = RELU_.replace("x[i] : 0", "nothing : 0")
    call = call_of(torch.ops.aten.relu_.default, torch.randn(5))
    path = tmp_path / "broken.cast"
    entry = entry_of(call, broken, "node-4")
    manifest.write(path, HEADER, [entry], sources=sources(broken), binaries={})
    with casts.load(path) as cast:
        assert torch.equal(
            torch.tensor([-1.0, 1, 0, 2, -2]).relu_(), torch.tensor([0.0, 1, 0, 2, 0])
        )
    [served] = cast.counters().served
    assert served.inactive.startswith("build:")
    assert "nothing" in served.inactive


def test_operator_of_an_unknown_library_stays_inactive(tmp_path):
    call = replace(
        call_of(torch.ops.aten.relu_.default, torch.randn(5)), operator="their_library::relu_"
    )
    path = tmp_path / "custom.cast"
    manifest.write(
        path, HEADER, [entry_of(call, RELU_, "node-5")], sources=sources(RELU_), binaries={}
    )
    with casts.load(path) as cast:
        assert cast.counters().served[0].inactive.startswith("operator:")


def test_same_content_same_bytes(path, tmp_path):
    again = tmp_path / "again.cast"
    file = casts.read(path)
    texts = {entry.source_digest: file.source(entry).text for entry in file.entries}
    manifest.write(again, file.header, file.entries, sources=texts, binaries={})
    assert again.read_bytes() == path.read_bytes()
    assert file.header == HEADER
    assert file.entries[0] == softmax_entry()


def rewritten(path, name, change):
    """The cast with one JSON entry changed and every checksum right."""
    files = archive.read(path).files
    value = json.loads(files[name])
    change(value)
    archive.write(path, {**files, name: json.dumps(value).encode()})


CHANGES = {
    "words": lambda e: e["call"]["words"].__setitem__(0, 3),
    "argument": lambda e: e["call"]["arguments"][1].update(value=0),
    "stride": lambda e: e["call"]["inputs"][0].update(stride=[1, 6]),
    "grid": lambda e: e["resolved"]["launches"][0].update(kernel="normalise"),
    "workspace": lambda e: e["resolved"]["buffers"][2].update(bytes=4),
    "plan": lambda e: e["plan"]["launches"][0].update(args=["in0"]),
    "digest": lambda e: e.update(source_digest="0" * 64),
    "backend": lambda e: e.update(backend="cuda"),
    "operator": lambda e: e["call"].update(operator="rm -rf"),
    "verdict": lambda e: e["verdict"].update(status="wrong_values"),
    "alias": lambda e: e["call"]["outputs"][0].update(alias=0),
    "node": lambda e: e.update(node_id="node-2"),
    "form": lambda e: e.pop("call"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_manifest_that_does_not_follow_from_its_source_is_refused(path, name):
    rewritten(path, "manifest.json", lambda m: CHANGES[name](m["entries"][0]))
    with pytest.raises(CastRejected) as caught:
        casts.read(path)
    assert "Next: " in str(caught.value)


def test_headers_of_other_files_and_versions_are_refused(path):
    rewritten(path, "HEADER.json", lambda h: h.update(version=2))
    with pytest.raises(CastRejected, match="format version 2"):
        casts.read(path)
    rewritten(path, "HEADER.json", lambda h: h.update(version=1, type="other"))
    with pytest.raises(CastRejected, match="its type is 'other'"):
        casts.read(path)


def test_changed_and_additional_sources_are_refused(path):
    files = archive.read(path).files
    [name] = [n for n in files if files[n].startswith(SOFTMAX[:20].encode()) and b"omp" in files[n]]
    archive.write(path, {**files, name: files[name].replace(b"fmax", b"fmin")})
    with pytest.raises(CastRejected, match="another digest"):
        casts.read(path)
    archive.write(path, {**files, "sources/more.cpp": b""})
    with pytest.raises(CastRejected, match="no entry names"):
        casts.read(path)


def test_a_cast_holds_no_native_code_and_no_pickle(path):
    names = zipfile.ZipFile(path).namelist()
    assert {Path(n).suffix for n in names} == {".json", ".sha256", ".cpp"}


def test_reading_needs_no_torch(path):
    code = (
        "import sys; from kernelforge_engine import cast; from pathlib import Path; "
        "file = cast.read(Path(sys.argv[1])); assert len(file.entries) == 2; "
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)


def test_shim_build_is_cached_and_says_when_there_is_no_compiler(tmp_path, monkeypatch):
    known = build.library(CACHE)
    monkeypatch.setattr(build.shutil, "which", lambda _: None)
    assert build.library(CACHE) == known
    with pytest.raises(NoCompiler, match="apt install"):
        build.library(tmp_path)


def test_paired_interval_covers_the_truth():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(40):
        middle, low, high = paired_interval(rng.normal(0.2, 0.05, 60), 0.99, rng)
        assert low <= middle <= high
        covered += low <= 0.2 <= high
    assert covered >= 37
    with pytest.raises(MeasurementFailed, match="8 or more"):
        paired_interval([0.1] * 7, 0.99, rng)


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_cast_in_a_process_without_environment(path):
    code = (
        "import sys, torch; from kernelforge_engine import cast; x = torch.randn(6, 16); "
        "expected = x.softmax(-1); c = cast.load(sys.argv[1]); c.enable(); "
        "assert torch.allclose(x.softmax(-1), expected, atol=1e-6); "
        "assert c.counters().hits == 1, c.counters()"
    )
    environment = {"PATH": os.pathsep.join(os.get_exec_path()), "HOME": str(Path.home())}
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, env=environment)
