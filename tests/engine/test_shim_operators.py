"""What a hit returns equals what was recorded, operator by operator; all else goes to eager."""

import ctypes
import itertools
import struct
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F  # noqa: N812  the name torch code uses
from torch.utils._python_dispatch import TorchDispatchMode

from kernelforge_engine import codec, errors
from kernelforge_engine.calls import Call
from kernelforge_engine.dispatch import shim as shim_module
from kernelforge_engine.dispatch.guard import Unguardable, arguments_of, describe
from kernelforge_engine.dispatch.shim import LoadedCode
from kernelforge_engine.launch.resolve import buffer_sizes
from kernelforge_engine.plans import ResolvedArgument, ResolvedLaunch, ResolvedPlan

CACHE = Path.home() / ".cache" / "kernelforge"
HostKernel = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p))
EMPTY = ResolvedPlan(buffers=(), launches=())


def rand(*shape):
    return torch.randn(*shape)


def image(n):
    return torch.randn(n, 4, 6, 6)


# name -> inputs for a size, and the call
CASES = {
    "softmax": (lambda n: [rand(n, 8)], lambda x: x.softmax(-1)),
    "relu": (lambda n: [rand(n, 8)], torch.relu),
    "relu_": (lambda n: [rand(n, 8)], lambda x: x.relu_()),
    "add": (lambda n: [rand(n, 8), rand(n, 8)], lambda x, y: x + y),
    "add alpha": (lambda n: [rand(n, 8), rand(n, 8)], lambda x, y: torch.add(x, y, alpha=0.5)),
    "add float": (lambda n: [rand(n, 8)], lambda x: x + 1.5),
    "add int": (lambda n: [rand(n, 8)], lambda x: 2 + x),
    "add bool": (lambda n: [rand(n, 8)], lambda x: x + True),
    "add infinity": (lambda n: [rand(n, 8)], lambda x: x + float("-inf")),
    "add_": (lambda n: [rand(n, 8), rand(n, 8)], lambda x, y: x.add_(y)),
    "add out": (
        lambda n: [rand(n, 8), rand(n, 8), rand(n, 8)],
        lambda x, y, z: torch.add(x, y, out=z),
    ),
    "square_": (lambda n: [rand(n, 8)], lambda x: x.square_()),
    "linear": (lambda n: [rand(n, 8), rand(4, 8), rand(4)], F.linear),
    "linear no bias": (lambda n: [rand(n, 8), rand(4, 8)], F.linear),
    "conv2d": (lambda n: [image(n), rand(5, 4, 3, 3)], lambda x, w: F.conv2d(x, w, padding=1)),
    "layer_norm": (lambda n: [rand(n, 8), rand(8)], lambda x, w: F.layer_norm(x, (8,), w)),
    "group_norm": (lambda n: [image(n)], lambda x: F.group_norm(x, 2, eps=1e-6)),
    "rms_norm": (lambda n: [rand(n, 8)], lambda x: F.rms_norm(x, (8,))),
    "sdpa": (
        lambda n: [rand(n, 2, 5, 8)],
        lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True),
    ),
    "gelu tanh": (lambda n: [rand(n, 8)], lambda x: F.gelu(x, approximate="tanh")),
    "cat": (lambda n: [rand(n, 8), rand(n, 3)], lambda x, y: torch.cat([x, y, x], 1)),
    "stack": (lambda n: [rand(n, 8), rand(n, 8)], lambda x, y: torch.stack([x, y])),
    "mean": (lambda n: [rand(n, 8)], lambda x: x.mean(-1, keepdim=True)),
    "embedding": (lambda n: [torch.arange(n), rand(9, 4)], F.embedding),
    "interpolate": (lambda n: [image(n)], lambda x: F.interpolate(x, scale_factor=2.0)),
    "matmul": (lambda n: [rand(n, 3, 8), rand(8, 5)], torch.matmul),
    "einsum": (lambda n: [rand(n, 8), rand(4, 8)], lambda x, y: torch.einsum("ij,kj->ik", x, y)),
    "index": (lambda n: [rand(n, 8), torch.tensor([0, 1])], lambda x, i: x[i]),
    "index none": (lambda n: [rand(n, 8), torch.tensor([0, 1])], lambda x, i: x[:, i]),
    "batch_norm": (lambda n: [image(n), torch.zeros(4), torch.ones(4)], F.batch_norm),
    "where": (lambda n: [rand(n, 8) > 0, rand(n, 8), rand(n, 8)], torch.where),
    "masked_fill": (lambda n: [rand(n, 8), rand(n, 8) > 0], lambda x, m: x.masked_fill(m, -1e9)),
    "pow": (lambda n: [rand(n, 8)], lambda x: x.pow(2)),
    "to": (lambda n: [rand(n, 8)], lambda x: x.to(torch.bfloat16)),
    "clone": (lambda n: [image(n)], lambda x: x.clone(memory_format=torch.channels_last)),
    "contiguous": (lambda n: [rand(8, n).t()], lambda x: x.contiguous()),
    "clamp": (lambda n: [rand(n, 8)], lambda x: x.clamp(max=0.5)),
    "sum": (lambda n: [rand(n, 8)], lambda x: x.sum(0, dtype=torch.float64)),
    "max dim": (lambda n: [rand(n, 8)], lambda x: x.max(1)),
    "topk": (lambda n: [rand(n, 8)], lambda x: x.topk(3)),
    "foreach": (lambda n: [rand(n, 8), rand(3)], lambda x, y: torch._foreach_mul([x, y], 2.0)),
    "channels last": (lambda n: [image(n).to(memory_format=torch.channels_last)], F.silu),
    "channels last conv": (
        lambda n: [image(n).to(memory_format=torch.channels_last), rand(5, 4, 3, 3)],
        F.conv2d,
    ),
    "expanded": (lambda n: [rand(n, 8), rand(8).expand(n, 8)], lambda x, y: x * y),
    "misaligned": (lambda n: [rand(n * 8 + 1)[1:].view(n, 8)], torch.tanh),
    "bfloat16": (lambda n: [rand(n, 8).bfloat16()], lambda x: x * x),
    "scalar tensor": (lambda n: [rand(n, 8), torch.tensor(2.0)], lambda x, y: x * y),
    "no elements": (lambda n: [rand(n, 0)], torch.relu),
}  # fmt: skip


@dataclass
class Recorded:
    """One dispatched call; `data` holds the bytes of its outputs as they were when it returned."""

    op: object
    call: Call | Unguardable
    before: list
    kwargs: dict
    out: object
    data: list[bytes]


class Recorder(TorchDispatchMode):
    """Describes every operator at the level the shim sees, as the capture does."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        before = [clones([a])[0] if isinstance(a, torch.Tensor) else a for a in args]
        out, data = op(*args, **kwargs), []
        try:
            call = describe(op, args, kwargs, out)
            data = [
                ctypes.string_at(o.data_ptr(), spec.tensor.extent_bytes) if o.numel() else b""
                for o, spec in zip(flat(out), call.outputs, strict=True)
            ]
        except Unguardable as refusal:
            call = refusal
        self.calls.append(Recorded(op, call, before, kwargs, out, data))
        return out


def flat(out):
    return [out] if isinstance(out, torch.Tensor) else list(out)


def recorded(function, inputs):
    """Every operator call that `function` makes."""
    recorder = Recorder()
    with torch.no_grad():
        guard = torch._C._AutoDispatchBelowAutograd()
        try:
            with recorder:
                function(*inputs)
        finally:
            del guard
    return recorder.calls


def record(function, inputs):
    """The operator call that `function` ends with."""
    last = recorded(function, inputs)[-1]
    if isinstance(last.call, Unguardable):
        raise last.call
    return last


def copying(call: Call, *runs: list[bytes]):
    """A plan and code that write recorded outputs, one run after the other: whatever hits must then
    equal the record."""
    buffers = buffer_sizes(call)
    fresh = {b.index: i for i, b in enumerate(buffers) if b.role == "output"}
    written = [
        fresh[i] if spec.alias is None else spec.alias for i, spec in enumerate(call.outputs)
    ]
    turns = itertools.cycle(runs)

    def copy(args):
        for i, data in enumerate(next(turns)):
            target = ctypes.cast(args[i], ctypes.POINTER(ctypes.c_void_p))[0]
            ctypes.memmove(target, data, len(data))

    function = HostKernel(copy)
    launch = ResolvedLaunch(
        kernel="copy",
        args=tuple(ResolvedArgument(kind="buffer", value=i) for i in written),
        grid=(1, 1, 1),
        block=(1, 1, 1),
        shared=0,
    )
    plan = ResolvedPlan(buffers=tuple(buffers), launches=(launch,))
    address = ctypes.cast(function, ctypes.c_void_p).value
    return plan, LoadedCode(functions={"0": {0: address}}), function


def clones(inputs):
    """Copies with the same strides, offsets from alignment and flags."""
    copies = []
    for t in inputs:
        room = t.untyped_storage().nbytes() // t.element_size()
        base = torch.empty(room, dtype=t.dtype)
        base.copy_(t.as_strided((room,), (1,), 0))
        copies.append(base.as_strided(t.size(), t.stride(), t.storage_offset()))
    return copies


@pytest.fixture(scope="module", params=["native", "python"])
def loaded(request):
    return shim_module.load(CACHE) if request.param == "native" else shim_module.interpreted()


@pytest.fixture
def shim(loaded):
    yield loaded
    loaded.remove_all()


@pytest.mark.parametrize("name", CASES)
def test_operator_hits_what_was_recorded_and_nothing_else(shim, name):
    torch.manual_seed(0)
    make, function = CASES[name]
    inputs = make(2)
    last = record(function, clones(inputs))
    call, outputs = last.call, flat(last.out)
    assert codec.loads(Call, codec.dumps(call)) == call
    plan, code, _keep = copying(call, last.data)
    other_inputs = make(3)
    with torch.no_grad():
        expected = flat(function(*clones(other_inputs)))
    handle = shim.add(call, plan, code)
    for count, context in enumerate([torch.no_grad, torch.inference_mode, torch.enable_grad]):
        arguments = clones(inputs)
        with context():
            found = flat(function(*arguments))
        assert shim.hits(handle) == count + 1
        for tensor, spec, saved in zip(found, call.outputs, outputs, strict=True):
            assert tensor.dtype == saved.dtype
            assert tensor.stride() == spec.tensor.stride
            assert torch.equal(tensor, saved)
            if spec.alias is not None:
                assert any(tensor is a for a in arguments)
    missed = flat(function(*clones(other_inputs)))
    assert shim.hits(handle) == 3
    assert all(map(torch.equal, missed, expected))


@pytest.mark.parametrize("name", CASES)
def test_call_can_be_repeated_from_its_record(name):
    make, function = CASES[name]
    last = record(function, make(2))
    op, positional, keyword = arguments_of(last.call, tensors_of(last))
    assert op is last.op
    with torch.no_grad():
        repeated = op(*positional, **keyword)
    assert all(map(torch.equal, flat(repeated), flat(last.out)))
    assert describe(op, positional, keyword, repeated).words == last.call.words


def tensors_of(last):
    names = [a.name for a in last.op._schema.arguments]
    values = [*last.before, *(last.kwargs[n] for n in names if n in last.kwargs)]
    leaves = torch.utils._pytree.tree_leaves(values)
    return [t for t in leaves if isinstance(t, torch.Tensor)]


def vision():
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(inplace=True),
        torch.nn.MaxPool2d(2), torch.nn.GroupNorm(2, 8), torch.nn.SiLU(),
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 4),
    )  # fmt: skip


MODELS = {
    "vision": (vision, lambda: torch.randn(2, 3, 8, 8)),
    "vision channels last": (
        vision,
        lambda: torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last),
    ),
    "transformer": (
        lambda: torch.nn.TransformerEncoder(
            torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2
        ),
        lambda: torch.randn(2, 5, 16),
    ),
    "decoder": (lambda: torch.nn.TransformerDecoderLayer(16, 2, 32), lambda: torch.randn(5, 2, 16)),
    "lstm": (lambda: torch.nn.LSTM(8, 16, 2, bidirectional=True), lambda: torch.randn(5, 2, 8)),
}


@pytest.mark.parametrize("name", MODELS)
def test_model_replays_bit_for_bit_from_its_record(shim, name):
    """Stand-in kernels for every call of a model that can be guarded at all."""
    torch.manual_seed(0)
    make, inputs = MODELS[name]
    model, x = make().eval(), inputs()
    call = partial(model, x, x) if name == "decoder" else partial(model, x)
    runs = {}
    for one in recorded(call, []):
        if isinstance(one.call, Call):
            runs.setdefault((one.call.name, one.call.words), []).append(one)
    with torch.inference_mode():
        expected = torch.utils._pytree.tree_leaves(call())
    kept = [copying(ones[0].call, *(o.data for o in ones)) for ones in runs.values()]
    handles = {
        key: shim.add(ones[0].call, plan, code)
        for (key, ones), (plan, code, _) in zip(runs.items(), kept, strict=True)
    }
    with torch.inference_mode():
        found = torch.utils._pytree.tree_leaves(call())
    assert all(map(torch.equal, found, expected))
    assert {k: shim.hits(h) for k, h in handles.items()} == {k: len(v) for k, v in runs.items()}


def install(shim, function, *inputs):
    return shim.add(record(function, inputs).call, EMPTY)


def test_training_through_an_operator_with_its_own_derivative_hits(shim):
    x = rand(4, 8)
    last = record(torch.sigmoid, [x])
    plan, code, _keep = copying(last.call, last.data)
    handle = shim.add(last.call, plan, code)
    leaf = x.clone().requires_grad_()
    torch.sigmoid(leaf).sum().backward()
    assert shim.hits(handle) == 1
    assert torch.allclose(leaf.grad, last.out * (1 - last.out))


@pytest.mark.parametrize("name", ["relu_", "add_", "add out", "square_"])
@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_in_place_hit_counts_its_write_once(shim, name, context):
    make, function = CASES[name]
    inputs = make(2)
    handle = install(shim, function, *clones(inputs))
    arguments = clones(inputs)
    versions = [t._version for t in arguments]
    with context():
        result = function(*arguments)
    assert shim.hits(handle) == 1
    [written] = [i for i, t in enumerate(arguments) if t is result]
    expected = [v + (i == written) for i, v in enumerate(versions)]
    assert [t._version for t in arguments] == expected


def test_autocast_around_a_composite_operator_goes_to_eager(shim):
    x, y = rand(4, 8), rand(8, 5)
    handle = install(shim, lambda x, y: torch.tensordot(x, y, 1), x, y)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert torch.tensordot(x, y, 1).dtype == torch.bfloat16
        assert shim.hits(handle) == 0
        with pytest.raises(Unguardable, match="autocast"):
            record(lambda x, y: torch.tensordot(x, y, 1), [x, y])
        y = rand(5, 8)
        half = install(shim, F.linear, x, y)
        assert F.linear(x, y).dtype == torch.bfloat16
    assert shim.hits(half) == 1


def test_removing_restores_eager(shim):
    x, w = rand(4, 8), rand(3, 8)
    expected = F.linear(x, w)
    call = record(F.linear, [x, w]).call
    plan, code, _keep = copying(call, [struct.pack("f", 42.0) * 12])
    handle = shim.add(call, plan, code)
    newer = shim.add(call, EMPTY)
    with torch.no_grad():
        F.linear(x, w)
        assert (shim.hits(handle), shim.hits(newer)) == (0, 1)
        shim.remove(newer)
        assert F.linear(x, w)[0, 0] == 42
        shim.remove_all()
        assert torch.equal(F.linear(x, w), expected)
    assert (shim.hits(handle), shim.hits(newer)) == (1, 1)
    leaf = w.clone().requires_grad_()
    F.linear(x, leaf).sum().backward()
    assert leaf.grad is not None


def test_unknown_operators_and_missing_code_are_refused(shim):
    last = record(torch.relu, [rand(3)])
    call, (plan, _, _keep) = last.call, copying(last.call, last.data)
    with pytest.raises(errors.NotInstalled, match="not loaded"):
        shim.add(call, plan)
    strange = codec.load(Call, codec.dump(call) | {"operator": "nowhere::relu"})
    with pytest.raises(errors.NotInstalled, match="nowhere"):
        shim.add(strange, EMPTY)
    forged = codec.load(Call, codec.dump(call) | {"words": [1, 2]})
    with pytest.raises(errors.NotInstalled, match="guard words"):
        shim.add(forged, EMPTY)
    with pytest.raises(errors.NotInstalled):
        shim.host_code("/nonexistent.so", {"0": "f"})
