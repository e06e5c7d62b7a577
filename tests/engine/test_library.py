"""The library's kernels against an fp64 reference, scaled by eager's own error.

Every CPU offer is compiled and run; every CUDA offer is compiled, and run where there is a GPU.
"""

import ctypes
import math
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

import pytest
import torch

from kernelforge_engine.dispatch.guard import describe
from kernelforge_engine.launch.header import SourceRejected, parse_source
from kernelforge_engine.launch.resolve import resolve
from kernelforge_engine.library.catalog import offers

A = torch.ops.aten
FLOATS = (torch.float32, torch.bfloat16, torch.float16)
EXACT = {"relu", "relu_", "neg", "abs", "max_pool2d", "embedding", "to"}
RHO = {torch.float32: 10.0, torch.bfloat16: 1.25, torch.float16: 1.25}
MU = {torch.float32: 16.0, torch.bfloat16: 2.0, torch.float16: 2.0}
LAST = torch.channels_last


@dataclass(frozen=True)
class Case:
    """An operator and the arguments of a call; a `Data` becomes a tensor of each draw."""

    op: object
    args: tuple
    dtypes: tuple = FLOATS
    length: int = 1  # of its reductions
    keywords: tuple = ()

    def run(self, args):
        return self.op(*args, **dict(self.keywords))

    def __str__(self):
        shapes = ["x".join(map(str, a.shape)) for a in self.args if isinstance(a, Data)]
        return f"{self.op._schema.name.removeprefix('aten::')}-{'-'.join(shapes)}"


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


def _norm(n, c, *hw, groups):
    args = (data(n, c, *hw), groups, weight(c), weight(c), 1e-5, True)
    return Case(A.group_norm.default, args, length=c // groups * math.prod(hw))


def _batch(x, *, affine=True, dtype=None):
    c = x.shape[1]
    w = weight(c, dtype=dtype) if affine else None
    var = Data((c,), "variance", dtype=dtype)
    stats = (weight(c, dtype=dtype), var, False, 0.1, 1e-5, True)
    return Case(A.batch_norm.default, (x, w, w, *stats))


def _rows(*shape, axes=1, weighted=True, eps=1e-5):
    inner = list(shape[-axes:])
    w = Data(tuple(inner), "weight") if weighted else None
    args = (data(*shape), inner, w, w, eps)
    return Case(A.layer_norm.default, args, length=math.prod(inner))


def _rms(*shape, weighted=True, eps=1e-6):
    w = weight(shape[-1]) if weighted else None
    return Case(A.rms_norm.default, (data(*shape), [shape[-1]], w, eps), length=shape[-1])


UNARY = [
    A.relu.default, A.relu_.default, A.gelu.default, A.silu.default, A.silu_.default,
    A.sigmoid.default, A.tanh.default, A.neg.default, A.exp.default, A.rsqrt.default,
    A.abs.default, A.hardswish.default, A.hardswish_.default, A.sqrt.default, A.relu6.default,
    A.hardsigmoid.default, A.reciprocal.default,
]  # fmt: skip
CASES = [
    *[Case(op, (data(3, 777),)) for op in UNARY],
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
        Case(A.softmax.int, (data(*s), -1), length=s[-1])
        for s in ((3, 5, 32), (2, 37), (4, 1), (3, 1000), (2, 5000), (1, 50001), (7, 17))
    ],
    Case(A.softmax.int, (data(3, 40), 1, torch.float32), (torch.bfloat16,), 40),
    _rows(8, 32, 384, eps=1e-12), _rows(3, 37), _rows(2, 1), _rows(5, 1536),
    _rows(2, 3, 8, 16, axes=2), _rows(4, 640, weighted=False), _rows(2, 4001),
    _rms(3, 7, 64), _rms(5, 1536, eps=None), _rms(3, 130, weighted=False), _rms(2, 9),
    _norm(2, 8, 7, 5, groups=4), _norm(1, 32, 16, 16, groups=32), _norm(2, 6, 64, groups=2),
    _norm(1, 8, 96, 128, groups=2), _norm(3, 4, groups=2), _norm(1, 4, 65, 129, groups=1),
    _batch(data(4, 6, 7, 7)), _batch(data(2, 4, 32, 32)), _batch(data(5, 6)),
    _batch(data(2, 3, 56, 56), affine=False), _batch(last(2, 24, 5, 7)), _batch(last(2, 5, 3, 3)),
    _batch(data(2, 4, 24, 24), dtype=torch.float32),
    *[
        Case(A.max_pool2d.default, (x, [3, 3], [2, 2], [1, 1]))
        for x in (data(2, 3, 13, 17), last(2, 24, 12, 9), last(1, 5, 8, 8), data(3, 9, 40))
    ],
    Case(A.max_pool2d.default, (data(2, 3, 16, 11), [2, 3], [], 0, 1, True)),
    Case(A.max_pool2d.default, (data(1, 2, 17, 19), [3, 2], [1, 3], [1, 0], [2, 1])),
    *[
        Case(A.avg_pool2d.default, (x, [3, 2], [2, 2], [1, 1], True, include, divisor), length=6)
        for x, include, divisor in (
            (data(2, 3, 13, 16), True, None), (last(2, 24, 9, 12), False, None),
            (data(1, 2, 8, 9), False, None), (last(1, 3, 8, 9), True, 5),
        )
    ],
    *[
        Case(A.adaptive_avg_pool2d.default, (x, [1, 1]), length=x.shape[2] * x.shape[3])
        for x in (data(2, 5, 7, 7), last(2, 40, 7, 7), data(1, 3, 64, 96))
    ],
    Case(A.mean.dim, (data(3, 5, 64), [-1], True), length=64),
    Case(A.embedding.default, (data(50, 24), Data((3, 7), "index", bound=50))),
    Case(A.embedding.default, (data(9, 5), Data((4, 6), "index", "expanded", bound=9)), FLOATS[:2]),
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
    return made.contiguous(memory_format=LAST) if spec.layout == "channels_last" else made


def _shaped(x, draw, g):
    match draw:
        case "shifted":
            return x + 10
        case "heavy":
            return (1.5 * x).exp() * torch.randn(x.shape, generator=g).sign()
        case "rows":
            scale = torch.rand(x.shape[:-1] + (1,), generator=g) * 24 - 12
            return x * torch.exp2(scale)
        case "wide":
            return torch.rand(x.shape, generator=g, dtype=torch.float64) * 18 - 9
        case "special":
            at = torch.rand(x.shape, generator=g)
            values = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0], dtype=torch.float64)
            chosen = values[torch.randint(0, 5, x.shape, generator=g)]
            return torch.where(at < 0.01, chosen, x)
    return x


def _arguments(case, dtype, draw, device="cpu"):
    return [
        _draw(a, dtype, draw, 17 * i + 1, device) if isinstance(a, Data) else a
        for i, a in enumerate(case.args)
    ]


def _cloned(args):
    return [a.clone() if isinstance(a, torch.Tensor) else a for a in args]


def _upcast(args):
    wide = [
        a.double() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in args
    ]
    return [torch.float64 if isinstance(a, torch.dtype) else a for a in wide]


def _recorded(case, args):
    with torch.inference_mode():
        copies = _cloned(args)
        return describe(case.op, copies, dict(case.keywords), case.run(copies))


PAIRS = [(case, dtype) for case in CASES for dtype in case.dtypes]


def _ulp(r, dtype):
    """The spacing of the output's dtype at |r|, floored at the smallest normal's."""
    info = torch.finfo(dtype)
    exponent = torch.floor(torch.log2(r.abs().clamp(min=info.tiny)))
    return torch.exp2(exponent) * info.eps


def _rms(x):
    return x.square().mean().sqrt() if x.numel() else torch.zeros(())


def check(got, eager, reference, case):
    """None, or the rule that `got` breaks: class masks, exactness, energy, worst element."""
    dtype, name = got.dtype, case.op._schema.name.removeprefix("aten::")
    classes = [torch.stack([t.isnan(), t == math.inf, t == -math.inf]) for t in
               (got, eager, reference.to(dtype))]  # fmt: skip
    if not ((classes[0] == classes[1]).all(0) | (classes[0] == classes[2]).all(0)).all():
        return "P1: NaN or infinity where eager and fp64 have none, or the other way round"
    if name in EXACT:
        same = (got == eager) | (got.isnan() & eager.isnan())
        return None if same.all() else "P2: not bit-exact"
    finite = got.isfinite() & eager.isfinite() & reference.isfinite()
    c, e, r = (t.double().flatten()[finite.flatten()] for t in (got, eager, reference))
    for start in range(0, max(1, c.numel()), size := max(256, c.numel() // 256)):
        part = slice(start, start + size)
        if broken := _block(c[part], e[part], r[part], dtype, case.length, e - r):
            return broken
    return None


def _block(c, e, r, dtype, length, eager_error):
    if not c.numel():
        return None
    ulp, noise = _ulp(r, dtype), 0.5 * math.sqrt(length) * 2.0**-24
    dc, de = c - r, e - r
    floor = 0.1 * _rms(eager_error)  # a block in which eager happens to be exact says nothing
    energy = max(RHO[dtype] * 1.5 * _rms(de), RHO[dtype] * 1.5 * _rms(ulp) / math.sqrt(12),
                 noise * _rms(r), floor)  # fmt: skip
    if _rms(dc) > energy:
        return f"T1: rms error {_rms(dc):.3g} above {energy:.3g}, eager's is {_rms(de):.3g}"
    bound = MU[dtype] * de.abs().max() + ulp + 4 * noise * r.abs()
    if (dc.abs() > bound).any():
        worst = (dc.abs() - bound).argmax()
        return f"T2: {c[worst]:.9g} for {r[worst]:.9g}, eager has {e[worst]:.9g}"
    return None


C_TYPES = {
    "buffer": ctypes.c_void_p, "i32": ctypes.c_int32, "i64": ctypes.c_int64,
    "f32": ctypes.c_float, "f64": ctypes.c_double,
}  # fmt: skip


def _buffers(plan, inputs, output):
    """A buffer for each of a plan's: the inputs, a poisoned output, poisoned or zeroed scratch."""
    made = list(inputs)
    for buffer in plan.buffers[len(inputs) :]:
        if buffer.role == "output":
            made.append(output)
        else:
            fill = 0 if buffer.zero else 0xFF
            made.append(torch.full((buffer.bytes,), fill, dtype=torch.uint8, device=output.device))
    return made


def _poisoned(spec, device):
    out = torch.empty(0, dtype=getattr(torch, spec.dtype), device=device)
    size = torch.Size(spec.shape)
    return out.new_empty_strided(size, spec.stride).fill_(math.nan)


def _arguments_in_c(launch, buffers):
    return [
        C_TYPES[a.kind](buffers[a.value].data_ptr() if a.kind == "buffer" else a.value)
        for a in launch.args
    ]


@pytest.fixture(scope="module")
def cpu(tmp_path_factory):
    """Every CPU offer of every case, compiled once for each distinct text: text -> library."""
    folder, texts = tmp_path_factory.mktemp("cpu"), {}
    for case, dtype in PAIRS:
        call = _recorded(case, _arguments(case, dtype, "normal"))
        texts.update((o.text, len(texts)) for o in offers(call) if o.text not in texts)

    def build(item):
        text, number = item
        source = folder / f"{number}.cpp"
        source.write_text(text)
        _gxx(source)
        return text, ctypes.CDLL(source.with_suffix(".so"))

    with ThreadPoolExecutor(2) as workers:
        return dict(workers.map(build, texts.items()))


def _gxx(source):
    # Linked without OpenMP: its symbols are found in the runtime that torch has loaded.
    flags = ["-std=c++20", "-O3", "-march=native", "-fopenmp", "-fPIC", "-Wall", "-Werror"]
    product = source.with_suffix(".o")
    subprocess.run(["g++", *flags, "-c", source, "-o", product], check=True)
    subprocess.run(["g++", "-shared", product, "-o", source.with_suffix(".so")], check=True)


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
@pytest.mark.parametrize(("case", "dtype"), PAIRS, ids=str)
def test_cpu_offers_agree_with_fp64(case, dtype, cpu):
    call = _recorded(case, _arguments(case, dtype, "normal"))
    found = offers(call)
    assert found
    for draw in DRAWS:
        args = _arguments(case, dtype, draw)
        with torch.inference_mode():
            eager, reference = case.run(_cloned(args)), case.run(_cloned(_upcast(args)))
        for offer in found:
            got = _run_cpu(offer, call, _cloned(args), cpu[offer.text])
            assert check(got, eager, reference, case) is None, (draw, offer.name)


def _run_cpu(offer, call, args, library):
    inputs = [a for a in args if isinstance(a, torch.Tensor)]
    plan = resolve(parse_source(offer.text, "cpu").plan, call)
    spec, alias = call.outputs[0].tensor, call.outputs[0].alias
    output = _poisoned(spec, "cpu") if alias is None else inputs[alias]
    buffers = _buffers(plan, inputs, output)
    for launch in plan.launches:
        getattr(library, launch.kernel)(*_arguments_in_c(launch, buffers))
    return output
