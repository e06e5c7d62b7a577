"""Casts where there is no C++ compiler: the guard in Python decides as the native one does, and a
process that finds no compiler serves what it can, and says so."""

import random
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path

import cast_cases
import pytest
import region_cases
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kernelforge_engine import cast as casts
from kernelforge_engine.dispatch import shim as shim_module
from kernelforge_engine.dispatch.guard import Unguardable, describe
from kernelforge_engine.dispatch.python_hooks import wrapped
from kernelforge_engine.launch.resolve import buffer_sizes
from kernelforge_engine.plans import ResolvedPlan

CACHE = Path.home() / ".cache" / "kernelforge"
A = torch.ops.aten
BROAD = (
    "broad(str s, Tensor? none, int[] sizes, float? f, bool b, Scalar n, Tensor[] list, Tensor y, "
    "*, ScalarType? dtype=None, MemoryFormat? memory_format=None) -> (Tensor, Tensor[])"
)


class Subclass(torch.Tensor):
    pass


class Passing(TorchDispatchMode):
    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        return op(*args, **(kwargs or {}))


@pytest.fixture(scope="module")
def broad():
    """An operator with arguments of every kind."""
    library = torch.library.Library("kernelforge_broad", "DEF")
    library.define(BROAD)
    library.impl("broad", lambda *args, **_: (args[7] + 1, [t.clone() for t in args[6]]), "CPU")
    yield torch.ops.kernelforge_broad.broad.default
    library._destroy()


def tensor(draw, *shape, dtypes=(torch.float32,)):
    """A tensor of some layout, as the draw wants it."""
    dtype = draw.choice(dtypes)
    kind = draw.choice(["plain", "plain", "transposed", "misaligned", "expanded", "parameter"])
    if kind == "transposed" and len(shape) == 2:
        made = torch.ones(shape[::-1], dtype=dtype).t()
    elif kind == "misaligned":
        room = torch.ones(1 + torch.Size(shape).numel(), dtype=dtype)
        made = room[1:].view(shape)
    elif kind == "expanded" and shape:
        made = torch.ones((1, *shape[1:]), dtype=dtype).expand(shape)
    else:
        made = torch.ones(shape, dtype=dtype)
    return torch.nn.Parameter(made, draw.random() < 0.5) if kind == "parameter" else made


def drawn(draw, broad):
    """A call: an operator, its arguments and the context to make it in."""
    n, floats = draw.randint(1, 3), (torch.float32, torch.float32, torch.bfloat16)
    x = tensor(draw, n, 4, dtypes=floats)
    y = draw.choice([x, tensor(draw, n, 4), tensor(draw, n, 4)])
    number = draw.choice([1, 1.0, True, 0.0, -0.0, 2.5, float("inf"), 1j])
    options = [
        (A.relu.default, (x,), {}),
        (A.relu_.default, (x.detach(),), {}),
        (A.add.Tensor, (x, y), {"alpha": draw.choice([1, 1.0, 2])}),
        (A.add.Tensor, (x, number), {}),
        (A.mul.Tensor, (number, x), {}),
        (A.add_.Tensor, (x.detach(), draw.choice([y, number, x.detach()])), {}),
        (A.add.out, (x.detach(), y.detach()), {"out": draw.choice([torch.ones(n, 4), y.detach()])}),
        (A.softmax.int, (x, draw.choice([-1, 0])), draw.choice([{}, {"dtype": torch.float64}])),
        (A.linear.default, (x, tensor(draw, 3, 4), draw.choice([None, torch.ones(3)])), {}),
        (A.cat.default, ([x, y, x][: draw.randint(1, 3)], draw.choice([0, 1])), {}),
        (A.layer_norm.default, (x, [4], draw.choice([None, torch.ones(4)])), {}),
        (A.gelu.default, (x,), draw.choice([{}, {"approximate": "tanh"}])),
        (A.max.dim, (x, 1), {}),
        (broad, (
            draw.choice(["", "text", "a longer text than one word"]), draw.choice([None, x]),
            [1] * draw.randint(0, 2), draw.choice([None, 0.5]), draw.random() < 0.5, number,
            [x, y][: draw.randint(1, 2)], y,
        ), draw.choice([{}, {"dtype": torch.int8}, {"memory_format": torch.channels_last}])),
    ]  # fmt: skip
    return *draw.choice(options), draw.choice(list(CONTEXTS))


CONTEXTS = {
    "no_grad": torch.no_grad,
    "inference": torch.inference_mode,
    "grad": torch.enable_grad,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "mode": Passing,
    "device": lambda: torch.device("meta"),
    "dual": torch.autograd.forward_ad.dual_level,
    "subclass": nullcontext,
    "vmap": nullcontext,
}


def called(op, args, kwargs, context):
    """What a call answers: the layouts it returns, or what it raises."""
    try:
        with ExitStack() as stack:
            stack.enter_context(CONTEXTS[context]())
            if context == "vmap":
                batch = [torch.stack([a, a]) if isinstance(a, torch.Tensor) else a for a in args]
                dims = tuple(0 if isinstance(a, torch.Tensor) else None for a in args)
                out = torch.vmap(lambda *a: op(*a, **kwargs), in_dims=dims)(*batch)
            elif context == "subclass":
                given = [a.as_subclass(Subclass) if type(a) is torch.Tensor else a for a in args]
                out = op(*given, **kwargs)
            elif context == "dual" and isinstance(args[0], torch.Tensor):
                dual = torch.autograd.forward_ad.make_dual(args[0], torch.ones_like(args[0]))
                out = op(dual, *args[1:], **kwargs)
            else:
                out = op(*args, **kwargs)
    except (RuntimeError, TypeError, NotImplementedError, ValueError) as error:
        return type(error).__name__
    return [
        (t.dtype, t.shape, t.stride(), t.requires_grad, None if t.is_inference() else t._version)
        for t in torch.utils._pytree.tree_leaves(out)
    ]


def zeros(call):
    """A plan whose outputs are zeros: what is recorded for a derivative reads them."""
    buffers = tuple(replace(b, zero=b.role == "output") for b in buffer_sizes(call))
    return ResolvedPlan(buffers=buffers, launches=())


def decisions(shim, seed, broad):
    """What became of each call of a run that the seed decides."""
    draw, handles, found = random.Random(seed), [], []
    torch.manual_seed(seed)
    for _ in range(120):
        op, args, kwargs, context = drawn(draw, broad)
        if draw.random() < 0.4:
            try:
                with torch.no_grad():
                    call = describe(op, args, kwargs, op(*args, **kwargs))
            except (Unguardable, RuntimeError):
                continue
            handles.append(shim.add(call, zeros(call)))
            if draw.random() < 0.2:
                shim.remove(draw.choice(handles))
        before = [shim.hits(h) for h in handles], misses(shim)
        answer = called(op, args, kwargs, context)
        hits = [i for i, h in enumerate(handles) if shim.hits(h) != before[0][i]]
        missed = {k: n - before[1].get(k, 0) for k, n in misses(shim).items()}
        found.append((str(op), context, answer, hits, {k: n for k, n in missed.items() if n}))
    shim.remove_all()
    return found


def misses(shim):
    return {(op, why): n for op, found in shim.misses().items() for why, n in found.items()}


@pytest.mark.filterwarnings("ignore")  # of what random calls do
def test_random_calls_are_decided_alike(broad):
    native, python = shim_module.load(CACHE), shim_module.interpreted()
    served, reasons = 0, set()
    for seed in range(25):
        expected = decisions(native, seed, broad)
        assert decisions(python, seed, broad) == expected
        served += sum(bool(hits) for *_, hits, _ in expected)
        reasons |= {why for *_, missed in expected for _, why in missed}
    assert served > 200
    assert reasons >= {"key_set", "unsupported_argument", "guard", "autograd", "overlap"}


@pytest.mark.parametrize("number", [True, 3, 2.5, 1 + 2j])
def test_a_number_becomes_the_tensor_that_torch_makes_of_it(number):
    whole = torch.ones(2, dtype=torch.int32)
    with torch.inference_mode():
        assert wrapped(number).item() == number
    assert (whole + wrapped(number)).dtype == (whole + number).dtype
    assert wrapped(number) is not wrapped(number)


# A process that finds no compiler: what it prints is the counters of two calls.
ALONE = """
import sys, warnings, torch
from pathlib import Path
from kernelforge_engine import cast
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    kernels = cast.load(Path(sys.argv[1]), cache=Path(sys.argv[2]))
x = torch.randn(8, 16)
expected, other = x.relu(), torch.randn(3)
with torch.no_grad(), kernels:
    assert torch.equal(x.relu(), expected)
    assert torch.equal(other.relu(), other.clamp(min=0))
found = kernels.counters()
assert x.relu().equal(expected)
print(found.dispatch, found.hits, found.fallbacks)
print(found.served[0].inactive)
print([str(w.message) for w in told if "compiler" in str(w.message)])
"""


@pytest.fixture
def relu(tmp_path):
    """A cast of a relu."""
    path = tmp_path / "relu.cast"
    cast_cases.written(path, cast_cases.entry())
    return path


def test_a_kernel_that_was_built_here_serves_without_a_compiler(relu, tmp_path, without_compiler):
    cache = tmp_path / "cache"
    with casts.load(relu, cache=cache) as cast:
        torch.relu(torch.randn(8, 16))
    assert (cast.counters().dispatch, cast.counters().hits) == ("native", 1)
    counted, inactive, told = without_compiler(ALONE, relu, cache)
    assert counted == "python 1 {'aten::relu': {'guard': 1}}"
    assert inactive == "None"
    assert "Next: install g++" in told


def test_a_kernel_that_was_not_built_here_stays_eager_and_says_so(relu, tmp_path, without_compiler):
    counted, inactive, told = without_compiler(ALONE, relu, tmp_path / "cache")
    assert counted == "python 0 {}"
    assert inactive.startswith("compiler: there is no C++ compiler here")
    assert "install g++" in inactive
    assert "Next: install g++" in told


def test_what_was_built_for_another_processor_is_not_taken(relu, tmp_path, without_compiler):
    cache = tmp_path / "cache"
    casts.load(relu, cache=cache)
    [note] = (cache / "built").glob("*.json")
    note.rename(note.with_stem("of-another"))
    counted, inactive, _ = without_compiler(ALONE, relu, cache)
    assert counted == "python 0 {}"
    assert inactive.startswith("compiler:")


REGION = """
import sys, warnings, torch
from pathlib import Path
warnings.simplefilter("ignore")
sys.path[:0] = [sys.argv[3], sys.argv[4]]
import region_cases
from kernelforge_engine import cast
code = region_cases.model_code(Path(sys.argv[4]) / "child")
module, x = code.RMSNorm(), torch.randn(6, 16)
with torch.no_grad():
    expected = module(x)
    with cast.load(Path(sys.argv[1]), cache=Path(sys.argv[2])) as kernels:
        for _ in range(3):
            assert torch.allclose(module(x), expected, atol=1e-5)
        module(torch.randn(5, 16))
print(kernels.counters().hits, kernels.counters().fallbacks)
"""


def test_regions_are_served_without_a_compiler(code, x, tmp_path, without_compiler):
    call = region_cases.call_of(code.RMSNorm(), hidden_states=x)
    path, cache = tmp_path / "norms.cast", tmp_path / "cache"
    region_cases.write(path, (call, region_cases.RMS))
    casts.load(path, cache=cache)
    (tmp_path / "child").mkdir()
    here = Path(__file__).parent
    [line] = without_compiler(REGION, path, cache, here, tmp_path)
    assert line == "2 {'region::RMSNorm': {'guard': 1, 'first_call': 1}}"
