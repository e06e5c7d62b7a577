"""The user's library on disk: a file for every accepted kernel, in a folder for every operator.

A file is written beside its place and moved there whole, so that two processes and a kill do no
harm. What is found there is only offered: a file that cannot be read is named and left out.
"""

import os
import stat
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from kernelforge_engine import codec, limits
from kernelforge_engine.errors import BadOption, LibraryFull, LibraryUnusable
from kernelforge_engine.launch.header import SourceRejected
from kernelforge_engine.library.accepted import VERSION, Accepted, kin

SUFFIX, FRESH = ".json", ".new"
MOST_BYTES = 1 << 20  # of one file
MOST_OF_AN_OPERATOR = 200
MOST_IN_ALL = 256 << 20  # bytes
OLD_SECONDS = 3600.0
LEAST_PREFIX = 4
SHOWN = 12  # characters of an id that are shown; a longer prefix is seldom needed


@dataclass(frozen=True, kw_only=True)
class Damaged:
    """A file of the library that is no accepted kernel, and why."""

    path: Path
    why: str


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What was found: kernels, and files that are none."""

    kernels: tuple[Accepted, ...] = ()
    damaged: tuple[Damaged, ...] = ()


class LibraryFolder:
    """The user's library in a folder, which need not be there yet."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def all(self) -> Contents:
        """Every kernel, by operator.

        Raises:
            LibraryUnusable: the folder cannot be read.
        """
        return _read_all(file for folder in self._folders() for file in self._files(folder))

    def of(self, name: str) -> Contents:
        """The kernels of one kin.

        Raises:
            LibraryUnusable: the folder cannot be read.
        """
        return _read_all(self._files(self._path / name))

    def add(self, kernel: Accepted) -> Path:
        """Keep a kernel, in place of an older record of the same; where it lies. Its author and
        idea are those of the first record of its source: who offers it later is not its author.

        Raises:
            LibraryFull: there is no room for it.
            LibraryUnusable: the folder cannot be written.
        """
        data = codec.dumps(self._as_authored(kernel)).encode()
        target = self._path / kin(kernel.call) / f"{kernel.id}{SUFFIX}"
        self._make_room(target, len(data))
        fresh = target.with_name(f"{uuid.uuid4().hex}{FRESH}")
        with self._said_if_not("written"):
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                with fresh.open("xb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                self._sweep(target.parent, fresh.stat().st_mtime)
                fresh.replace(target)
            finally:
                fresh.unlink(missing_ok=True)
        return target

    def _as_authored(self, kernel: Accepted) -> Accepted:
        known = [k for k in self.of(kin(kernel.call)).kernels if k.text == kernel.text]
        if not known:
            return kernel
        first = min(known, key=lambda k: k.accepted_at)
        return replace(kernel, author=first.author, note=first.note or kernel.note)

    def find(self, prefix: str) -> Accepted:
        """The one kernel whose id begins like this.

        Raises:
            BadOption: there is none, or there are several.
            LibraryUnusable: its file cannot be read.
        """
        file = self._named(prefix)
        found = _read(file)
        if isinstance(found, Accepted):
            return found
        why = found.why if found else "it was removed meanwhile"
        raise LibraryUnusable(path=file, done="read", why=why)

    def remove(self, prefix: str) -> str:
        """Remove the one file whose id begins like this, damaged or not; its id.

        Raises:
            BadOption: there is none, or there are several.
            LibraryUnusable: it cannot be removed.
        """
        file = self._named(prefix)
        with self._said_if_not("changed"):
            file.unlink(missing_ok=True)
        return file.stem

    def _named(self, prefix: str) -> Path:
        files = [file for folder in self._folders() for file in self._files(folder)]
        found = [f for f in files if len(prefix) >= LEAST_PREFIX and f.stem.startswith(prefix)]
        if len(found) == 1:
            return found[0]
        several = ", ".join(f.stem[: max(SHOWN, len(prefix) + 2)] for f in found[:5])
        why = f"several begin with it: {several}" if found else "the library has no such kernel"
        accepted = (
            f"an id of `kernelforge library list`, or {LEAST_PREFIX} characters or more of it"
        )
        raise BadOption(field="id", value=prefix, why=why, accepted=accepted)

    def _make_room(self, target: Path, size: int) -> None:
        if size > MOST_BYTES:
            raise LibraryFull(path=self._path, why=f"one kernel may take {MOST_BYTES} bytes")
        others = [f for f in self._files(target.parent) if f != target]
        if len(others) >= MOST_OF_AN_OPERATOR:
            why = f"it holds {len(others)} kernels for this operator, which is the most"
            raise LibraryFull(path=self._path, why=why)
        every = (f for folder in self._folders() for f in self._files(folder) if f != target)
        if sum(map(_size, every)) + size > MOST_IN_ALL:
            raise LibraryFull(path=self._path, why=f"it may take {MOST_IN_ALL >> 20} MiB in all")

    def _sweep(self, folder: Path, now: float) -> None:
        """Remove what a process that was killed while it wrote has left."""
        for file in self._entries(folder):
            with suppress(OSError):
                if file.suffix == FRESH and file.lstat().st_mtime < now - OLD_SECONDS:
                    file.unlink()

    def _folders(self) -> list[Path]:
        with self._said_if_not("read"):
            return [path for path in self._entries(self._path) if path.is_dir()]

    def _files(self, folder: Path) -> list[Path]:
        return [path for path in self._entries(folder) if path.suffix == SUFFIX]

    def _entries(self, folder: Path) -> list[Path]:
        with self._said_if_not("read"):
            try:
                return sorted(folder.iterdir())
            except FileNotFoundError:
                return []

    @contextmanager
    def _said_if_not(self, done: str) -> Iterator[None]:
        """Turn what the file system says into our words."""
        try:
            yield
        except OSError as error:
            why = error.strerror or str(error)
            raise LibraryUnusable(path=self._path, done=done, why=why) from error


def _read_all(files: Iterable[Path]) -> Contents:
    found = [one for one in map(_read, files) if one is not None]
    return Contents(
        kernels=tuple(one for one in found if isinstance(one, Accepted)),
        damaged=tuple(one for one in found if isinstance(one, Damaged)),
    )


def _read(file: Path) -> Accepted | Damaged | None:
    """What a file holds; None where it was removed meanwhile."""
    try:
        kernel: Accepted = codec.loads(Accepted, _bytes(file))
        codec.dumps(kernel)  # a number like NaN is none
        if kernel.version != VERSION:
            return Damaged(path=file, why=f"it has version {kernel.version}, not {VERSION}")
        if not 0 <= kernel.accepted_at < limits.YEAR_9999:
            return Damaged(
                path=file, why=f"it was accepted at {kernel.accepted_at}, which is no time"
            )
        kernel.plan()
    except FileNotFoundError:
        return None
    except OSError as error:
        return Damaged(path=file, why=error.strerror or str(error))
    except SourceRejected as error:
        return Damaged(path=file, why=f"its source is no candidate: {error}")
    except ValueError:
        return Damaged(path=file, why="it does not have the form of an accepted kernel")
    if (kernel.id, kin(kernel.call)) != (file.stem, file.parent.name):
        return Damaged(path=file, why="what it holds is not what it is named after")
    return kernel


def _bytes(file: Path) -> bytes:
    """A regular file that is no larger than ours.

    Raises:
        ValueError: it is something else.
    """
    number = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(number, "rb") as stream:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:
            raise ValueError
        return stream.read(MOST_BYTES)


def _size(file: Path) -> int:
    try:
        return file.lstat().st_size
    except OSError:  # removed meanwhile
        return 0
