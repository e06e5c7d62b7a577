"""How people and agents name files and functions: FILE.py[:function]."""

from contextlib import suppress
from pathlib import Path

from kernelforge_engine.exchanges import CaptureRequest


def absolute(path: str | Path) -> Path:
    """A path that means the same in every process."""
    path = Path(path)
    with suppress(RuntimeError):  # ~ of a user who does not exist is a name like any other
        path = path.expanduser()
    return path.absolute()


def capture_request(entry: str, inputs: str, device: str) -> CaptureRequest:
    """The request that FILE.py[:function] stands for."""
    file, factory = split_entry(entry)
    return CaptureRequest(file=file, factory=factory, inputs=inputs, device=device)


def split_entry(entry: str) -> tuple[Path, str]:
    """The file and the function of FILE.py[:function], the function being make_model if unnamed."""
    file, colon, factory = entry.rpartition(":")
    if colon and factory.isidentifier():
        return absolute(file), factory
    return absolute(entry), "make_model"
