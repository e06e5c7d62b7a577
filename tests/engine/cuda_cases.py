"""A cast with a CUDA kernel of a norm, for the tests that need a device."""

from pathlib import Path

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


def norm_class(folder: Path):
    """A fresh class of norms."""
    return region_cases.model_code(folder).RMSNorm


def norms(kind, folder: Path, rows: int, size: int):
    """A cast with a kernel for norms of one size, loaded."""
    norm = kind(size).cuda()
    call = region_cases.call_of(norm, hidden_states=torch.randn(rows, size, device="cuda"))
    source = parse_source(RMS, "cuda")
    resolved = resolve(source.plan, call)
    arch = "sm_{}{}".format(*torch.cuda.get_device_capability())
    order = Build(
        text=RMS, backend="cuda", arch=arch, folder=str(folder),
        launches=tuple((x.kernel, tuple(a.kind for a in x.args)) for x in resolved.launches),
    )  # fmt: skip
    environment = settings.resolve(folder).environment
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
    path = folder / "norm.cast"
    texts, images = {source.digest: RMS}, {binary.digest: image}
    manifest.write(path, region_cases.HEADER, [entry], sources=texts, binaries=images)
    return casts.load(path)
