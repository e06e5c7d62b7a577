"""Regions of a cast inside code that Inductor compiled."""

import copy

import pytest
import region_cases
import torch

from kernelforge_engine import cast as casts

# torch's own, when it imports its compiler.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
SIZE = 16


@pytest.fixture(autouse=True)
def compiler(tmp_path, monkeypatch):
    """A compiler that remembers nothing."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def hits(cast):
    found = {s.operator.removeprefix("region::"): s.hits for s in cast.counters().served}
    return {name: count for name, count in found.items() if count}


def reasons(cast):
    fallbacks = cast.counters().fallbacks.items()
    return {name.removeprefix("region::"): dict(found) for name, found in fallbacks}


def test_regions_are_served_in_compiled_code(every, code, x):
    model = code.Model().eval()
    with torch.no_grad():
        expected = model(x)
        every.enable()
        compiled = torch.compile(model, fullgraph=True)
        found = [compiled(x), compiled(x)]
        assert hits(every) == {"RMSNorm": 4, "Residual": 2, "AdaNorm": 2, "rotate": 2}
        assert not reasons(every)
        assert torch.equal(*found)
        assert torch.allclose(found[0], expected, atol=1e-4)
        every.disable()
        assert torch.allclose(compiled(x), expected, atol=1e-4)
        assert hits(every)["RMSNorm"] == 4
        every.enable()
        assert torch.equal(compiled(x), found[0])
        assert hits(every)["RMSNorm"] == 6


def test_without_its_kernel_a_region_is_what_it_was(every, code, x):
    block = code.Residual()
    with torch.no_grad():
        expected = block(x)
        with every:
            compiled = torch.compile(block)
            assert not torch.equal(compiled(x), expected)
        assert torch.equal(compiled(x), expected)


def test_what_the_guard_refuses_at_run_time_is_what_it_was(every, code, x):
    wide = torch.randn(7 * SIZE)
    unaligned = wide[1 : 1 + 6 * SIZE].view(6, SIZE)
    block = code.Residual()
    with torch.no_grad():
        expected = block(unaligned)
        with every:
            compiled, turned = torch.compile(block), torch.compile(code.rotate)
            compiled(x)
            assert torch.equal(compiled(unaligned), expected)
            turned(x, x + 1, x + 2)
            alias = x.view(6, SIZE)
            assert torch.equal(turned(x, x + 1, alias), code.rotate.__wrapped__(x, x + 1, alias))
            assert hits(every) == {"Residual": 1, "rotate": 1}
            assert reasons(every) == {"Residual": {"guard": 1}, "rotate": {"guard": 1}}


def test_gradients_are_those_of_the_models_own_code(every, code, x):
    model = code.Model()

    def gradients(call):
        model.zero_grad()
        call(x).square().sum().backward()
        return [p.grad.clone() for p in model.parameters()]

    expected = gradients(model)
    with every:
        found = gradients(torch.compile(model, fullgraph=True))
    assert all(torch.allclose(a, b, atol=1e-3) for a, b in zip(found, expected, strict=True))
    assert not hits(every)
    assert {name: found["compiled"] for name, found in reasons(every).items()} == {
        "RMSNorm": 1, "Residual": 1, "AdaNorm": 1, "rotate": 1,
    }  # fmt: skip


def test_only_what_needs_gradients_stays(every, code, x):
    norm = code.RMSNorm()
    with every:
        compiled = torch.compile(lambda t: norm(t.detach()) if t.requires_grad else norm(t))
        assert compiled(x).requires_grad
        assert reasons(every) == {"RMSNorm": {"compiled": 1}}
        norm.requires_grad_(False)
        compiled(x)
        assert hits(every) == {"RMSNorm": 1}
        assert compiled(x.clone().requires_grad_()).shape == x.shape


def test_gradients_that_are_switched_off_inside_do_not_matter(every, code, x):
    norm = code.RMSNorm()

    def run(t):
        with torch.no_grad():
            y = norm(t)
        return y * 2 + norm(t)

    with every:
        found = torch.compile(run, fullgraph=True)(x)
    assert hits(every) == {"RMSNorm": 1}
    assert reasons(every) == {"RMSNorm": {"compiled": 1}}
    (grad,) = torch.autograd.grad(found.sum(), norm.weight)
    assert torch.allclose(grad, (found.detach() / 3 / norm.weight.detach()).sum(0), atol=1e-4)


def test_sizes_that_vary_stay_the_compilers_and_are_counted(every, code, x):
    norm = code.RMSNorm()
    with torch.no_grad(), every:
        compiled = torch.compile(norm, dynamic=True, fullgraph=True)
        for rows in (6, 7):
            given = torch.randn(rows, SIZE)
            assert torch.allclose(compiled(given), norm.forward.__wrapped__(norm, given), atol=1e-6)
    assert not hits(every)
    assert reasons(every) == {"RMSNorm": {"compiled": 1}}


def test_other_sizes_are_compiled_for_themselves(every, code, x):
    norm = code.RMSNorm()
    compiled = torch.compile(norm, dynamic=False)
    with torch.no_grad(), every:
        for rows in (6, 7, 6):
            given = torch.randn(rows, SIZE)
            assert torch.allclose(compiled(given), norm.forward.__wrapped__(norm, given), atol=1e-6)
    assert hits(every) == {"RMSNorm": 2}
    assert reasons(every) == {"RMSNorm": {"compiled": 1}}


def test_another_program_under_the_same_name_stays(every, code, x):
    alike, hooked, eps = code.Residual(act=torch.nn.GELU), code.Residual(), code.RMSNorm(eps=1e-3)
    hooked.first.register_forward_hook(lambda _m, _a, out: out + 1)
    with torch.no_grad():
        expected = [alike(x), hooked(x), eps(x)]
        with every:
            found = [torch.compile(m)(x) for m in (alike, hooked, eps)]
    assert not hits(every)
    assert reasons(every) == {"Residual": {"compiled": 2}, "RMSNorm": {"compiled": 1}}
    assert all(torch.allclose(f, e, atol=1e-5) for f, e in zip(found, expected, strict=True))


def test_a_region_of_which_more_is_used_than_it_returns_stays(every, code, x):
    block, kept = code.Residual(), []
    block.act.register_forward_hook(lambda _m, _a, out: kept.append(out))

    def run(t):
        kept.clear()
        return block(t) + kept[0]

    with torch.no_grad():
        expected = run(x)
        with every:
            found = torch.compile(run, fullgraph=True)(x)
    assert torch.allclose(found, expected, atol=1e-5)
    assert not hits(every)
    assert reasons(every) == {"Residual": {"compiled": 1}}


def test_autocast_and_writes_around_a_region_are_kept(every, code, x):
    block, norm = code.Residual(), code.RMSNorm()

    def run(t):
        y = norm(t)
        t.add_(1)
        with torch.autocast("cpu", torch.bfloat16):
            z = block(t)
        with torch.autocast("cpu", enabled=False):
            z = z + block(t)
        return y + norm(t) + z

    with torch.no_grad():
        given, other = x.clone(), x.clone()
        expected = run(given)
        with every:
            found = torch.compile(run, fullgraph=True)(other)
    assert torch.equal(given, other)
    assert torch.allclose(found, expected, atol=0.1)
    assert hits(every) == {"RMSNorm": 2, "Residual": 1}
    assert reasons(every) == {"Residual": {"compiled": 1}}


def test_two_casts_serve_the_newest_first(every, code, x, tmp_path):
    call = region_cases.call_of(code.RMSNorm(), hidden_states=x)
    second = casts.load(region_cases.write(tmp_path / "second.cast", (call, region_cases.RMS)))
    norm = code.RMSNorm()
    compiled = torch.compile(norm)
    with torch.no_grad(), every:
        with second:
            compiled(x)
            assert (hits(every), hits(second)) == ({}, {"RMSNorm": 1})
        compiled(x)
        assert (hits(every), hits(second)) == ({"RMSNorm": 1}, {"RMSNorm": 1})


def test_parts_of_one_tensor_are_returned_apart(x, tmp_path, code):
    class Halves(torch.nn.Module):
        def forward(self, x):
            first, second = (x * 2).chunk(2, -1)
            return first, second

    text = """/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "out1", "i32:in0.shape[0]", "i32:in0.shape[1]",
        "i32:out0.stride[0]", "i32:out1.stride[0]"]
*/
extern "C" void k(const float* x, float* a, float* b, int rows, int n, int s, int t) {
  for (int r = 0; r < rows; ++r) for (int c = 0; c < n; ++c)
    (c < n / 2 ? a[r * s + c] : b[r * t + c - n / 2]) = 2 * x[r * n + c];
}
"""
    halves = Halves()
    call = region_cases.call_of(halves, x=x)
    cast = casts.load(region_cases.write(tmp_path / "h.cast", (call, text)))

    def run(t):
        first, second = halves(t)
        return first + 1, second.clone().mul_(2), first

    with torch.no_grad():
        expected = run(x)
        with cast:
            compiled = torch.compile(run, fullgraph=True)
            found = compiled(x)
            assert hits(cast) == {"Halves": 1}
        again = compiled(x)
    for outputs in (found, again):
        assert all(torch.equal(f, e) for f, e in zip(outputs, expected, strict=True))


def test_an_exported_program_and_another_backend_name_no_region(every, code, x):
    model = code.Model().eval()
    with torch.no_grad():
        expected = model(x)
        with every:
            program = torch.export.export(model, (x,))
            assert "kernelforge" not in str(program.graph)
            assert torch.allclose(torch.compile(model, backend="aot_eager")(x), expected, atol=1e-4)
    assert not hits(every)


def test_copies_of_a_model_share_what_was_compiled(every, code, x):
    """Inductor compiles one block of a kind for all; each has its own weights."""
    blocks = [code.Residual().eval() for _ in range(3)]
    blocks.append(copy.deepcopy(blocks[0]))
    with torch.no_grad():
        expected = [block(x) for block in blocks]
        with every:
            for block in blocks:
                block.compile()
            found = [block(x) for block in blocks]
    assert all(torch.allclose(f, e, atol=1e-5) for f, e in zip(found, expected, strict=True))
    assert hits(every) == {"Residual": 4}
