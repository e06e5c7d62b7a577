"""Artifacts on disk, named by everything that decides their content."""

import dataclasses
import os
from pathlib import Path

from pydantic import ValidationError

from kernelforge_engine import codec
from kernelforge_engine.builder.compiler import Compiler, Unit
from kernelforge_engine.errors import NotWritten
from kernelforge_engine.records import Artifact


def digest(unit: Unit, compiler: Compiler) -> str:
    """The name of what `compiler` makes of `unit`."""
    texts = [unit.before, unit.candidate, unit.behind, unit.beside]
    facts = [*texts, unit.kernels, unit.arch, compiler.identity]
    return codec.sha256(codec.dumps(facts))


def find(folder: Path, name: str) -> Artifact | None:
    """The stored artifact of that name with its path in `folder` as it is now, or None."""
    try:
        artifact = codec.loads(Artifact, (folder / f"{name}.json").read_bytes())
    except (FileNotFoundError, ValidationError):
        return None
    path = folder / Path(artifact.path).name
    return dataclasses.replace(artifact, path=str(path)) if path.is_file() else None


def keep(folder: Path, artifact: Artifact, product: bytes) -> None:
    """Store an artifact; its metadata come last, so what can be found is whole.

    Raises:
        NotWritten: the disk is full or read-only.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write(Path(artifact.path), product)
        _write(folder / f"{artifact.digest}.json", codec.dumps(artifact).encode())
    except OSError as error:
        step = "free space there, or choose another folder with --project or KERNELFORGE_CACHE"
        what = "A compiled candidate"
        raise NotWritten(what=what, path=folder, why=error.strerror, step=step) from error


def _write(path: Path, data: bytes) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_bytes(data)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
