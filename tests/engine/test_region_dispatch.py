"""Regions of a cast at run time: what hits, what goes to the model's own code, and why."""

import threading

import pytest
import region_cases
import torch

from kernelforge_engine import cast as casts

ROWS, SIZE = 6, 16


def hits(cast):
    return {s.operator: s.hits for s in cast.counters().served}


def reasons(cast, name="RMSNorm"):
    return cast.counters().fallbacks.get(f"region::{name}", {})


def test_every_kind_of_region_is_served_with_its_kernels_results(every, code, x):
    model = code.Model().eval()
    with torch.no_grad():
        expected = model(x)
        with every:
            first, second = model(x), model(x)
            assert hits(every) == {
                "region::RMSNorm": 2, "region::Residual": 1, "region::AdaNorm": 1,
                "region::rotate": 1,
            }  # fmt: skip
        assert torch.equal(model(x), expected)
    assert torch.equal(first, expected)  # the calls that are compared run the model's own code
    assert not torch.equal(second, expected)
    assert torch.allclose(second, expected, atol=1e-4)
    assert hits(every)["region::RMSNorm"] == 2
    assert every.counters().fallbacks == {
        "region::RMSNorm": {"first_call": 2}, "region::Residual": {"first_call": 1},
        "region::AdaNorm": {"first_call": 1}, "region::rotate": {"first_call": 1},
    }  # fmt: skip


def test_the_form_in_which_a_region_returns_is_kept(every, code, x):
    ada, emb = code.AdaNorm(), torch.randn(SIZE)
    with torch.no_grad(), every:
        expected = ada(x, emb)
        for found in (ada(x, emb), ada(x, emb=emb), ada(emb=emb, x=x, gain=1.0)):
            assert type(found) is tuple
            assert found[1] is None
            assert torch.allclose(found[0], expected[0], atol=1e-5)
        assert hits(every)["region::AdaNorm"] == 3
        ada(x, emb, gain=2.0)
        ada(x, emb, gain=1)
    assert hits(every)["region::AdaNorm"] == 3


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_modes_without_derivatives_hit(norms, code, x, mode):
    norm = code.RMSNorm()
    with norms, mode():
        norm(x)
        served = norm(x)
        assert served.is_inference() == (mode is torch.inference_mode)
    assert norms.counters().hits == 1
    assert torch.allclose(served, norm(x), atol=1e-6)


def test_training_gives_the_same_gradients_and_falls_back(every, code, x):
    model = code.Model()

    def gradients():
        model.zero_grad()
        model(x).square().sum().backward()
        return [p.grad.clone() for p in model.parameters()]

    expected = gradients()
    with every:
        found = gradients()
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    assert every.counters().hits == 0
    assert reasons(every) == {"autograd": 2}
    assert reasons(every, "Residual") == {"autograd": 1}


def test_an_input_that_needs_a_gradient_falls_back_where_parameters_do_not(norms, code, x):
    norm = code.RMSNorm().requires_grad_(False)
    with norms:
        norm(x)
        norm(x)
        assert norms.counters().hits == 1  # in grad mode, where nothing needs a gradient
        norm(x.clone().requires_grad_()).sum().backward()
    assert norms.counters().hits == 1
    assert reasons(norms) == {"first_call": 1, "autograd": 1}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forward_mode_derivatives_are_kept(norms, code, x):
    norm = code.RMSNorm().requires_grad_(False)
    with torch.autograd.forward_ad.dual_level(), torch.no_grad():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
        expected = torch.autograd.forward_ad.unpack_dual(norm(dual)).tangent
        with norms:
            norm(x)
            found = torch.autograd.forward_ad.unpack_dual(norm(dual)).tangent
    assert torch.equal(found, expected)


def test_autocast_falls_back(every, code, x):
    block = code.Residual()
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        expected = block(x)
        with every:
            assert torch.equal(block(x), expected)
            with torch.autocast("cpu", enabled=False):
                block(x)
    assert hits(every)["region::Residual"] == 0
    assert set(reasons(every, "Residual")) == {"key_set"}


def test_code_that_does_something_else_under_the_same_guard_never_hits(every, code, x):
    """A block with another activation has the class, the tensors and the attributes of the one
    that was judged: only what it runs tells it."""
    alike = code.Residual(act=torch.nn.GELU)
    with torch.no_grad(), every:
        assert torch.equal(alike(x), alike(x))
        assert hits(every)["region::Residual"] == 0
        assert reasons(every, "Residual") == {"program": 1, "guard": 1}
        honest = code.Residual()
        honest(x)
        honest(x)
        assert hits(every)["region::Residual"] == 1
        honest.act = torch.nn.GELU()
        expected = code.Residual.forward.__wrapped__(honest, x)
        assert torch.equal(honest(x), expected)
        assert torch.equal(honest(x), expected)
    assert hits(every)["region::Residual"] == 1


class Force(torch.nn.Module):
    """Differentiates inside its forward, or does something else under the same guard."""

    def __init__(self, differentiates):
        super().__init__()
        self._differentiates = differentiates

    def forward(self, x):
        if not self._differentiates:
            return x * x + x
        with torch.enable_grad():
            y = x.detach().requires_grad_()
            return torch.autograd.grad((y * y).sum(), y)[0]


def test_code_that_differentiates_by_itself_keeps_working(x, tmp_path):
    call, force = region_cases.call_of(Force(False), x=x), Force(True)
    text = region_cases.ROTATE.replace('"in1", "in2"', '"in0", "in0"')
    with torch.no_grad(), casts.load(region_cases.write(tmp_path / "f.cast", (call, text))) as cast:
        assert torch.equal(force(x), 2 * x)
        assert torch.equal(force(x), 2 * x)
        assert reasons(cast, "Force") == {"program": 1, "guard": 1}
        with pytest.raises(TypeError, match="positional"):
            force(x, 1)


def test_what_changes_inside_a_region_is_looked_at_again(every, code, x):
    block = code.Residual()
    with torch.no_grad(), every:
        block(x)
        block(x)
        block.second.weight = torch.nn.Parameter(torch.zeros(SIZE, SIZE))
        block.second.bias.zero_()
        assert torch.equal(block(x), x)
        assert torch.equal(block(x), x)
        block.load_state_dict(code.Residual().state_dict(), assign=True)
        expected = block(x)
        assert torch.allclose(block(x), expected, atol=1e-5)
        block.first.weight.data = torch.zeros(SIZE, SIZE)
        block.second.bias.zero_()
        assert not torch.equal(block(x), expected)
        block.eval()
        block(x)
        block(x)
    assert hits(every)["region::Residual"] == 5
    assert reasons(every, "Residual") == {"first_call": 4}


def test_the_default_dtype_is_looked_at_on_every_call(every, code, x):
    block = code.Residual()
    with torch.no_grad(), every:
        block(x)
        block(x)
        torch.set_default_dtype(torch.float64)
        try:
            block(x)
            block(x)
        finally:
            torch.set_default_dtype(torch.float32)
        block(x)
    assert reasons(every, "Residual") == {"first_call": 3}
    assert hits(every)["region::Residual"] == 2


def test_hooks_inside_a_region_run_and_those_on_it_too(every, code, x):
    block, seen = code.Residual(), []
    with torch.no_grad(), every:
        block(x)
        handle = block.register_forward_hook(lambda *_: seen.append("on it"))
        block(x)
        assert (seen, hits(every)["region::Residual"]) == (["on it"], 1)
        inside = block.first.register_forward_hook(lambda *_: seen.append("inside"))
        block(x)
        assert (seen, hits(every)["region::Residual"]) == (["on it", "inside", "on it"], 1)
        inside.remove()
        block(x)
        assert hits(every)["region::Residual"] == 2
        everywhere = torch.nn.modules.module.register_module_forward_hook(lambda *_: None)
        block(x)
        everywhere.remove()
        handle.remove()
    assert hits(every)["region::Residual"] == 2
    assert reasons(every, "Residual")["hooks"] == 2


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch.jit.trace is deprecated
def test_tracing_transforms_and_subclasses_see_the_models_own_code(norms, code, x):
    norm = code.RMSNorm().requires_grad_(False)
    seen = []

    class Mode(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, op, types, args=(), kwargs=None):
            seen.append(str(op))
            return op(*args, **(kwargs or {}))

    with torch.no_grad(), norms:
        norm(x)
        with Mode():
            norm(x)
        assert any("rsqrt" in name for name in seen)
        graph = torch.fx.experimental.proxy_tensor.make_fx(norm)(x)
        assert any("rsqrt" in str(n.target) for n in graph.graph.nodes)
        mapped = torch.vmap(norm)(torch.randn(3, ROWS, SIZE))
        assert mapped.shape == (3, ROWS, SIZE)
        with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True) as mode:
            assert type(norm(mode.from_tensor(x))).__name__ == "FakeTensor"
        assert norms.counters().hits == 0
        traced = torch.jit.trace(norm, x)
        assert torch.equal(traced(x), norm.forward.__wrapped__(norm, x))
        assert torch.export.export(norm, (x,)).module()(x).shape == x.shape
    assert torch.allclose(
        torch.func.jacrev(norm)(x[0]).sum(0), torch.func.jacrev(norm)(x[0]).sum(0)
    )


def test_threads_hit_together_and_each_counts(norms, code, x):
    norm, wrong = code.RMSNorm(), []
    with torch.no_grad():
        expected = norm(x)

    def work():
        with torch.inference_mode():
            right = [torch.allclose(norm(x), expected, atol=1e-6) for _ in range(200)]
        wrong.extend(r for r in right if not r)

    with norms:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        counters = norms.counters()
    assert not wrong
    assert counters.hits + sum(counters.fallbacks["region::RMSNorm"].values()) == 800
    assert counters.hits > 700


def test_switching_while_other_threads_call(norms, code, x):
    norm, stop, wrong = code.RMSNorm(), threading.Event(), []
    with torch.no_grad():
        expected = norm(x)

    def work():
        with torch.no_grad():
            while not stop.is_set():
                if not torch.allclose(norm(x), expected, atol=1e-6):
                    wrong.append(True)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(100):
        norms.enable()
        norms.disable()
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong
