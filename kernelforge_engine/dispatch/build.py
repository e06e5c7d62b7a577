"""The shim's binary: built once per torch version into a cache folder, with torch's own headers.

A binary built for another torch version may load and silently never hit, so the version is part of
its name.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import torch

from kernelforge_engine.codec import sha256
from kernelforge_engine.errors import NoCompiler, NotWritten, ShimUnusable

NATIVE = Path(__file__).parent / "native"
COMPILERS = ("g++", "c++", "clang++")
FLAGS = ("-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-w")
BOXED = "-DKERNELFORGE_BOXED"
SECONDS = 600
LOG = 2000


def library(folder: Path) -> Path:
    """The shim for the torch of this process, built into `folder` (about 15 s) if it is not there.

    Raises:
        NoCompiler: it is not there and this machine has no C++ compiler.
        ShimUnusable: the compiler refused it.
        NotWritten: the folder cannot be made or has no room.
    """
    path = folder / f"shim-{_digest()[:24]}.so"
    if not path.is_file():
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _build(path)
        except OSError as error:
            step = "free space there, or let KERNELFORGE_CACHE name another folder"
            raise NotWritten(what="The shim", path=folder, why=error.strerror, step=step) from error
    return path


def _digest() -> str:
    sources = [f"{p.name}\n{p.read_text()}" for p in sorted(NATIVE.iterdir())]
    return sha256("\n".join([*sources, *_flags(), torch.__version__]))


def _flags() -> list[str]:
    return [*FLAGS, f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"]


def _build(path: Path) -> None:
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        raise NoCompiler(
            compiler="C++ compiler (g++)",
            backend="dispatch",
            step="install one (Debian and Ubuntu: apt install g++) and load the cast again",
        )
    with tempfile.TemporaryDirectory(dir=path.parent) as work:
        built = Path(work) / path.name
        command = [compiler, *_flags(), *_search(), "-o", str(built)]
        if _run(command).returncode:
            # What makes a miss cheap leans on more of torch's headers than the rest.
            finished = _run([*command, BOXED])
            if finished.returncode:
                why = f"the compiler refused it: {finished.stderr[-LOG:].strip()}"
                raise ShimUnusable(torch=torch.__version__, why=why, path=path)
        os.replace(built, path)  # noqa: PTH105  two processes may build at once; the last one wins


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603  our own source, not a candidate's
        command, capture_output=True, text=True, timeout=SECONDS, check=False
    )


def _search() -> list[str]:
    root = Path(torch.__file__).parent
    include = root / "include"
    return [
        f"-I{include}",
        f"-I{include / 'torch/csrc/api/include'}",
        str(NATIVE / "shim.cpp"),
        "-Wl,--no-as-needed",
        f"-L{root / 'lib'}",
        f"-Wl,-rpath,{root / 'lib'}",
        "-lc10",
        "-ltorch_cpu",
        "-ldl",
    ]
