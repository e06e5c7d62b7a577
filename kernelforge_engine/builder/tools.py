"""Programs of others that the engine uses where they are, and what is lost where they are not."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kernelforge_engine.builder import disassembly, toolkit
from kernelforge_engine.builder.gxx import runtimes


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A program or library: where it is, empty where it is not; what for, and how to get it."""

    name: str
    place: str
    used_for: str
    step: str


def tools(environment: Mapping[str, str], *, cuda: bool) -> tuple[Tool, ...]:
    """Those for the cpu backend, and those for CUDA where that is asked for."""
    path = environment["PATH"]
    compiler = shutil.which("g++", path=path) or ""
    found = [
        Tool(
            name="g++",
            place=compiler,
            used_for="cpu kernels, and the fast dispatch of casts",
            step="install g++ 11 or newer",
        ),
        Tool(
            name="ninja",
            place=shutil.which("ninja", path=path) or "",
            used_for="builds of cpu kernels",
            step="pip install ninja",
        ),
        Tool(
            name="sanitizers",
            place=next(iter(runtimes(compiler) if compiler else ()), ""),
            used_for="the promotion of cpu kernels",
            step="install the package of g++ with libasan and libubsan",
        ),
        Tool(
            name="objdump",
            place=disassembly.program(environment) or "",
            used_for="finding cpu kernels that read clocks or random numbers, and profiles",
            step="install binutils",
        ),
    ]
    return (*found, *(_of_cuda() if cuda else ()))


def _of_cuda() -> list[Tool]:
    return [
        Tool(
            name="NVRTC or nvcc",
            place=_first(_nvrtc, toolkit.nvcc),
            used_for="CUDA kernels",
            step="pip install nvidia-cuda-nvrtc, or install the CUDA toolkit",
        ),
        Tool(
            name="compute-sanitizer",
            place=_first(toolkit.compute_sanitizer),
            used_for="the promotion of CUDA kernels",
            step="install the CUDA toolkit",
        ),
        Tool(
            name="ncu",
            place=_first(toolkit.ncu),
            used_for="the counters of `kernelforge profile`",
            step="install Nsight Compute, a part of the CUDA toolkit",
        ),
    ]


def _first(*searches: Callable[[], object]) -> str:
    return next((str(found) for search in searches if (found := search())), "")


def _nvrtc() -> str:
    found = toolkit.nvrtc()
    return str(found[1] or found[0]) if found else ""
