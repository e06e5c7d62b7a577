"""The blobs of a project: content-addressed files that captures share, and their collection.

A capture writes new blobs into a stage of its own and publishes them when it has all of them, so
that one that fails takes nothing away that another has found meanwhile.
"""

import fcntl
import os
import shutil
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kernelforge_engine.exchanges import Collected

SUFFIX = ".safetensors"
STAGES = "staged"
UNLOCKED = "."  # how the name of a stage begins until it is locked
YOUNG_SECONDS = 3600.0  # a capture that runs elsewhere may count on a blob as young as this


def blob_path(folder: Path, name: str) -> Path:
    """Where a blob lies."""
    return folder / name[:2] / f"{name}{SUFFIX}"


class Stage:
    """The new blobs of one capture."""

    def __init__(self, blobs: Path, folder: Path) -> None:
        self._blobs, self._folder = blobs, folder

    def path(self, name: str) -> Path:
        """Where a new blob is written; one that is there under this name is complete."""
        return self._folder / f"{name}{SUFFIX}"

    def has(self, name: str) -> bool:
        """Whether a blob is in the project or in the stage; it counts as young from now on."""
        if self.path(name).exists():
            return True
        try:
            os.utime(blob_path(self._blobs, name))
        except FileNotFoundError:
            return False
        except OSError:  # not ours to touch, but there
            return blob_path(self._blobs, name).exists()
        return True

    def publish(self, names: Collection[str]) -> None:
        """Move the named blobs to where every capture finds them."""
        for name in names:
            if self.path(name).exists():
                _publish(self.path(name), self._blobs)
            else:
                self.has(name)


@contextmanager
def staged(blobs: Path) -> Iterator[Stage]:
    """A stage; what was not published goes with it. What a killed capture left is published first:
    the same capture, run again, finds it.

    Raises:
        OSError: the folder cannot be written.
    """
    adopt(blobs)
    folder = blobs / STAGES / uuid.uuid4().hex
    fresh = folder.with_name(UNLOCKED + folder.name)
    fresh.mkdir(parents=True)
    lock = os.open(fresh, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # it ends with this process, however that ends
        fresh.rename(folder)
        yield Stage(blobs, folder)
    finally:
        for left in (fresh, folder):
            shutil.rmtree(left, ignore_errors=True)
        os.close(lock)


def adopt(blobs: Path) -> int:
    """Publish what captures that were killed had written; how many captures still run."""
    running = 0
    for folder in _entries(blobs / STAGES):
        if folder.name.startswith(UNLOCKED):
            continue
        with suppress(FileNotFoundError):  # another process was faster
            running += not _adopted(folder, blobs)
    return running


def _adopted(folder: Path, blobs: Path) -> bool:
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for file in folder.glob(f"*{SUFFIX}"):
            _publish(file, blobs)
        shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True


def _publish(file: Path, blobs: Path) -> None:
    target = blob_path(blobs, file.name.removesuffix(SUFFIX))
    target.parent.mkdir(parents=True, exist_ok=True)
    os.utime(file)
    file.replace(target)


def collect(blobs: Path, named: Collection[str], now: float) -> Collected:
    """Remove the files that no sighting names and that no capture can be counting on.

    Raises:
        OSError: the folder cannot be written.
    """
    if running := adopt(blobs):
        return Collected(running=running)
    count = size = young = 0
    for file in (file for folder in _entries(blobs) for file in _entries(folder)):
        with suppress(FileNotFoundError):
            found = file.lstat()
            if file.name.removesuffix(SUFFIX) in named:
                continue
            is_young = found.st_mtime > now - YOUNG_SECONDS
            if file.is_dir():  # a stage whose capture was killed before it was locked
                if not is_young:
                    file.rmdir()
            elif is_young:
                young += found.st_size
            else:
                file.unlink()
                count, size = count + 1, size + found.st_size
    return Collected(blobs=count, bytes=size, young_bytes=young)


def sizes(blobs: Path) -> dict[str, int]:
    """The bytes of every published blob."""
    found = {}
    for folder in _entries(blobs):
        for file in _entries(folder):
            with suppress(FileNotFoundError):
                if file.name.endswith(SUFFIX):
                    found[file.name.removesuffix(SUFFIX)] = file.lstat().st_size
    return found


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
