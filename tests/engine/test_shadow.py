"""Shadow mode: what kernels answer is compared with eager while they serve."""

import math
import threading

import cast_cases
import pytest
import torch

from kernelforge_engine import cast as casts
from kernelforge_engine.cast import manifest
from kernelforge_engine.codec import sha256
from kernelforge_engine.dispatch.guard import describe
from kernelforge_engine.errors import BadOption
from kernelforge_engine.plans import ResolvedPlan

GELU = """/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
#include <cmath>
extern "C" void k(const float* x, float* y, long n) {
  for (long i = 0; i < n; ++i) y[i] = FORM;
}
"""
RIGHT = "0.5f * x[i] * (1.f + std::erf(x[i] * 0.70710678f))"
RELU_ = """/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "i64:in0.numel"]
*/
extern "C" void k(float* x, long n) {
  for (long i = 0; i < n; ++i) x[i] = x[i] > 0 ? x[i] : 0;
}
"""


def entry(text, op, *args):
    with torch.no_grad():
        call = describe(op, args, {}, op(*args))
    return cast_cases.entry(text, call, node=sha256(text)[:6], speedup=None)


@pytest.fixture
def load(tmp_path):
    """Loads a cast of a gelu of some form and of an in-place relu."""

    def loaded(form):
        gelu, x = GELU.replace("FORM", form), torch.randn(4, 8)
        entries = [
            entry(gelu, torch.ops.aten.gelu.default, x),
            entry(RELU_, torch.ops.aten.relu_.default, x),
        ]
        texts = {e.source_digest: t for e, t in zip(entries, (gelu, RELU_), strict=True)}
        manifest.write(
            tmp_path / "a.cast", cast_cases.header(), entries, sources=texts, binaries={}
        )
        return casts.load(tmp_path / "a.cast")

    return loaded


def run(count, x=None):
    for _ in range(count):
        torch.nn.functional.gelu(torch.randn(4, 8) if x is None else x)


def gelu_of(cast):
    return next(s for s in cast.counters().served if s.operator == "aten::gelu")


def test_a_share_of_the_hits_is_compared_and_nothing_of_the_rest(load):
    cast = load(RIGHT)
    cast.enable(shadow=0.25)
    run(40)
    cast.disable()
    found = gelu_of(cast)
    assert (found.hits, found.compared) == (40, 10)
    assert found.worst < 1e-5
    cast.enable()
    run(8)
    cast.disable()
    assert (gelu_of(cast).hits, gelu_of(cast).compared) == (48, 10)


def test_a_kernel_that_is_wrong_now_and_then_is_found(load):
    cast = load(f"x[i] > 3.f ? 0.f : {RIGHT}")
    cast.enable(shadow=1.0)
    run(3, torch.zeros(4, 8))
    assert gelu_of(cast).worst == 0
    run(1, torch.full((4, 8), 4.0))
    run(3, torch.zeros(4, 8))
    cast.disable()
    found = gelu_of(cast)
    assert found.compared == 7
    assert found.worst == pytest.approx(1.0, rel=1e-3)


def test_a_value_that_eager_has_not_is_infinitely_far(load):
    cast = load("1.f / (x[i] - x[i])")
    cast.enable(shadow=1.0)
    run(1)
    cast.disable()
    assert math.isinf(gelu_of(cast).worst)


def test_a_comparison_leaves_the_model_and_the_counts_as_they_are(load):
    x = torch.randn(4, 8, requires_grad=True)
    cast = load(RIGHT)
    cast.enable(shadow=1.0)
    y = torch.nn.functional.gelu(x)
    (found,) = torch.autograd.grad(y.sum(), x)
    z = torch.randn(4, 8)
    assert torch.equal(torch.relu_(z.clone()), z.relu())
    cast.disable()
    (expected,) = torch.autograd.grad(torch.nn.functional.gelu(x).sum(), x)
    assert torch.equal(found, expected)
    counters = cast.counters()
    assert {s.operator: (s.hits, s.compared) for s in counters.served} == {
        "aten::gelu": (1, 1),
        "aten::relu_": (1, 0),
    }
    assert counters.fallbacks == {}


def test_one_cast_compares_until_it_is_disabled_whatever_the_others_do(load):
    first, second = load(RIGHT), load(RIGHT)
    first.enable(shadow=1.0)
    second.enable()
    run(2)
    first.disable()
    run(2)
    second.disable()
    assert gelu_of(second).compared == 2
    assert gelu_of(first).compared == 0
    with load(RIGHT) as third:
        run(2)
    assert gelu_of(third).compared == 0


def test_what_a_comparison_computes_is_no_miss(load):
    cast = load(RIGHT)
    other = torch.ops.aten.abs.default
    with torch.no_grad():
        call = describe(other, (torch.randn(3),), {}, other(torch.randn(3)))
    shim = cast._prepare()
    handle = shim.add(call, ResolvedPlan(buffers=(), launches=()))
    before = shim.misses().get("aten::abs")
    cast.enable(shadow=1.0)
    run(2)
    cast.disable()
    assert shim.misses().get("aten::abs") == before
    shim.remove(handle)


def test_threads_compare_each_for_itself(load):
    cast = load(RIGHT)
    cast.enable(shadow=0.5)
    threads = [threading.Thread(target=run, args=(50,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cast.disable()
    assert (gelu_of(cast).hits, gelu_of(cast).compared) == (200, 100)


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan")])
def test_what_is_no_share_is_refused(load, share):
    cast = load(RIGHT)
    with pytest.raises(BadOption, match="it is no share"):
        cast.enable(shadow=share)
    assert not cast.counters().enabled
