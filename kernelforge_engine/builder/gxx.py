"""The cpu backend: g++ through ninja, and a shared object that needs no OpenMP library.

OpenMP symbols stay undefined on purpose: in a torch process they bind to the library torch has
loaded already (two of them in one process oversubscribe the cores), in the Runner to one it loads.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from kernelforge_engine.builder import audit, layout
from kernelforge_engine.builder.compiler import Compiled, Unit
from kernelforge_engine.errors import NoCompiler

# The last two options of the first line change no value: they drop errno and floating-point traps.
COMPILE = (
    "-O3 -std=c++20 -fPIC -fopenmp -fno-math-errno -fno-trapping-math "
    "-fno-plt -fno-gnu-unique -fmax-errors=20 -fdiagnostics-color=never"
)
# Line numbers instead of speed. Unaligned access is fine on every machine we know, and nothing here
# has virtual functions of two libraries.
SANITIZE = (
    "-fsanitize=address,undefined -fno-sanitize=alignment,vptr -fno-sanitize-recover=all "
    "-fno-omit-frame-pointer -O1 -g1"
)
RUNTIMES = ("libasan.so", "libubsan.so")
# Bytes of a number or a distance may look like a system call by chance; other code has other bytes.
SHIFTS = ("-mprefer-vector-width=256", "-fno-reorder-blocks")
LINK = "-shared -Wl,--as-needed -Wl,-z,now -Wl,-z,relro -Wl,--build-id=none"
EXPORTS = "{ global: kf_launch_*; kf_repeat; kf_modes; kf_place; local: *; };\n"
NINJA = """\
rule compile
  command = {cxx} {compile} {sanitize} {shift} -march={arch} -c $in -o $out > $out.log 2>&1
rule link
  command = {cxx} {link} {sanitize} -Wl,--version-script=exports.map $in -o $out > $out.log 2>&1
build unit.o: compile unit.cpp
build repeat.o: compile repeat.cpp
build kernel.so: link unit.o repeat.o | exports.map
"""
# What the driver makes of -march=native: the instruction set, and the caches it tunes for.
TARGET = re.compile(r"-march=[\w.+-]+|-m[\w.=+-]+|l[12]-cache[\w-]*=\d+")
VERSION = re.compile(r"^gcc version (.*)$", re.MULTILINE)


class Gxx:
    """g++ and ninja as found on this machine."""

    suffix = ".so"

    def __init__(self, cxx: str, ninja: str, arch: str, preload: tuple[str, ...] = ()) -> None:
        self._cxx, self._ninja = cxx, ninja
        self._sanitize = SANITIZE if preload else ""
        self.preload = preload
        self.name, target = _version(cxx, arch)
        flags = f"{COMPILE} {self._sanitize} {SHIFTS} {LINK}"
        self.identity = f"{self.name} {target} {flags} {audit.IDENTITY}"
        self.readable: tuple[str, ...] = (_prefix(cxx), ninja)

    def compile(self, unit: Unit, folder: Path) -> Compiled:
        """Build kernel.so in `folder`."""
        # The candidate's own file is only there for the compiler to quote lines from.
        (folder / "candidate.cpp").write_text(unit.candidate, "utf-8")
        # A candidate that asks whether it is watched is told that it is not.
        unwatched = "#undef __SANITIZE_ADDRESS__\n" if self.preload else ""
        (folder / "unit.cpp").write_text(unwatched + unit.text("candidate.cpp"), "utf-8")
        (folder / "repeat.cpp").write_text(unit.beside, "utf-8")
        (folder / "exports.map").write_text(EXPORTS)
        made = self._made(unit, folder, "")
        for shift in SHIFTS:
            if not made.log.endswith(audit.SYSTEM_BYTES):
                break
            made = self._made(unit, folder, shift)
        return made

    def _made(self, unit: Unit, folder: Path, shift: str) -> Compiled:
        (folder / "build.ninja").write_text(self._rules(unit.arch, shift), "utf-8")
        done = subprocess.run(  # noqa: S603  the command is ours; the candidate is one of its files
            [self._ninja, "-j2", "--quiet"],
            cwd=folder,
            env=environment(folder),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        logs = [folder / f"{made}.log" for made in ("unit.o", "repeat.o", "kernel.so")]
        log = "\n".join(p.read_text("utf-8", errors="replace") for p in logs if p.is_file())
        if done.returncode:
            return Compiled(log=log or done.stdout.decode(errors="replace"))
        if reason := audit.refusal(folder, environment(folder), instrumented=bool(self.preload)):
            return Compiled(log=f"error: {reason}")
        symbols = {str(i): f"kf_launch_{i}" for i in range(len(unit.launches))}
        image = (folder / "kernel.so").read_bytes()
        resources = layout.layout(image, environment(folder))
        return Compiled(
            log=log,
            product="kernel.so",
            symbols=symbols,
            resources=resources,
            audit=audit.contents(folder, environment(folder)),
        )

    @property
    def programs(self) -> tuple[str, str]:
        """The compiler and ninja."""
        return self._cxx, self._ninja

    def _rules(self, arch: str, shift: str) -> str:
        return NINJA.format(
            cxx=_escaped(self._cxx),
            compile=COMPILE,
            sanitize=self._sanitize,
            shift=shift,
            link=LINK,
            arch=arch,
        )


def sanitizing(arch: str) -> Gxx:
    """The cpu compiler of this machine with its sanitizers.

    Raises:
        NoCompiler: it, or the libraries of its sanitizers, are missing.
    """
    plain = find(arch)
    preload = runtimes(plain.programs[0])
    if not preload:
        step = "install the sanitizer libraries that belong to g++ (libasan, libubsan)"
        raise NoCompiler(compiler="AddressSanitizer", backend="cpu", step=step)
    return Gxx(*plain.programs, arch, preload)


def runtimes(cxx: str) -> tuple[str, ...]:
    """The libraries of the sanitizers that belong to a compiler, none where one of them lacks."""
    found = [_library(cxx, name) for name in RUNTIMES]
    return tuple(str(path) for path in found if path) if all(found) else ()


def _library(cxx: str, name: str) -> Path | None:
    """A library that belongs to the compiler, links resolved; it answers with the bare name of one
    that it lacks."""
    asked = [cxx, f"-print-file-name={name}"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)  # noqa: S603
    path = Path(done.stdout.strip())
    return path.resolve() if path.is_absolute() and path.is_file() else None


def find(arch: str) -> Gxx:
    """The cpu compiler of this machine.

    Raises:
        NoCompiler: g++ or ninja is missing.
    """
    cxx = shutil.which("g++")
    if cxx is None:
        step = "install g++ 11 or newer (package g++ or gcc-c++) and put it on PATH"
        raise NoCompiler(compiler="g++", backend="cpu", step=step)
    beside = str(Path(sys.executable).parent)
    ninja = shutil.which("ninja", path=beside) or shutil.which("ninja")
    if ninja is None:
        raise NoCompiler(compiler="ninja", backend="cpu", step="pip install ninja")
    return Gxx(cxx, ninja, arch)


def environment(folder: Path) -> dict[str, str]:
    """The whole environment of a compiler: where programs are, and its private folder."""
    path = os.pathsep.join(os.get_exec_path())
    return {"PATH": path, "HOME": str(folder), "TMPDIR": str(folder), "LC_ALL": "C"}


def _version(cxx: str, arch: str) -> tuple[str, str]:
    """The compiler's own name and version, and the machine that `arch` stands for."""
    asked = [cxx, f"-march={arch}", "-###", "-E", "-x", "c++", os.devnull]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)  # noqa: S603
    version = VERSION.search(done.stderr)
    name = f"g++ {version[1].strip()}" if version else "g++"
    return name, " ".join(sorted(set(TARGET.findall(done.stderr))))


def _prefix(program: str) -> str:
    """The folder a tool is installed in; the root folder stands for none."""
    prefix = Path(program).resolve().parent.parent
    return str(prefix if prefix != Path("/") else Path(program))


def _escaped(path: str) -> str:
    quoted = path.replace("'", "'\\''")
    return f"'{quoted}'".replace("$", "$$")
