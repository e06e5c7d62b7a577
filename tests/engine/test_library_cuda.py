"""The library's CUDA kernels: compiled where there is a compiler, run on the CPU through a small
emulation of blocks and warps, and on a GPU where there is one."""

import ctypes
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import library_cases as lib
import pytest
import torch

from kernelforge_engine.builder import nvcc, nvrtc, toolkit
from kernelforge_engine.library.catalog import offers
from kernelforge_engine.library.render import KERNELS
from kernelforge_engine.pool.protocol import Load
from kernelforge_engine.records import Artifact
from kernelforge_engine.runner.driver import Driver
from kernelforge_engine.runner.kernels import Kernels


def _kernels(case, dtype, candidate):
    return dtype, tuple(e.kernel for e in candidate.plan.launches)


def _build_cuda(candidate, folder, arch="sm_90"):
    compiler = nvrtc.find() or nvcc.find()
    return candidate.built(compiler, folder, arch)


NO_COMPILER = not (toolkit.nvrtc() or toolkit.nvcc())


def _representatives():
    """Every kernel with bfloat16, and one of them with the other dtypes."""
    large = (lib.norm(1, 6, 64, 512, groups=3), torch.bfloat16)
    found = lib.first_of_each(lib.candidates([large, *lib.PAIRS], cuda=True), _kernels)
    return [e for e in found if e[1] == torch.bfloat16 or _kernels(*e)[1] == ("unary",)]


@pytest.mark.skipif(NO_COMPILER, reason="needs NVRTC or nvcc")
def test_cuda_kernels_compile(tmp_path):
    chosen = _representatives()
    if toolkit.nvrtc():  # fast enough for every distinct source
        chosen = lib.first_of_each(lib.candidates(lib.PAIRS, cuda=True), lib.source)
    with ThreadPoolExecutor(2) as workers:
        folders = (tmp_path / str(i) for i in range(len(chosen)))
        products = workers.map(_build_cuda, (c for _, _, c in chosen), folders)
        assert all(path.stat().st_size for path, _ in products)


EMULATOR = Path(__file__).parent / "cuda_on_cpu.h"
ASSEMBLY = re.compile(r'asm\("(\S+) [^"]*" : "=\w"\((\w+)\) : (.*)\);')
GXX = ["g++", "-std=c++20", "-O1", "-w", "-fPIC", "-pthread"]
OPERAND = re.compile(r'"\w"\(((?:[^()]|\([^()]*\))*)\)')


def _emulated(candidate, folder):
    """A CUDA source as host code: its launches run on fibers, its assembly becomes calls."""
    text = ASSEMBLY.sub(
        lambda m: f"{m[2]} = {m[1].replace('.', '_')}({', '.join(OPERAND.findall(m[3]))});",
        candidate.offer.text,
    )
    entries = [f"EMULATED({i}, {kernel})" for i, (kernel, _) in enumerate(candidate.launches)]
    folder.mkdir()
    (folder / "unit.cpp").write_text(f'#include "{EMULATOR.name}"\n{text}\n' + "\n".join(entries))
    command = [*GXX, "-shared", "-I..", "unit.cpp", "-o", "unit.so"]
    subprocess.run(command, cwd=folder, check=True)
    library = ctypes.CDLL(folder / "unit.so")

    def enqueue(binding):
        for i, launch in enumerate(candidate.plan.launches):
            sizes = (ctypes.c_uint * 6)(*launch.grid, *launch.block)
            getattr(library, f"emulated_{i}")(binding.launches[i], sizes, launch.cooperative)

    return enqueue


def _small_team(candidate):
    """The kernel whose blocks wait for each other gets 4 of them instead of 256."""
    text = candidate.offer.text.replace('teams = "256 / members"', 'teams = "4 / members"')
    return lib.Candidate(replace(candidate.offer, text=text), candidate.call)


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
def test_cuda_kernels_agree_with_fp64_in_emulation(tmp_path):
    chosen = _representatives()
    files = {path.stem for path in (KERNELS / "cuda").glob("*.cu")}
    assert len({_kernels(*e)[1] for e in chosen}) == len(files)
    small = [(c, d, _small_team(candidate)) for c, d, candidate in chosen]
    header = shutil.copy(EMULATOR, tmp_path)
    subprocess.run([*GXX, "-x", "c++-header", header], check=True)  # precompiled, for speed
    with ThreadPoolExecutor(2) as workers:
        folders = (tmp_path / str(i) for i in range(len(small)))
        built = workers.map(_emulated, (candidate for _, _, candidate in small), folders)
        for (case, dtype, candidate), enqueue in zip(small, built, strict=True):
            lib.judged(candidate, case, dtype, enqueue, draws=("shifted", "special"))


@pytest.mark.gpu
@pytest.mark.parametrize(("case", "dtype"), lib.PAIRS, ids=str)
def test_cuda_kernels_agree_with_fp64(case, dtype, tmp_path):
    call = lib.recorded(case, lib.arguments(case, dtype, "normal", "cuda"))
    found = offers(call)
    assert found
    # torch's own CUDA kernel turns all of a row with an infinity into NaN where no weight is given,
    # in float64 as well; the formula gives zeros, so there is no reference to agree with.
    bare = case.name == "rms_norm" and len(call.inputs) == 1
    draws = [d for d in lib.DRAWS if not (bare and d == "special")]
    for offer in found:
        candidate = lib.Candidate(offer, call)
        enqueue = _on_gpu(candidate, tmp_path / offer.name)
        lib.judged(candidate, case, dtype, enqueue, draws=draws, device="cuda")


LARGE = [
    lib.norm(1, 128, 512, 512, groups=32), lib.norm(1, 256, 1024, 1024, groups=32),
    lib.norm(1, 512, 128, 128, groups=32), lib.norm(2, 320, 64, 64, groups=32),
    lib.batch(lib.data(32, 256, 56, 56)), lib.batch(lib.data(32, 2048, 7, 7)),
    lib.batch(lib.last(32, 256, 14, 14)),
    lib.Case(lib.A.relu_.default, (lib.data(32, 64, 112, 112),)),
    lib.Case(lib.A.silu.default, (lib.data(4096, 6144),)),
    lib.Case(lib.A.mul.Tensor, (lib.data(2, 4096, 1536), lib.data(2, 1, 1536))),
    lib.Case(lib.A.max_pool2d.default, (lib.data(32, 64, 112, 112), [3, 3], [2, 2], [1, 1])),
    lib.rows(2, 4096, 1536), lib.Case(lib.A.softmax.int, (lib.data(8, 262144), -1)),
]  # fmt: skip


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", lib.FLOATS[:2], ids=str)
@pytest.mark.parametrize("case", LARGE, ids=str)
def test_cuda_kernels_agree_with_fp64_on_large_tensors(case, dtype, tmp_path):
    test_cuda_kernels_agree_with_fp64(case, dtype, tmp_path)


def _on_gpu(candidate, folder):
    major, minor = torch.cuda.get_device_capability()
    path, symbols = _build_cuda(candidate, folder, f"sm_{major}{minor}")
    artifact = Artifact(
        digest="", backend="cuda", arch="", path=str(path), symbols=symbols, compiler=""
    )
    load = Load(artifact=artifact, plan=candidate.plan, slots=(), arena_bytes=0)
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    kernels = Kernels(Driver(), load, stream)

    def enqueue(binding):
        kernels.enqueue(binding)
        torch.cuda.synchronize()

    return enqueue
