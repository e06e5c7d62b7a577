"""How much of a cpu candidate's arithmetic is on vectors, read from its machine code.

objdump shows every instruction of the object, once, however often it runs: loops that only handle
what is left over count like those that do the work. Where there is none, or the code is not that of
x86-64, nothing is known.
"""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from kernelforge_engine.builder import disassembly, elf
from kernelforge_engine.profiles import Code

X86_64 = 62
ARITHMETIC = re.compile(
    rb"\tv?(?:add|sub|mul|div|sqrt|max|min|addsub|hadd|fn?m(?:add|sub|addsub|subadd)\d{3})"
    rb"([ps])[sdh]\b[^\n]*"
)
WIDE = ((b"%zmm", 512), (b"%ymm", 256))
NARROW = 128
OTHER_CODE = "instructions are only told apart on x86-64"
NO_OBJDUMP = "objdump, a part of binutils, is not installed"
REFUSED = "objdump cannot read it"


class Unknown(Exception):
    """The code cannot be read here; the text says why."""


def code(path: Path, environment: Mapping[str, str]) -> Code:
    """What the object at `path` computes with.

    Raises:
        Unknown: nothing here can read it.
    """
    if elf.machine(path.read_bytes()) != X86_64:
        raise Unknown(OTHER_CODE)
    program = disassembly.program(environment)
    if program is None:
        raise Unknown(NO_OBJDUMP)
    done = subprocess.run(  # noqa: S603
        [program, "-d", "--no-show-raw-insn", path.name],
        cwd=path.parent, env=dict(environment), capture_output=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise Unknown(REFUSED)
    found: list[bytes] = ARITHMETIC.findall(done.stdout)
    packed = found.count(b"p")
    return Code(
        packed_arithmetic=packed,
        scalar_arithmetic=len(found) - packed,
        vector_bits=_bits(done.stdout, packed),
    )


def _bits(text: bytes, packed: int) -> int:
    """The widest vector; single numbers lie in the narrowest registers as well, so that only
    arithmetic tells of those."""
    return next((bits for name, bits in WIDE if name in text), NARROW if packed else 0)
