"""Regions with real kernels for the tests that dispatch them: loaded by file, since tests are no
package."""

import importlib.util
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import cast_cases
import torch

from kernelforge_engine import codec
from kernelforge_engine.cast import manifest
from kernelforge_engine.dispatch.instance import all_values, attributes_of, source_of, tensors_of
from kernelforge_engine.dispatch.observed import observed
from kernelforge_engine.dispatch.regions import entered
from kernelforge_engine.records import Outcome, Timing

HEADER = manifest.Header(
    created_at=1_700_000_000.0, kernelforge="0.1.0", torch=torch.__version__, device_name="a cpu"
)
TIMING = Timing(
    outcome=Outcome.FASTER, speedup=1.5, low=1.4, high=1.6, eager_us=3.0, candidate_us=2.0,
    scope="O",
)  # fmt: skip

MODEL = '''
import torch
from torch.nn import functional as F


class RMSNorm(torch.nn.Module):
    def __init__(self, size=16, eps=1e-6):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(size) + 0.5)
        self.variance_epsilon = eps

    def forward(self, hidden_states):
        dtype = hidden_states.dtype
        hidden_states = hidden_states.to(torch.float32)
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)
        return self.weight * hidden_states.to(dtype)


class Louder(RMSNorm):
    def forward(self, hidden_states):
        return 2 * super().forward(hidden_states)


class AdaNorm(torch.nn.Module):
    """What diffusion models modulate with: an embedding scales and shifts a norm."""

    def __init__(self, size=16):
        super().__init__()
        self.linear = torch.nn.Linear(size, 2 * size)
        self.norm = torch.nn.LayerNorm(size, elementwise_affine=False)

    def forward(self, x, emb=None, *, gain=1.0):
        shift, scale = self.linear(F.silu(emb)).chunk(2, -1)
        return (self.norm(x) * (1 + scale) + shift) * gain, None


class Residual(torch.nn.Module):
    def __init__(self, size=16, act=torch.nn.ReLU):
        super().__init__()
        self.first, self.act = torch.nn.Linear(size, size), act()
        self.second = torch.nn.Linear(size, size)

    def forward(self, x):
        return x + self.second(self.act(self.first(x)))


def rotate(q, cos, sin):
    first, second = q.chunk(2, -1)
    return q * cos + torch.cat((-second, first), -1) * sin


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.last = RMSNorm(), RMSNorm()
        self.block, self.ada = Residual(), AdaNorm()

    def forward(self, x):
        y = rotate(self.block(self.norm(x)), x.cos(), x.sin())
        return self.last(self.ada(y, x[0])[0])
'''

RMS = """/* kernelforge
[let]
cols = "in0.shape[-1]"
rows = "in0.numel / cols"
[[launch]]
kernel = "rms_norm"
args = ["in0", "in1", "out0", "i32:rows", "i32:cols", "f32:variance_epsilon"]
*/
#include <cmath>
extern "C" void rms_norm(const float* x, const float* w, float* y, int rows, int cols, float eps) {
  for (int r = 0; r < rows; ++r) {
    float sum = 0.f;
    for (int c = 0; c < cols; ++c) sum += x[r * cols + c] * x[r * cols + c];
    const float scale = 1.f / std::sqrt(sum / cols + eps);
    for (int c = 0; c < cols; ++c) y[r * cols + c] = w[c] * (x[r * cols + c] * scale);
  }
}
"""
ROTATE = """/* kernelforge
[[launch]]
kernel = "rotate"
args = ["in0", "in1", "in2", "out0", "i32:in0.numel / in0.shape[-1]", "i32:in0.shape[-1]"]
*/
extern "C" void rotate(const float* q, const float* cs, const float* sn, float* y, int rows,
                       int n) {
  for (int i = 0; i < rows * n; ++i) {
    const int c = i % n, half = n / 2;
    const float other = c < half ? -q[i + half] : q[i - half];
    y[i] = q[i] * cs[i] + other * sn[i];
  }
}
"""
ADA = """/* kernelforge
[workspace.ws0]
bytes = "8 * in1.numel"
[[launch]]
kernel = "modulation"
args = ["in1", "in2", "in3", "ws0", "i32:in1.numel"]
[[launch]]
kernel = "norm"
args = ["in0", "ws0", "out0", "i32:in0.shape[0]", "i32:in1.numel", "f32:gain"]
*/
#include <cmath>
extern "C" void modulation(const float* e, const float* w, const float* b, float* m, int n) {
  for (int o = 0; o < 2 * n; ++o) {
    float sum = b[o];
    for (int i = 0; i < n; ++i) sum += w[o * n + i] * (e[i] / (1.f + std::exp(-e[i])));
    m[o] = sum;
  }
}
extern "C" void norm(const float* x, const float* m, float* y, int rows, int n, float gain) {
  for (int r = 0; r < rows; ++r, x += n, y += n) {
    float mean = 0.f, square = 0.f;
    for (int i = 0; i < n; ++i) mean += x[i] / n;
    for (int i = 0; i < n; ++i) square += (x[i] - mean) * (x[i] - mean) / n;
    const float scale = 1.f / std::sqrt(square + 1e-5f);
    for (int i = 0; i < n; ++i) y[i] = ((x[i] - mean) * scale * (1 + m[n + i]) + m[i]) * gain;
  }
}
"""
RESIDUAL = """/* kernelforge
[let]
n = "in0.shape[-1]"
[workspace.ws0]
bytes = "4 * n"
[[launch]]
kernel = "residual"
args = ["in0", "in1", "in2", "in3", "in4", "ws0", "out0", "i32:in0.numel / n", "i32:n"]
*/
extern "C" void residual(const float* x, const float* w, const float* b, const float* v,
                         const float* c, float* h, float* y, int rows, int n) {
  for (int r = 0; r < rows; ++r, x += n, y += n) {
    for (int o = 0; o < n; ++o) {
      float sum = b[o];
      for (int i = 0; i < n; ++i) sum += w[o * n + i] * x[i];
      h[o] = sum > 0 ? sum : 0;
    }
    for (int o = 0; o < n; ++o) {
      float sum = c[o];
      for (int i = 0; i < n; ++i) sum += v[o * n + i] * h[i];
      y[o] = x[o] + sum;
    }
  }
}
"""


def model_code(folder: Path, name: str = "region_model"):
    """A fresh module of Python with the classes and functions of MODEL."""
    file = folder / f"{name}.py"
    file.write_text(MODEL)
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def call_of(target, **given):
    """The record of a call, as a capture makes it; all arguments are given, by name."""
    if isinstance(target, torch.nn.Module):
        values = all_values(given, attributes_of(target), tensors_of(target))
        kind, named = "module", type(target)
    else:
        values, kind, named = given, "function", target
    owner = f"{named.__module__}.{named.__qualname__}"
    with torch.no_grad():
        run = partial(target, **given)
        _, call = observed(run, entered(values), named.__name__, kind, owner)
    assert call is not None
    source = source_of(named.forward if kind == "module" else named)
    return replace(call, region=replace(call.region, source=source))


def entry_of(call, text, node_id, share=0.25) -> manifest.Entry:
    return cast_cases.entry(text, call, node=node_id, timing=TIMING, share=share)


def write(path: Path, *entries_and_texts) -> Path:
    """A cast of (call, text) pairs."""
    entries = [entry_of(c, t, f"node-{i}") for i, (c, t) in enumerate(entries_and_texts)]
    sources = {codec.sha256(text): text for _, text in entries_and_texts}
    manifest.write(path, HEADER, entries, sources=sources, binaries={})
    return path
