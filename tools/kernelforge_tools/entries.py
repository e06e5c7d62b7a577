"""How people and agents name files and functions: FILE.py[:function]."""

from contextlib import suppress
from pathlib import Path


def absolute(path: str | Path) -> Path:
    """A path that means the same in every process."""
    path = Path(path)
    with suppress(RuntimeError):  # ~ of a user who does not exist is a name like any other
        path = path.expanduser()
    return path.absolute()


def model_name(entry: str) -> str:
    """FILE.py[:function] in full, so that it means the same in every process."""
    file, factory = split_entry(entry)
    return f"{file}:{factory}"


def split_entry(entry: str) -> tuple[Path, str]:
    """The file and the function of FILE.py[:function], the function being make_model if unnamed."""
    file, colon, factory = entry.rpartition(":")
    if colon and factory.isidentifier():
        return absolute(file), factory
    return absolute(entry), "make_model"
