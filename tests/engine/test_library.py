"""What the library offers, and its CPU kernels against an fp64 reference by the engine's rules."""

import ctypes
import shutil
from concurrent.futures import ThreadPoolExecutor

import library_cases as lib
import pytest
import torch

from kernelforge_engine.builder import gxx
from kernelforge_engine.launch.header import SourceRejected, parse_source
from kernelforge_engine.launch.resolve import resolve
from kernelforge_engine.library.catalog import offers


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """The shared object of every distinct CPU source."""
    folder, compiler = tmp_path_factory.mktemp("cpu"), gxx.find("native")
    distinct = lib.first_of_each(lib.candidates(lib.PAIRS, cuda=False), lib.source)

    def built(item):
        number, (_, _, candidate) = item
        path, _ = candidate.built(compiler, folder / str(number), "native")
        return candidate.offer.text, ctypes.CDLL(path)

    with ThreadPoolExecutor(2) as workers:
        return dict(workers.map(built, enumerate(distinct)))


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
@pytest.mark.parametrize(("case", "dtype"), lib.PAIRS, ids=str)
def test_cpu_kernels_agree_with_fp64(case, dtype, libraries):
    found = list(lib.candidates([(case, dtype)], cuda=False))
    assert found
    for _, _, candidate in found:
        library = libraries[candidate.offer.text]

        def enqueue(binding, library=library):
            for i, values in enumerate(binding.launches):
                getattr(library, f"kf_launch_{i}")(values)

        lib.judged(candidate, case, dtype, enqueue)


def test_offers_have_distinct_names_and_ideas():
    for case, dtype in lib.PAIRS:
        call = lib.recorded(case, lib.arguments(case, dtype, "normal"))
        for each in (call, lib.on_cuda(call)):
            names = [o.name for o in offers(each)]
            assert len(set(names)) == len(names)
            assert all(o.idea and o.backend == each.backend for o in offers(each))


def _calls_without_an_offer():
    x, y = torch.randn(4, 6), torch.randn(6, 4)
    long, empty = torch.arange(6), torch.empty(0, 6)
    yield lib.A.relu.default, (x[:, ::2],)
    yield lib.A.relu.default, (empty,)
    yield lib.A.relu.default, (x.double(),)
    yield lib.A.add.Tensor, (x, y.t())
    yield lib.A.add.Tensor, (x, x.bfloat16())
    yield lib.A.add.Tensor, (long, long)
    yield lib.A.softmax.int, (x, 0)
    yield lib.A.softmax.int, (y.t(), -1)
    yield lib.A.layer_norm.default, (y.t(), [6])
    yield lib.A.pow.Tensor_Scalar, (x, 2.5)
    yield lib.A.batch_norm.default, (x, None, None, None, None, True, 0.1, 1e-5, True)
    yield lib.A.adaptive_avg_pool2d.default, (torch.randn(1, 2, 6, 6), [2, 2])
    yield lib.A.group_norm.default, (torch.randn(2, 4, 6, 5).to(memory_format=lib.LAST), 2)
    yield lib.A.mm.default, (x, y)


def _shown(value):
    """A name without the values of tensors, which are others in every process that collects."""
    if not isinstance(value, tuple):
        return str(value)
    return "-".join(str(list(a.shape)) if isinstance(a, torch.Tensor) else str(a) for a in value)


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize(("op", "args"), [*_calls_without_an_offer()], ids=_shown)
def test_nothing_is_offered_where_layouts_or_dtypes_do_not_fit(op, args, on):
    call = lib.recorded(lib.Case(op, ()), args)
    assert offers(lib.on_cuda(call) if on == "cuda" else call) == ()


def test_a_plan_refuses_rows_that_its_kernel_was_not_rendered_for():
    def call(cols):
        return lib.on_cuda(
            lib.recorded(lib.Case(lib.A.softmax.int, ()), (torch.randn(3, cols), -1))
        )

    warp = next(o for o in offers(call(64)) if o.name == "softmax_warp")
    plan = parse_source(warp.text, "cuda").plan
    assert resolve(plan, call(96)).launches
    for cols in (63, 4096):
        with pytest.raises(SourceRejected):
            resolve(plan, call(cols))
