"""The shim between torch and everything else that hooks into it: layouts, autograd, transforms,
tracing, threads, and the reasons why a call goes to eager."""

import shutil
import threading
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F  # noqa: N812  the name torch code uses
from torch.utils._python_dispatch import TorchDispatchMode

from kernelforge_engine.dispatch import build
from kernelforge_engine.dispatch import shim as shim_module
from kernelforge_engine.dispatch.guard import Unguardable, describe
from kernelforge_engine.plans import ResolvedPlan

CACHE = Path.home() / ".cache" / "kernelforge"
EMPTY = ResolvedPlan(buffers=(), launches=())
aten = torch.ops.aten
rand = torch.randn


@pytest.fixture(scope="module", params=["native", "python"])
def loaded(request):
    return shim_module.load(CACHE) if request.param == "native" else shim_module.interpreted()


@pytest.fixture
def shim(loaded):
    yield loaded
    loaded.remove_all()


def call_of(op, *args, **kwargs):
    with torch.no_grad():
        return describe(op, args, kwargs, op(*args, **kwargs))


def install(shim, op, *args, **kwargs):
    """A variant that allocates its outputs and does nothing: what hits is not computed."""
    return shim.add(call_of(op, *args, **kwargs), EMPTY)


def test_a_torch_whose_headers_do_not_fit_is_hooked_through_boxed_calls(tmp_path, monkeypatch):
    native = tmp_path / "native"
    shutil.copytree(build.NATIVE, native)
    text = (native / "typed.h").read_text()
    (native / "typed.h").write_text(text.replace("kernel_>", "another_>"))
    monkeypatch.setattr(build, "NATIVE", native)
    shim = shim_module.compiled(build.library(tmp_path))
    x, w = rand(4, 8), rand(3, 8)
    handle = install(shim, aten.linear.default, x, w)
    with torch.no_grad():
        F.linear(x, w)
        assert F.linear(rand(5, 8), w).shape == (5, 3)
    assert shim.hits(handle) == 1
    shim.remove_all()


def test_layout_belongs_to_the_variant(shim):
    x = rand(2, 4, 6, 6)
    handle = install(shim, aten.silu.default, x)
    with torch.no_grad():
        F.silu(x.to(memory_format=torch.channels_last))
        F.silu(torch.randn(2 * 4 * 36 + 1)[1:].view(2, 4, 6, 6))
        F.silu(rand(2, 4, 6, 6).double())
        assert shim.hits(handle) == 0
        F.silu(rand(2, 4, 6, 6))
    assert shim.hits(handle) == 1


def test_arguments_belong_to_the_variant(shim):
    x = rand(4, 8)
    handle = install(shim, aten.gelu.default, x, approximate="tanh")
    scalar = install(shim, aten.add.Tensor, x, 1.5)
    with torch.no_grad():
        assert torch.equal(F.gelu(x), torch.nn.GELU()(x))
        assert torch.equal(x + 2.5, x.add(2.5))
        assert torch.equal(x + 1, x.add(1))
    assert shim.hits(handle) == shim.hits(scalar) == 0


def test_training_through_a_composite_operator_records_its_graph(shim):
    x, w = rand(4, 8), torch.nn.Parameter(rand(3, 8))
    handle = install(shim, aten.linear.default, x, w)
    before = misses(shim, "aten::linear", "autograd")
    F.linear(x, w).sum().backward()
    assert torch.allclose(w.grad, x.sum(0).expand(3, 8))
    assert shim.hits(handle) == 0
    assert misses(shim, "aten::linear", "autograd") == before + 1
    with torch.no_grad():
        F.linear(x, w)
    assert shim.hits(handle) == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch scripts its own formulas
def test_forward_mode_derivative_of_a_composite_operator_is_kept(shim):
    x, w = rand(4, 8), rand(3, 8)
    install(shim, aten.linear.default, x, w)
    with torch.autograd.forward_ad.dual_level(), torch.no_grad():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
        tangent = torch.autograd.forward_ad.unpack_dual(F.linear(dual, w)).tangent
    assert torch.allclose(tangent, w.sum(1).expand(4, 3))


def misses(shim, operator, reason):
    return shim.misses().get(operator, {}).get(reason, 0)


def test_written_argument_that_overlaps_another_goes_to_eager(shim):
    x, y = rand(2, 8), rand(2, 8)
    handle = install(shim, aten.add_.Tensor, x.clone(), y)
    before = misses(shim, "aten::add_.Tensor", "overlap")
    with torch.no_grad():
        same = x.clone()
        same.add_(same)
        base = torch.cat([x, y]).flatten()
        with pytest.raises(RuntimeError, match="memory location"):
            base[:16].view(2, 8).add_(base[4:20].view(2, 8))
    assert torch.equal(same, 2 * x)
    assert shim.hits(handle) == 0
    assert misses(shim, "aten::add_.Tensor", "overlap") == before + 2
    with pytest.raises(Unguardable, match="overlaps"):
        call_of(aten.add_.Tensor, x, x)


def test_transforms_and_tracing_are_left_alone(shim):
    x, w = rand(4, 8), rand(3, 8)
    model = torch.nn.Sequential(torch.nn.Linear(8, 3), torch.nn.Softmax(-1)).eval()
    handles = [
        install(shim, aten.linear.default, x, model[0].weight, model[0].bias),
        install(shim, aten.softmax.int, rand(4, 3), -1),
        install(shim, aten.linear.default, x, w),
    ]
    make_fx = torch.fx.experimental.proxy_tensor.make_fx
    with torch.no_grad():
        graph = make_fx(model)(x)
        targets = {str(n.target) for n in graph.graph.nodes}
        assert "aten.addmm.default" in targets or "aten.linear.default" in targets
        assert "aten._softmax.default" in targets
        rows = rand(6, 8)
        mapped = torch.vmap(lambda row: F.linear(row, w).softmax(-1))(rows)
        assert torch.allclose(mapped, (rows @ w.T).softmax(-1), atol=1e-6)
        with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True) as mode:
            fake = model(mode.from_tensor(x))
        assert type(fake).__name__ == "FakeTensor"
        exported = torch.export.export(model, (x,))
        assert "aten.linear.default" in {str(n.target) for n in exported.graph.nodes}
        before = [shim.hits(h) for h in handles]
        compiled = torch.compile(model, backend="eager")
        assert compiled(x).shape == (4, 3)
        assert shim.hits(handles[0]) > before[0]
    gradient = torch.func.grad(lambda t: F.linear(t, w).sum())(x)
    assert torch.allclose(gradient, w.sum(0).expand(4, 8))


def test_what_was_traced_beside_a_kernel_trains_once_it_is_gone(shim):
    model = torch.nn.Linear(8, 3)
    x, (w, b) = rand(4, 8), model.parameters()
    install(shim, aten.linear.default, x, w, b)
    torch.export.export(model, (x,))
    shim.remove_all()
    torch.compile(model, backend="aot_eager")(x).sum().backward()
    assert torch.allclose(w.grad, x.sum(0).expand(3, 8), atol=1e-6)
    assert torch.equal(b.grad, torch.full((3,), 4.0))


def test_reasons_of_misses(shim):
    x, w = rand(4, 8), torch.nn.Parameter(rand(3, 8))
    install(shim, aten.linear.default, x, w)
    install(shim, aten.add.Tensor, x, 1.5)
    counted = shim.misses()

    def new(operator, reason):
        return misses(shim, operator, reason) - counted.get(operator, {}).get(reason, 0)

    with torch.no_grad():
        F.linear(rand(5, 8), w)
        assert new("aten::linear", "guard") == 1
        assert (x + 1.5j).is_complex()
        assert new("aten::add.Tensor", "unsupported_argument") == 1
        with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True) as mode:
            F.linear(mode.from_tensor(x), w)
        assert new("aten::linear", "key_set") > 0


def test_threads_hit_together(shim):
    x = rand(4, 8)
    handle = install(shim, aten.softmax.int, x, -1)
    failures = []

    def work():
        with torch.inference_mode():
            right = [x.softmax(-1).shape == (4, 8) and x.relu().min() >= 0 for _ in range(500)]
        failures.extend([r for r in right if not r])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shim.hits(handle) == 2000
    assert not failures


def test_switching_while_other_threads_call(shim):
    """The dispatcher swaps kernels under its callers, which crashed hooks that held state."""
    x, w, other = rand(4, 8), rand(3, 8), rand(5, 8)
    calls = [call_of(aten.linear.default, x, w), call_of(aten.relu.default, x)]
    stop, wrong = threading.Event(), []
    expected = F.linear(other, w)

    def work():
        while not stop.is_set():
            F.linear(x, w.relu())
            if not torch.equal(F.linear(other, w), expected):
                wrong.append(True)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(300):
        handles = [shim.add(call, EMPTY) for call in calls]
        for handle in handles:
            shim.remove(handle)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong


def test_autocast_inside_an_operator_with_a_kernel_of_its_own_goes_to_eager(shim):
    """The fast path of a transformer layer is one operator, whose products autocast casts."""
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    x, seen = rand(2, 3, 8), []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, op, types, args=(), kwargs=None):
            out = op(*args, **(kwargs or {}))
            if op is aten._transformer_encoder_layer_fwd.default:
                seen.append(describe(op, args, kwargs or {}, out))
            return out

    with torch.no_grad():
        with Mode():
            layer(x)
        handle = shim.add(seen[0], EMPTY)
        with torch.autocast("cpu", torch.bfloat16):
            assert layer(x).dtype == torch.bfloat16
            assert shim.hits(handle) == 0
            with pytest.raises(Unguardable, match="autocast"), Mode():
                layer(x)
        before = shim.hits(handle)
        layer(x)
    assert shim.hits(handle) == before + 1


def test_many_variants_of_one_operator(shim):
    handles = {n: install(shim, aten.relu.default, rand(n)) for n in range(1, 101)}
    with torch.no_grad():
        for n in handles:
            torch.relu(rand(n))
        torch.relu(rand(101))
    assert {shim.hits(h) for h in handles.values()} == {1}


def test_variants_that_share_their_first_tensor_are_told_apart(shim):
    x = rand(4, 8)
    handles = {n: install(shim, aten.add.Tensor, x, float(n)) for n in range(50)}
    with torch.no_grad():
        for n in handles:
            assert (x + float(n)).shape == x.shape
        missed = [x + 50.0, x + 0, x + rand(8)]
    assert torch.equal(missed[0], x.add(50.0))
    assert {shim.hits(h) for h in handles.values()} == {1}


def test_what_stands_before_the_first_tensor_does_not_hide_it(shim):
    """A miss is told by the first tensor alone where no variant has one like it."""
    library = torch.library.Library("kernelforge_late", "DEF")
    before = "str s, Tensor? none, int[] sizes, float? f, bool b"
    library.define(f"late({before}, Tensor[] list, Tensor y) -> Tensor")
    library.impl("late", lambda *args: args[5][0] + args[6], "CPU")
    op = torch.ops.kernelforge_late.late.default
    for text in ("", "8 bytes!", "a text of more than sixteen bytes"):
        for sizes, number in (([], None), ([1, 2, 3], 0.5)):
            call = [text, None, sizes, number, True, [rand(2, 3), rand(4)[:3]], rand(3)]
            handle = install(shim, op, *call)
            op(*call)
            assert shim.hits(handle) == 1
            other = [*call[:5], [rand(3, 3), call[5][1]], call[6]]
            assert torch.equal(op(*other), other[5][0] + other[6])
            assert op(*call[:6], rand(1)).shape == (2, 3)
            assert shim.hits(handle) == 1
    shim.remove_all()
    library._destroy()


def test_custom_operator_hits(shim):
    library = torch.library.Library("kernelforge_test", "DEF")
    library.define("twice(Tensor x, float by=2.0) -> Tensor")
    library.impl("twice", lambda x, by=2.0: x * by, "CPU")
    x = rand(3)
    handle = install(shim, torch.ops.kernelforge_test.twice.default, x)
    torch.ops.kernelforge_test.twice(x)
    assert torch.equal(torch.ops.kernelforge_test.twice(x, 3.0), x * 3)
    assert shim.hits(handle) == 1
    shim.remove_all()
    library._destroy()
