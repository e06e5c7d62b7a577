"""Casts: packages of validated kernels. Reading one needs no torch; running one does."""

from pathlib import Path
from typing import TYPE_CHECKING

from kernelforge_engine.cast.keys import Trusted
from kernelforge_engine.cast.manifest import Binary, CastFile, Entry, Header, read, write
from kernelforge_engine.cast.options import CudaGraph

if TYPE_CHECKING:
    from kernelforge_engine.dispatch.runtime import Cast

__all__ = ["Binary", "CastFile", "CudaGraph", "Entry", "Header", "load", "read", "write"]


def load(path: str | Path, *, cache: Path | None = None, trusted: Trusted | None = None) -> "Cast":
    """Read a cast and prepare it for this process: `load("x.cast").enable()`.

    Without a C++ compiler its kernels are dispatched from Python, with a warning that says so; cpu
    kernels then serve where they were built on this machine before, and stay eager elsewhere.

    Args:
        path: the package.
        cache: where built binaries are kept; ~/.cache/kernelforge by default.
        trusted: public keys (PEM files, PEM texts or fingerprints): anything but a cast that one of
            them signed is refused before any of it is written or run. None accepts any signer, and
            none.

    Raises:
        CastRejected: the package is damaged, inconsistent or wrongly signed.
        CastUntrusted: no key of `trusted` signed it.
        KeyUnusable: one of `trusted` is no public key.
        SigningMissing: a signature cannot be checked here, and `trusted` asks for that.
    """
    from kernelforge_engine.dispatch import runtime  # the only door from here to torch

    return runtime.load(Path(path), cache=cache, trusted=trusted)
