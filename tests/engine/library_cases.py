"""Calls, draws and judgement shared by the library's tests, which load this file by its path."""

import math
from dataclasses import dataclass, replace

import torch

from kernelforge_engine.builder import contract
from kernelforge_engine.dispatch.guard import describe
from kernelforge_engine.launch.header import parse_source
from kernelforge_engine.launch.resolve import resolve
from kernelforge_engine.library.catalog import offers
from kernelforge_engine.pool.protocol import Slot
from kernelforge_engine.runner.executor import Binding
from kernelforge_engine.worker import rules
from kernelforge_engine.worker.reference import expect, reduction_length
from kernelforge_engine.worker.tensors import copied

A = torch.ops.aten
FLOATS = (torch.float32, torch.bfloat16, torch.float16)
EXACT = {"clone", "relu", "relu_", "neg", "abs", "max_pool2d", "embedding", "to"}
LAST = torch.channels_last


@dataclass(frozen=True)
class Case:
    """An operator and the arguments of a call; a `Data` becomes a tensor of each draw."""

    op: object
    args: tuple
    dtypes: tuple = FLOATS
    keywords: tuple = ()

    @property
    def name(self):
        return self.op._schema.name.removeprefix("aten::")

    def __str__(self):
        shapes = ["x".join(map(str, a.shape)) for a in self.args if isinstance(a, Data)]
        return f"{self.name}-{'-'.join(shapes)}"


@dataclass(frozen=True)
class Data:
    """A tensor argument: `role` is data, weight, variance, or index of a table of `bound` rows."""

    shape: tuple
    role: str = "data"
    layout: str = "dense"
    bound: int = 0
    dtype: torch.dtype | None = None


def data(*shape, **more):
    return Data(shape, **more)


def weight(n, **more):
    return Data((n,), "weight", **more)


def last(*shape):
    return Data(shape, layout="channels_last")


def offset(*shape):
    """A tensor that begins one element behind an aligned address."""
    return Data(shape, layout="offset")


def norm(n, c, *hw, groups):
    args = (data(n, c, *hw), groups, weight(c), weight(c), 1e-5, True)
    return Case(A.group_norm.default, args)


def batch(x, *, affine=True, dtype=None):
    c = x.shape[1]
    w = weight(c, dtype=dtype) if affine else None
    var = Data((c,), "variance", dtype=dtype)
    stats = (weight(c, dtype=dtype), var, False, 0.1, 1e-5, True)
    return Case(A.batch_norm.default, (x, w, w, *stats))


def rows(*shape, axes=1, weighted=True, eps=1e-5):
    inner = list(shape[-axes:])
    w = Data(tuple(inner), "weight") if weighted else None
    args = (data(*shape), inner, w, w, eps)
    return Case(A.layer_norm.default, args)


def rms(*shape, weighted=True, eps=1e-6):
    w = weight(shape[-1]) if weighted else None
    return Case(A.rms_norm.default, (data(*shape), [shape[-1]], w, eps))


UNARY = [
    A.relu.default, A.relu_.default, A.gelu.default, A.silu.default, A.silu_.default,
    A.sigmoid.default, A.tanh.default, A.neg.default, A.exp.default, A.rsqrt.default,
    A.abs.default, A.hardswish.default, A.hardswish_.default, A.sqrt.default, A.relu6.default,
    A.hardsigmoid.default, A.reciprocal.default, A.clone.default,
]  # fmt: skip
CASES = [
    *[Case(op, (data(3, 777),), FLOATS[: 3 if op in UNARY[:6] else 2]) for op in UNARY],
    *[Case(op, (last(2, 5, 7, 3),)) for op in (A.relu.default, A.silu_.default)],
    *[Case(A.gelu.default, (data(*s),), (torch.float32,)) for s in ((8, 32, 384), (1,), (20000,))],
    Case(A.gelu.default, (data(999),), keywords=(("approximate", "tanh"),)),
    Case(A.leaky_relu.default, (data(130), 0.2)),
    Case(A.hardtanh.default, (data(130), -0.5, 2.0)),
    Case(A.pow.Tensor_Scalar, (data(7, 33), 2)),
    Case(A.rsub.Scalar, (data(7, 33), 1.5, 2)),
    Case(A.to.dtype, (data(7, 33), torch.float32), (torch.bfloat16, torch.float16)),
    Case(A.to.dtype, (data(7, 33), torch.bfloat16), (torch.float32,)),
    *[
        Case(op, (data(5, 131), data(5, 131)))
        for op in (A.add.Tensor, A.add_.Tensor, A.sub.Tensor, A.mul.Tensor, A.div.Tensor)
    ],
    Case(A.add.Tensor, (data(8, 32, 384), data(8, 32, 384)), (torch.float32,)),
    Case(A.mul_.Tensor, (last(2, 3, 5, 7), last(2, 3, 5, 7))),
    *[Case(op, (data(9, 40), 0.75)) for op in (A.add.Tensor, A.mul_.Tensor, A.div.Tensor)],
    Case(A.add.Tensor, (data(2, 33, 64), data(1, 33, 64))),
    Case(A.mul.Tensor, (data(2, 3, 40, 24), data(2, 3, 40, 1))),
    Case(A.sub.Tensor, (data(2, 1, 37), data(2, 9, 37))),
    Case(A.mul.Tensor, (data(2, 6, 5, 7), data(6, 1, 1))),
    Case(A.div.Tensor, (data(3, 50), data(1))),
    Case(A.add_.Tensor, (data(4, 9, 24), data(24))),
    *[
        Case(A.softmax.int, (data(*s), -1))
        for s in ((3, 5, 32), (2, 37), (4, 1), (3, 1000), (2, 5000), (1, 50001), (7, 17))
    ],
    Case(A.softmax.int, (data(3, 40), 1, torch.float32), (torch.bfloat16,)),
    rows(5, 1536), rows(8, 32, 384, eps=1e-12), rows(3, 37), rows(2, 1),
    rows(2, 3, 8, 16, axes=2), rows(4, 640, weighted=False), rows(2, 4001),
    rms(3, 7, 64), rms(5, 1536, eps=None), rms(3, 130, weighted=False), rms(2, 9),
    norm(2, 8, 7, 5, groups=4), norm(1, 32, 16, 16, groups=32), norm(2, 6, 64, groups=2),
    norm(1, 8, 96, 128, groups=2), norm(3, 4, groups=2), norm(1, 4, 65, 129, groups=1),
    batch(data(4, 6, 7, 7)), batch(data(2, 4, 32, 32)), batch(data(5, 6)),
    batch(data(2, 3, 56, 56), affine=False), batch(last(2, 24, 5, 7)), batch(last(2, 5, 3, 3)),
    batch(data(2, 4, 24, 24), dtype=torch.float32),
    *[
        Case(A.max_pool2d.default, (x, [3, 3], [2, 2], [1, 1]))
        for x in (data(2, 3, 13, 17), last(2, 24, 12, 9), last(1, 5, 8, 8), data(3, 9, 40))
    ],
    Case(A.max_pool2d.default, (data(2, 3, 16, 11), [2, 3], [], 0, 1, True)),
    Case(A.max_pool2d.default, (data(1, 2, 17, 19), [3, 2], [1, 3], [1, 0], [2, 1])),
    *[
        Case(A.avg_pool2d.default, (x, [3, 2], [2, 2], [1, 1], True, include, divisor))
        for x, include, divisor in (
            (data(2, 3, 13, 16), True, None), (last(2, 24, 9, 12), False, None),
            (data(1, 2, 8, 9), False, None), (last(1, 3, 8, 9), True, 5),
        )
    ],
    *[
        Case(A.adaptive_avg_pool2d.default, (x, [1, 1]))
        for x in (data(2, 5, 7, 7), last(2, 40, 7, 7), data(1, 3, 64, 96))
    ],
    Case(A.mean.dim, (data(3, 5, 64), [-1], True)),
    Case(A.embedding.default, (data(50, 24), Data((3, 7), "index", bound=50))),
    Case(A.embedding.default, (data(9, 5), Data((4, 6), "index", "expanded", bound=9)), FLOATS[:2]),
    Case(A.sigmoid.default, (offset(64, 33),)),
    Case(A.softmax.int, (offset(5, 64), -1)),
    Case(A.group_norm.default, (offset(2, 8, 16), 2)),
]  # fmt: skip
DRAWS = ("normal", "shifted", "heavy", "rows", "wide", "special")


def _draw(spec, dtype, draw, seed, device):
    g = torch.Generator().manual_seed(seed)
    if spec.role == "index":
        made = torch.randint(0, spec.bound, spec.shape, generator=g)
        if spec.layout == "expanded":
            made = made[:1].expand(spec.shape)
        return made.to(device)
    made = torch.randn(spec.shape, generator=g, dtype=torch.float64)
    if spec.role == "variance":
        made = made.abs() + 0.1
    elif spec.role == "weight":
        made = 1 + 0.5 * made
    else:
        made = _shaped(made, draw, g)
    made = made.to(spec.dtype or dtype).to(device)
    if spec.layout == "offset":
        return made.new_empty(made.numel() + 1)[1:].view(made.shape).copy_(made)
    return made.contiguous(memory_format=LAST) if spec.layout == "channels_last" else made


def _shaped(x, draw, g):
    match draw:
        case "shifted":
            return x + 10
        case "heavy":
            return (1.5 * x).exp() * torch.randn(x.shape, generator=g).sign()
        case "rows":
            scale = torch.rand((*x.shape[:-1], 1), generator=g) * 24 - 12
            return x * torch.exp2(scale)
        case "wide":
            return torch.rand(x.shape, generator=g, dtype=torch.float64) * 18 - 9
        case "special":
            at = torch.rand(x.shape, generator=g)
            values = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0], dtype=torch.float64)
            chosen = values[torch.randint(0, 5, x.shape, generator=g)]
            return torch.where(at < 0.01, chosen, x)
    return x


def arguments(case, dtype, draw, device="cpu"):
    return [
        _draw(a, dtype, draw, 17 * i + 1, device) if isinstance(a, Data) else a
        for i, a in enumerate(case.args)
    ]


def recorded(case, args):
    copies = [copied(a) if isinstance(a, torch.Tensor) else a for a in args]
    with torch.inference_mode():
        out = case.op(*copies, **dict(case.keywords))
        return describe(case.op, copies, dict(case.keywords), out)


def on_cuda(call):
    """The same call as it would be recorded on a GPU."""
    outputs = (replace(o, tensor=replace(o.tensor, device="cuda")) for o in call.outputs)
    inputs = (replace(t, device="cuda") for t in call.inputs)
    return replace(call, inputs=tuple(inputs), outputs=tuple(outputs))


PAIRS = [(case, dtype) for case in CASES for dtype in case.dtypes]


@dataclass(frozen=True)
class Candidate:
    """An offer for a call with its plan, as the engine would build and launch it."""

    offer: object
    call: object

    @property
    def plan(self):
        return resolve(parse_source(self.offer.text, self.offer.backend).plan, self.call)

    @property
    def launches(self):
        return tuple((e.kernel, tuple(a.kind for a in e.args)) for e in self.plan.launches)

    def built(self, compiler, folder, arch):
        folder.mkdir()
        unit = contract.unit(self.offer.text, self.launches, self.offer.backend, arch)
        made = compiler.compile(unit, folder)
        assert made.product, made.log
        assert "warning" not in made.log, made.log
        return folder / made.product, made.symbols

    def tensors(self, inputs):
        """A tensor for each buffer: outputs and scratch are poisoned where they are not zeroed."""
        spec, device = self.call.outputs[0].tensor, inputs[0].device
        made = list(inputs)
        for buffer in self.plan.buffers[len(inputs) :]:
            if buffer.role == "output":
                like = torch.empty(0, dtype=getattr(torch, spec.dtype), device=device)
                made.append(like.new_empty_strided(spec.shape, spec.stride).fill_(math.nan))
            else:
                fill = 0 if buffer.zero else 0xFF
                made.append(torch.full((buffer.bytes,), fill, dtype=torch.uint8, device=device))
        return made

    def run(self, inputs, enqueue):
        """What the launches leave in the output, after `enqueue` was given their arguments."""
        buffers = self.tensors([copied(t) for t in inputs])
        slots = tuple(
            Slot(offset=t.data_ptr(), bytes=b.bytes)
            for t, b in zip(buffers, self.plan.buffers, strict=True)
        )
        enqueue(Binding(self.plan, slots, 0))
        alias = self.call.outputs[0].alias
        return buffers[len(inputs) if alias is None else alias]


def judged(candidate, case, dtype, enqueue, *, draws=DRAWS, device="cpu"):
    """Every draw of a case through one candidate."""
    for draw in draws:
        args = arguments(case, dtype, draw, device)
        inputs = [a for a in args if isinstance(a, torch.Tensor)]
        expected = expect(candidate.call, inputs)
        found = candidate.run(inputs, enqueue)
        terms, exact = reduction_length(candidate.call), case.name in EXACT
        finding = rules.judge([found], expected, terms, exact)
        assert finding is None, (candidate.offer.name, draw, finding)


def candidates(pairs, *, cuda):
    for case, dtype in pairs:
        call = recorded(case, arguments(case, dtype, "normal"))
        call = on_cuda(call) if cuda else call
        for offer in offers(call):
            yield case, dtype, Candidate(offer, call)


def first_of_each(candidates, key):
    """One candidate for each value of `key`."""
    found = {}
    for entry in candidates:
        found.setdefault(key(*entry), entry)
    return list(found.values())


def source(_case, _dtype, candidate):
    return candidate.offer.text
