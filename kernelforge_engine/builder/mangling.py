"""Which symbol a kernel name of a plan stands for, by the Itanium C++ ABI's name mangling.

A name without template arguments is matched by its mangled prefix alone. With template arguments
the demangled form decides, or, where no demangler is installed, the mangling of plain arguments.
"""

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence

TYPES = {
    "float": "f", "double": "d", "int": "i", "unsigned": "j", "unsigned int": "j", "long": "l",
    "unsigned long": "m", "long long": "x", "unsigned long long": "y", "char": "c", "bool": "b",
    "short": "s", "unsigned short": "t", "signed char": "a", "unsigned char": "h", "void": "v",
}  # fmt: skip
BOOLEANS = {"true": "Lb1E", "false": "Lb0E"}
# Spellings that mean one thing: casts before literals, suffixes, spaces, bool as a number.
CAST = re.compile(r"\((?:\w|\s|:)+\)(?=-?\d)")
SUFFIX = re.compile(r"(?<=\d)[uUlL]+\b")


def demangled(symbols: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    """The readable form of each symbol; empty where there is no c++filt."""
    program = shutil.which("c++filt", path=environment["PATH"])
    if program is None or not symbols:
        return {}
    done = subprocess.run(  # noqa: S603
        [program, *symbols], env=dict(environment), capture_output=True, text=True, check=False
    )
    lines = done.stdout.splitlines()
    return dict(zip(symbols, lines, strict=True)) if len(lines) == len(symbols) else {}


def names(symbol: str, readable: str | None, kernel: str) -> bool:
    """Whether `symbol` is the kernel that a plan calls `kernel`."""
    if symbol == kernel:
        return True
    name, _, arguments = kernel.partition("<")
    prefix = f"_Z{len(name)}{name}"
    if not arguments:
        return symbol.startswith(prefix) and not symbol.startswith(f"{prefix}I")
    if not symbol.startswith(f"{prefix}I"):
        return False
    wanted = arguments.rpartition(">")[0]
    if readable is not None:
        return _plain(_arguments(readable)) == _plain(wanted)
    return symbol.startswith(f"{prefix}I{_mangled(wanted)}E")


def _arguments(readable: str) -> str:
    """What stands between the first `<` and the `>` that closes it."""
    start, depth = readable.find("<"), 0
    for position in range(start, len(readable)):
        depth += {"<": 1, ">": -1}.get(readable[position], 0)
        if depth == 0:
            return readable[start + 1 : position]
    return ""


def _plain(arguments: str) -> str:
    text = SUFFIX.sub("", CAST.sub("", arguments))
    text = re.sub(r"\btrue\b", "1", re.sub(r"\bfalse\b", "0", text))
    return re.sub(r"\s+", "", re.sub(r"\bunsigned int\b", "unsigned", text))


def _mangled(arguments: str) -> str:
    return "".join(_mangled_one(" ".join(a.split())) for a in arguments.split(","))


def _mangled_one(argument: str) -> str:
    if re.fullmatch(r"\d+", argument):
        return f"Li{argument}E"
    return BOOLEANS.get(argument) or TYPES.get(argument) or f"{len(argument)}{argument}"
