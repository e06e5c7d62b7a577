"""The CUDA branch of the shim through a whole cast: streams, graphs, threads, launch attributes."""

import threading
from pathlib import Path

import pytest
import torch

from kernelforge_engine import cast as casts
from kernelforge_engine import codec
from kernelforge_engine.cast import manifest
from kernelforge_engine.dispatch.guard import describe
from kernelforge_engine.launch.header import parse_source
from kernelforge_engine.launch.resolve import resolve
from kernelforge_engine.pool.child import Child
from kernelforge_engine.pool.protocol import Build, BuilderReply
from kernelforge_engine.records import Label, Status, Verdict
from kernelforge_server import settings

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
HEADER = manifest.Header(created_at=0.0, kernelforge="0", torch="0", device_name="here")

# Two launches through a zeroed workspace; the second wants more shared memory than the default.
SOFTMAX = """/* kernelforge
[let]
cols = "in0.shape[-1]"
rows = "in0.numel / cols"
[workspace.ws0]
bytes = "4 * rows"
init = "zero"
[[launch]]
kernel = "row_sums"
grid = ["rows"]
block = [128]
args = ["in0", "ws0", "i32:cols"]
[[launch]]
kernel = "divide<float>"
grid = ["rows"]
block = [128]
shared = 65536
args = ["in0", "ws0", "out0", "i32:cols"]
*/
extern "C" __global__ void row_sums(const float* x, float* sums, int cols) {
  for (int c = threadIdx.x; c < cols; c += blockDim.x)
    atomicAdd(&sums[blockIdx.x], expf(x[(long long)blockIdx.x * cols + c]));
}
template <class T>
__global__ void divide(const T* x, const T* sums, T* y, int cols) {
  extern __shared__ float room[];
  room[16383 - threadIdx.x] = sums[blockIdx.x];
  __syncthreads();
  for (int c = threadIdx.x; c < cols; c += blockDim.x) {
    long long i = (long long)blockIdx.x * cols + c;
    y[i] = expf(x[i]) / room[16383 - threadIdx.x];
  }
}
"""
RELU_ = """/* kernelforge
[[launch]]
kernel = "clip"
grid = ["ceil_div(in0.numel, 128)"]
block = [128]
cooperative = true
args = ["in0", "i64:in0.numel"]
*/
extern "C" __global__ void clip(float* x, long long n) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = fmaxf(x[i], 0.0f);
}
"""
NEG = """/* kernelforge
[[launch]]
kernel = "negate"
grid = ["2 * ceil_div(in0.numel, 256)"]
block = [128]
cluster = [2]
args = ["in0", "out0", "i64:in0.numel"]
*/
extern "C" __global__ void negate(const float* x, float* y, long long n) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = -x[i];
}
"""


def built(source, resolved, folder, arch):
    order = Build(
        text=source.text,
        backend="cuda",
        arch=arch,
        launches=tuple((x.kernel, tuple(a.kind for a in x.args)) for x in resolved.launches),
        folder=str(folder),
    )
    environment = settings.resolve(folder).environment
    with Child("Builder", "kernelforge_engine.builder", environment=environment) as builder:
        return builder.request("compile a test", order, BuilderReply, 180.0).artifact


def entry(op, args, text, folder, node_id, binaries):
    with torch.no_grad():
        call = describe(op, args, {}, op(*args))
    source = parse_source(text, "cuda")
    resolved = resolve(source.plan, call)
    arch = "sm_{}{}".format(*torch.cuda.get_device_capability())
    artifact = built(source, resolved, folder, arch)
    image = Path(artifact.path).read_bytes()
    binary = manifest.Binary(
        arch=arch, digest=codec.sha256(image), symbols=artifact.symbols, compiler=artifact.compiler
    )
    binaries[binary.digest] = image
    return manifest.Entry(
        node_id=node_id, call=call, backend="cuda", source_digest=source.digest, plan=source.plan,
        resolved=resolved, binaries=(binary,), verdict=Verdict(status=Status.VALID, reason=""),
        timing=None, label=Label.GENERATED, share=1.0, calls=1,
    )  # fmt: skip


def sample(rows=64):
    return torch.randn(rows, 512, device="cuda")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder, binaries = tmp_path_factory.mktemp("cuda"), {}
    aten = torch.ops.aten
    entries = [
        entry(aten.softmax.int, (sample(), -1), SOFTMAX, folder, "softmax", binaries),
        entry(aten.relu_.default, (sample(),), RELU_, folder, "relu", binaries),
    ]
    if torch.cuda.get_device_capability() >= (9, 0):
        entries.append(entry(aten.neg.default, (sample(),), NEG, folder, "neg", binaries))
    path = folder / "x.cast"
    texts = {codec.sha256(text): text for text in (SOFTMAX, RELU_, NEG)}
    manifest.write(path, HEADER, entries, sources=texts, binaries=binaries)
    return path


def model(x):
    return torch.neg(torch.softmax(x.clone().relu_(), -1))


@pytest.fixture
def cast(path):
    with casts.load(path) as cast:
        yield cast
    assert {s.inactive for s in cast.counters().served} == {None}


def hits(cast):
    return [s.hits for s in cast.counters().served]


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_hits_are_right(cast, context):
    x, other = sample(), sample(65)
    with context():
        found, missed = model(x), model(other)
    assert min(hits(cast)) == 1
    cast.disable()
    assert torch.allclose(found, model(x), atol=1e-6)
    assert torch.equal(missed, model(other))


def test_side_stream_and_fresh_thread(cast):
    x, found = sample(), []
    torch.cuda.synchronize()

    def work():
        with torch.inference_mode(), torch.cuda.stream(torch.cuda.Stream()):
            found.append(model(x))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    torch.cuda.synchronize()
    assert min(hits(cast)) == 1
    cast.disable()
    assert torch.allclose(found[0], model(x), atol=1e-6)


def test_graph_capture_and_replay(cast):
    x, graph = sample(), torch.cuda.CUDAGraph()
    with torch.no_grad():
        model(x)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            y = model(x)
    assert min(hits(cast)) == 2
    cast.disable()
    for _ in range(3):
        x.copy_(sample())
        graph.replay()
        assert torch.allclose(y, model(x), atol=1e-6)


# A process without a C++ compiler; it prints how calls are dispatched and the hits of each kernel.
ALONE = """
import sys, threading, warnings, torch
from pathlib import Path
from kernelforge_engine import cast
warnings.simplefilter("ignore")
kernels = cast.load(Path(sys.argv[1]), cache=Path(sys.argv[2]))

def model(x):
    return torch.neg(torch.softmax(x.clone().relu_(), -1))

def work():
    with torch.inference_mode(), torch.cuda.stream(torch.cuda.Stream()):
        found.append(model(x))

x, found, graph = torch.randn(64, 512, device="cuda"), [], torch.cuda.CUDAGraph()
torch.cuda.synchronize()
with torch.no_grad(), kernels:
    found.append(model(x))
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        y = model(x)
expected = model(x)
assert all(torch.allclose(f, expected, atol=1e-6) for f in found)
for _ in range(3):
    x.copy_(torch.randn(64, 512))
    graph.replay()
    assert torch.allclose(y, model(x), atol=1e-6)
counters = kernels.counters()
print(counters.dispatch, {s.hits for s in counters.served}, {s.inactive for s in counters.served})
"""


def test_without_a_compiler_kernels_are_launched_from_python(path, tmp_path, without_compiler):
    [line] = without_compiler(ALONE, path, tmp_path / "cache")
    assert line == "python {3} {None}"


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")
def test_second_device(path):
    x = sample().to("cuda:1")
    with casts.load(path) as cast, torch.no_grad():
        found = model(x)
    assert min(hits(cast)) == 1
    assert torch.allclose(found, model(x), atol=1e-6)
