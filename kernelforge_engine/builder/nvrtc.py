"""NVRTC through ctypes: CUDA source to a cubin for one architecture, without a host compiler.

Signatures: `nvrtc.h`. Every function returns an nvrtcResult, 0 for success.
"""

import ctypes
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_void_p
from pathlib import Path

from kernelforge_engine import codec
from kernelforge_engine.builder import cubin, device_audit, gxx, headers, ptxas, toolkit
from kernelforge_engine.builder.compiler import Compiled, Unit

# nvcc includes these by itself.
IMPLIED = ("stdint.h", "math.h")
OPTIONS = (
    "--std=c++17",
    "-lineinfo",
    ptxas.VERBOSE,
    *(f"--pre-include={name}" for name in IMPLIED),
)
MISSING_HEADER = "open source file"  # "could not ..." and "cannot ...", by version
HINT = """
note: this header is not installed here. There are {names} and, where installed, CUDA's own: \
cuda_fp16.h and its kin come with torch, mma.h and cooperative_groups.h need the pip packages \
nvidia-cuda-crt and nvidia-cuda-cccl."""

_STRINGS = POINTER(c_char_p)
_PROTOTYPES: dict[str, list[object]] = {
    "nvrtcVersion": [POINTER(c_int), POINTER(c_int)],
    "nvrtcCreateProgram": [POINTER(c_void_p), c_char_p, c_char_p, c_int, _STRINGS, _STRINGS],
    "nvrtcDestroyProgram": [POINTER(c_void_p)],
    "nvrtcCompileProgram": [c_void_p, c_int, _STRINGS],
    "nvrtcAddNameExpression": [c_void_p, c_char_p],
    "nvrtcGetLoweredName": [c_void_p, c_char_p, POINTER(c_char_p)],
    "nvrtcGetProgramLogSize": [c_void_p, POINTER(c_size_t)],
    "nvrtcGetProgramLog": [c_void_p, c_char_p],
    "nvrtcGetPTXSize": [c_void_p, POINTER(c_size_t)],
    "nvrtcGetPTX": [c_void_p, c_char_p],
    "nvrtcGetCUBINSize": [c_void_p, POINTER(c_size_t)],
    "nvrtcGetCUBIN": [c_void_p, c_char_p],
}


class Nvrtc:
    """An NVRTC library and the headers that belong to it."""

    suffix = ".cubin"
    preload: tuple[str, ...] = ()

    def __init__(self, library: ctypes.CDLL, path: Path | None) -> None:
        self._library = library
        for name, arguments in _PROTOTYPES.items():
            function = getattr(library, name)
            function.argtypes, function.restype = arguments, c_int
        major, minor = c_int(), c_int()
        library.nvrtcVersion(byref(major), byref(minor))
        self.name = f"NVRTC {major.value}.{minor.value}"
        # Releases that share a version differ in size.
        size = path.stat().st_size if path else 0
        self._includes = toolkit.headers(path)
        ours = codec.sha256(codec.dumps(headers.NAMED))
        self.identity = f"{self.name} {size} {' '.join(OPTIONS)} {ours} {device_audit.IDENTITY}"
        self.readable = tuple(map(str, [*self._includes, *([path.parent] if path else [])]))

    def compile(self, unit: Unit, folder: Path) -> Compiled:
        """Build kernel.cubin in `folder`."""
        program = c_void_p()
        names, texts = list(headers.NAMED), list(headers.NAMED.values())
        source = unit.text("candidate.cu").encode()
        self._library.nvrtcCreateProgram(
            byref(program), source, b"unit.cu", len(names), _strings(texts), _strings(names)
        )
        for kernel in unit.kernels:
            self._library.nvrtcAddNameExpression(program, kernel.encode())
        options = [f"--gpu-architecture={toolkit.specific(unit.arch)}", *OPTIONS]
        options += [f"--include-path={folder}" for folder in self._includes]
        failed = self._library.nvrtcCompileProgram(program, len(options), _strings(options))
        log = self._bytes(program, "ProgramLog").decode(errors="replace").rstrip("\0")
        if failed:
            return _refused(ptxas.without(log), failed)
        symbols = {kernel: self._lowered(program, kernel) for kernel in unit.kernels}
        image = self._bytes(program, "CUBIN")
        text = self._bytes(program, "PTX").decode(errors="replace").rstrip("\0")
        if reason := device_audit.refusal(image, text, unit.candidate, gxx.environment(folder)):
            return Compiled(log=f"error: {reason}")
        (folder / "kernel.cubin").write_bytes(image)
        resources = cubin.resources(image, symbols, ptxas.spills(log))
        audit = device_audit.contents(image, gxx.environment(folder))
        return Compiled(
            log=ptxas.without(log),
            product="kernel.cubin",
            symbols=symbols,
            resources=resources,
            audit=audit,
        )

    def _bytes(self, program: c_void_p, what: str) -> bytes:
        size = c_size_t()
        getattr(self._library, f"nvrtcGet{what}Size")(program, byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        getattr(self._library, f"nvrtcGet{what}")(program, buffer)
        return buffer.raw

    def _lowered(self, program: c_void_p, kernel: str) -> str:
        lowered = c_char_p()
        self._library.nvrtcGetLoweredName(program, kernel.encode(), byref(lowered))
        return (lowered.value or b"").decode()


def find() -> Nvrtc | None:
    """NVRTC as found on this machine, or None."""
    found = toolkit.nvrtc()
    return Nvrtc(*found) if found else None


def _refused(log: str, result: int) -> Compiled:
    headerless = MISSING_HEADER in log
    if headerless:
        log += HINT.format(names=", ".join(f"<{name}>" for name in headers.NAMED))
    return Compiled(log=log or f"error: NVRTC result {result}", headerless=headerless)


def _strings(texts: list[str]) -> "ctypes.Array[c_char_p]":
    return (c_char_p * len(texts))(*[text.encode() for text in texts])
