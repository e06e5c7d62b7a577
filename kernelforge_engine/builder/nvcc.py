"""nvcc to a cubin: for sources whose headers NVRTC does not have."""

import re
import shutil
import subprocess
from pathlib import Path

from kernelforge_engine.builder import (
    contract,
    cubin,
    device_audit,
    gxx,
    mangling,
    ptxas,
    toolkit,
)
from kernelforge_engine.builder.compiler import Compiled, Unit

OPTIONS = (
    "-cubin",
    "-keep",  # the PTX too
    "-std=c++17",
    "-lineinfo",
    "--expt-relaxed-constexpr",
    ptxas.VERBOSE,
    "-Xcompiler",
    "-fdiagnostics-color=never",
)
RELEASE = re.compile(r"\bV(\d+\.\d+\.\d+)")


class Nvcc:
    """nvcc as found on this machine."""

    suffix = ".cubin"
    preload: tuple[str, ...] = ()

    def __init__(self, program: Path) -> None:
        self._program = str(program)
        shown = subprocess.run(  # noqa: S603
            [self._program, "--version"], capture_output=True, text=True, check=False
        ).stdout
        release = RELEASE.search(shown)
        self.name = f"nvcc {release[1]}" if release else "nvcc"
        self.identity = f"{self.name} {' '.join(OPTIONS)} {device_audit.IDENTITY}"
        self.readable: tuple[str, ...] = (str(program.parent.parent),)

    def compile(self, unit: Unit, folder: Path) -> Compiled:
        """Build kernel.cubin in `folder`."""
        (folder / "candidate.cu").write_text(unit.candidate, "utf-8")
        text = f"{unit.text('candidate.cu')}\n{contract.references(unit.kernels)}\n"
        (folder / "unit.cu").write_text(text, "utf-8")
        arch = f"-arch={toolkit.specific(unit.arch)}"
        done = subprocess.run(  # noqa: S603  the command is ours; the candidate is one of its files
            [self._program, *OPTIONS, arch, "-o", "kernel.cubin", "unit.cu"],
            cwd=folder,
            env=gxx.environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        log = done.stdout.decode(errors="replace")
        if done.returncode:
            return Compiled(log=ptxas.without(log))
        image = (folder / "kernel.cubin").read_bytes()
        text = (folder / "unit.ptx").read_text("utf-8", errors="replace")
        if reason := device_audit.refusal(image, text, unit.candidate, gxx.environment(folder)):
            return Compiled(log=f"error: {reason}")
        return _named(unit, image, log, folder)


def find() -> Nvcc | None:
    """The nvcc of this machine, or None."""
    program = toolkit.nvcc()
    return Nvcc(program) if program and shutil.which("g++") else None


def _named(unit: Unit, image: bytes, log: str, folder: Path) -> Compiled:
    present = cubin.kernels(image)
    readable = mangling.demangled(present, gxx.environment(folder))
    symbols = {}
    for kernel in unit.kernels:
        matches = [s for s in present if mangling.names(s, readable.get(s), kernel)]
        if len(matches) != 1:
            return Compiled(log=f"error: {len(matches)} kernels of this file match {kernel}")
        symbols[kernel] = matches[0]
    resources = cubin.resources(image, symbols, ptxas.spills(log))
    audit = device_audit.contents(image, gxx.environment(folder))
    return Compiled(
        log=ptxas.without(log),
        product="kernel.cubin",
        symbols=symbols,
        resources=resources,
        audit=audit,
    )
