"""A cast inside torch.compile and torch.export."""

import subprocess
import sys

import cast_cases
import pytest
import torch

from kernelforge_engine import cast as casts
from kernelforge_engine.cast import manifest
from kernelforge_engine.dispatch.guard import describe

# torch's own, when it imports its compiler.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")

SOFTMAX = """/* kernelforge
[let]
cols = "in0.shape[-1]"
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel / cols", "i32:cols"]
*/
#include <cmath>
extern "C" void k(const float* x, float* y, long rows, int cols) {
  for (long r = 0; r < rows; ++r) {
    const float* a = x + r * cols;
    float most = a[0], sum = 0;
    for (int c = 1; c < cols; ++c) most = std::fmax(most, a[c]);
    for (int c = 0; c < cols; ++c) sum += y[r * cols + c] = std::exp(a[c] - most);
    for (int c = 0; c < cols; ++c) y[r * cols + c] /= sum;
  }
}
"""
RELU_ = """/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "i64:in0.numel"]
*/
extern "C" void k(float* x, long n) {
  for (long i = 0; i < n; ++i) x[i] = x[i] > 0 ? x[i] : 0;
}
"""
TOPK = """/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "out1", "i64:in0.shape[0]", "i64:in0.shape[1]"]
*/
extern "C" void k(const float* x, float* values, long* places, long rows, long cols) {
  for (long r = 0; r < rows; ++r) {
    long best = 0;
    for (long c = 1; c < cols; ++c) if (x[r * cols + c] > x[r * cols + best]) best = c;
    values[r] = x[r * cols + best];
    places[r] = best;
  }
}
"""


def entry(text, name, op, *args):
    with torch.no_grad():
        call = describe(op, args, {}, op(*args))
    return cast_cases.entry(text, call, node=name, speedup=None)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("casts") / "model.cast"
    entries = [
        entry(SOFTMAX, "softmax", torch.ops.aten.softmax.int, torch.randn(6, 16), -1),
        entry(RELU_, "relu", torch.ops.aten.relu_.default, torch.randn(6, 16)),
        entry(TOPK, "topk", torch.ops.aten.topk.default, torch.randn(6, 16), 1),
    ]
    texts = {e.source_digest: t for e, t in zip(entries, (SOFTMAX, RELU_, TOPK), strict=True)}
    manifest.write(path, cast_cases.header(), entries, sources=texts, binaries={})
    return path


@pytest.fixture
def cast(path):
    torch.compiler.reset()
    with casts.load(path) as cast:
        yield cast
    torch.compiler.reset()


class Model(torch.nn.Module):
    """Served calls between others that a compiler fuses; the smaller softmax is not served."""

    def forward(self, x):
        y = torch.softmax(x * 2 + 1, -1)
        values, places = y.topk(1)
        return torch.relu(y + 1) + values + places + torch.softmax(y[:3], -1).sum()


def hits(cast):
    return {s.node_id: s.hits for s in cast.counters().served}


def test_compiled_code_runs_the_kernels_and_fuses_around_them(cast):
    x = torch.randn(6, 16)
    with torch.no_grad():
        expected = Model()(x)
        before = hits(cast)
        compiled = torch.compile(Model(), fullgraph=True)
        assert torch.equal(compiled(x), compiled(x))
        assert torch.allclose(compiled(x), expected, atol=1e-6)
    found = hits(cast)
    assert {name: found[name] - before[name] for name in found} == {
        "softmax": 3,
        "topk": 3,
        "relu": 0,
    }


def test_compiled_code_goes_on_in_eager_when_the_cast_is_disabled(path):
    x = torch.randn(6, 16)
    torch.compiler.reset()
    compiled = torch.compile(Model())
    with torch.no_grad():
        expected = Model()(x)
        with casts.load(path) as cast:
            compiled(x)
        assert torch.allclose(compiled(x), expected, atol=1e-6)
        assert hits(cast)["softmax"] == 1


def test_another_shape_is_compiled_without_the_kernels(cast):
    compiled = torch.compile(Model(), dynamic=False)
    x = torch.randn(5, 16)
    with torch.no_grad():
        assert torch.allclose(compiled(x), Model()(x), atol=1e-6)
    assert hits(cast) == {"softmax": 0, "topk": 0, "relu": 0}


def test_a_size_that_varies_is_served_where_it_is_the_captured_one(cast):
    compiled = torch.compile(Model(), dynamic=True)
    with torch.no_grad():
        for rows in (6, 7):
            x = torch.randn(rows, 16)
            assert torch.allclose(compiled(x), Model()(x), atol=1e-6)
    assert hits(cast)["softmax"] == 2  # the compiled and the eager call of six rows


def test_training_compiles_as_before(cast):
    x = torch.randn(6, 16, requires_grad=True)
    (expected,) = torch.autograd.grad(Model()(x).square().sum(), x)
    (found,) = torch.autograd.grad(torch.compile(Model())(x).square().sum(), x)
    assert torch.allclose(found, expected, atol=1e-5)
    assert hits(cast)["softmax"] == 0


def test_a_call_that_writes_to_its_argument_stays_the_compilers(cast):
    x = torch.randn(6, 16)
    compiled = torch.compile(lambda t: torch.relu_(t) + 1)
    with torch.no_grad():
        given = x.clone()
        assert torch.equal(compiled(given), x.relu() + 1)
        assert torch.equal(given, x.relu())
    assert hits(cast)["relu"] == 0


def test_casts_that_serve_nothing_compiled_leave_the_compiler_as_it_is(tmp_path):
    path = tmp_path / "in_place.cast"
    one = entry(RELU_, "relu", torch.ops.aten.relu_.default, torch.randn(6, 16))
    sources = {one.source_digest: RELU_}
    manifest.write(path, cast_cases.header(), [one], sources=sources, binaries={})
    x = torch.randn(6, 16)
    torch.compiler.reset()
    with casts.load(path), casts.load(path), torch.no_grad():
        assert torch.equal(torch.compile(torch.neg)(x), -x)
    torch.compiler.reset()


def test_an_exported_program_names_no_kernel(cast):
    with torch.no_grad():
        program = torch.export.export(Model(), (torch.randn(6, 16),))
    assert "kernelforge" not in str(program.graph)


def test_a_program_that_does_not_compile_does_not_wait_for_the_compiler(path):
    script = f"""
import sys, torch
from kernelforge_engine import cast
with cast.load({str(path)!r}) as loaded:
    torch.softmax(torch.randn(6, 16), -1)
    print("torch._inductor" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.stdout == "False\n", done.stderr
