"""Regions on a CUDA device: streams, graphs, and the device of the call."""

from pathlib import Path

import pytest
import region_cases
import torch

from kernelforge_engine import cast as casts
from kernelforge_engine import codec
from kernelforge_engine.cast import manifest
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
ROWS, SIZE = 64, 128
RMS = """/* kernelforge
[let]
cols = "in0.shape[-1]"
[[launch]]
kernel = "rms_norm"
grid = ["in0.numel / cols"]
block = [32]
args = ["in0", "in1", "out0", "i32:cols", "f32:variance_epsilon"]
*/
extern "C" __global__ void rms_norm(const float* x, const float* w, float* y, int cols, float eps) {
  x += blockIdx.x * cols;
  y += blockIdx.x * cols;
  float sum = 0.f;
  for (int c = threadIdx.x; c < cols; c += 32) sum += x[c] * x[c];
  for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  const float scale = 1.f / sqrtf(sum / cols + eps);
  for (int c = threadIdx.x; c < cols; c += 32) y[c] = w[c] * (x[c] * scale);
}
"""


@pytest.fixture
def norm(tmp_path):
    torch.manual_seed(0)
    return region_cases.model_code(tmp_path).RMSNorm(SIZE).cuda()


@pytest.fixture
def x():
    return torch.randn(ROWS, SIZE, device="cuda")


@pytest.fixture
def cast(norm, x, tmp_path):
    call = region_cases.call_of(norm, hidden_states=x)
    source = parse_source(RMS, "cuda")
    resolved = resolve(source.plan, call)
    arch = "sm_{}{}".format(*torch.cuda.get_device_capability())
    order = Build(
        text=RMS, backend="cuda", arch=arch, folder=str(tmp_path),
        launches=tuple((x.kernel, tuple(a.kind for a in x.args)) for x in resolved.launches),
    )  # fmt: skip
    environment = settings.resolve(tmp_path).environment
    with Child("Builder", "kernelforge_engine.builder", environment=environment) as builder:
        artifact = builder.request("compile a test", order, BuilderReply, 180.0).artifact
    image = Path(artifact.path).read_bytes()
    binary = manifest.Binary(
        arch=arch, digest=codec.sha256(image), symbols=artifact.symbols, compiler=artifact.compiler
    )
    entry = manifest.Entry(
        node_id="node", call=call, backend="cuda", source_digest=source.digest, plan=source.plan,
        resolved=resolved, binaries=(binary,), verdict=Verdict(status=Status.VALID, reason=""),
        timing=None, label=Label.GENERATED, share=1.0, calls=1,
    )  # fmt: skip
    path = tmp_path / "norm.cast"
    texts, images = {source.digest: RMS}, {binary.digest: image}
    manifest.write(path, region_cases.HEADER, [entry], sources=texts, binaries=images)
    found = casts.load(path)
    yield found
    found.disable()


def test_a_region_is_served_on_the_stream_of_its_caller(cast, norm, x):
    with torch.no_grad():
        expected = norm(x)
        with cast:
            norm(x)
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                found = norm(x)
            stream.synchronize()
        assert cast.counters().hits == 1
    assert torch.allclose(found, expected, atol=1e-5)


def test_a_region_is_recorded_into_a_graph_and_replayed(cast, norm, x):
    with torch.no_grad(), cast:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                norm(x)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = norm(x)
        assert cast.counters().hits == 3
        x.copy_(torch.randn_like(x))
        graph.replay()
        torch.cuda.synchronize()
        assert torch.allclose(found, type(norm).forward.__wrapped__(norm, x), atol=1e-5)


def test_a_first_call_in_a_capture_records_the_models_own_code(cast, norm, x):
    with torch.no_grad():
        norm(x)  # what torch has to set up for its operators
        with cast:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                found = norm(x)
            graph.replay()
            torch.cuda.synchronize()
            assert cast.counters().fallbacks == {"region::RMSNorm": {"first_call": 1}}
            norm(x)
            assert cast.counters().hits == 1
    assert torch.allclose(found, norm(x), atol=1e-5)


def test_autocast_and_the_cpu_go_to_the_models_own_code(cast, norm, x):
    with torch.no_grad(), cast:
        norm(x)
        with torch.autocast("cuda", torch.bfloat16):
            norm(x)
        norm.cpu()(x.cpu())
        assert cast.counters().hits == 0
