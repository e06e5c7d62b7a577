"""Where CUDA's compilers and headers are: in wheels beside this interpreter's packages, in the
toolkit, or wherever the loader finds them."""

import ctypes
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

TOOLKITS = ("usr/local/cuda", "usr/local/cuda-*", "opt/cuda")
NSIGHT = ("opt/nvidia/nsight-compute/*/ncu",)
SONAMES = ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")
# Architectures whose full instruction set carries a suffix of its own.
SPECIFIC = {"sm_90": "sm_90a", "sm_100": "sm_100a", "sm_103": "sm_103a", "sm_120": "sm_120a"}


def specific(arch: str) -> str:
    """The architecture to compile for: sm_90 means sm_90a, with its tensor-core instructions."""
    return SPECIFIC.get(arch, arch)


def nvcc() -> Path | None:
    """The nvcc program, links resolved, or None."""
    return _program("nvcc")


def compute_sanitizer() -> Path | None:
    """The program that runs another one and watches its device code, or None."""
    return _program("compute-sanitizer")


def ncu() -> Path | None:
    """The program that reads a device's counters while another one runs, or None."""
    return _program("ncu") or next(
        (p.resolve() for text in NSIGHT for p in sorted(Path("/").glob(text), reverse=True)), None
    )


def _program(name: str) -> Path | None:
    if found := shutil.which(name):
        return Path(found).resolve()
    roots = [folder for root in _wheels() for folder in root.glob("*")] + _installed()
    programs = (root / "bin" / name for root in roots)
    return next((program.resolve() for program in programs if program.is_file()), None)


def nvrtc() -> tuple[ctypes.CDLL, Path | None] | None:
    """The loaded NVRTC library and its file, which is unknown when the loader found it."""
    for folder in _library_folders():
        for path in sorted(folder.glob("libnvrtc.so.*"), reverse=True):
            # NVRTC opens this one by its bare name; loaded before, it is found anywhere.
            for builtins in folder.glob("libnvrtc-builtins.so.*"):
                _load(str(builtins))
            if library := _load(str(path)):
                return library, path
    for name in SONAMES:
        if library := _load(name):
            return library, None
    return None


def headers(library: Path | None) -> list[Path]:
    """Folders with cuda_fp16.h, mma.h, nv/target and the like, those beside `library` first."""
    beside = [library.parent.parent / "include"] if library else []
    wheels = [folder for root in _wheels() for folder in sorted(root.glob("*/include"))]
    toolkits = [root / "include" for root in _toolkits()]
    for group in (beside + wheels, toolkits):
        found = [folder for folder in dict.fromkeys(group) if _serves(folder)]
        if any((folder / "cuda_fp16.h").is_file() for folder in found):
            return found + [sub for folder in found if (sub := folder / "cccl").is_dir()]
    return []


def _serves(folder: Path) -> bool:
    return any((folder / name).exists() for name in ("cuda_fp16.h", "nv/target", "cccl"))


def _library_folders() -> Iterator[Path]:
    for root in _wheels():
        yield from sorted(root.glob("*/lib"), reverse=True)
    for root in _toolkits():
        yield from (root / "lib64", root / "lib")


def _wheels() -> list[Path]:
    return [root for entry in sys.path if (root := Path(entry, "nvidia")).is_dir()]


def _toolkits() -> list[Path]:
    program = nvcc()
    return [*([program.parent.parent] if program else []), *_installed()]


def _installed() -> list[Path]:
    return [p for text in TOOLKITS for p in sorted(Path("/").glob(text), reverse=True)]


def _load(name: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None
