"""Instructions of a cpu candidate that give another answer each time: clocks, counters, chance.

They are two bytes long, which numbers and distances contain by chance, so that bytes alone cannot
tell; objdump, which comes with the assembler that g++ needs, can. Where there is none, they are
not looked for. An object file may hold no data among its instructions, so that what objdump shows
is what runs, but for a jump into the middle of an instruction.
"""

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from kernelforge_engine.builder import elf

# Of x86-64: time stamps, performance counters, random numbers.
CHANGING = re.compile(rb"\t(rdtscp?|rdpmc|rdpru|rdrand|rdseed)\b")


class Unreadable(Exception):
    """An object file that the disassembler refuses, as it refuses no file that g++ wrote."""


def changing(unit: Path, environment: Mapping[str, str]) -> list[str] | None:
    """The names of such instructions in an object file, or None where nothing can look.

    Raises:
        Unreadable: objdump is there and cannot read it.
    """
    objdump = program(environment)
    if objdump is None:
        return None
    done = subprocess.run(  # noqa: S603
        [objdump, "-d", "--no-show-raw-insn", unit.name],
        cwd=unit.parent, env=dict(environment), capture_output=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise Unreadable
    return sorted({name.decode() for name in CHANGING.findall(done.stdout)})


def program(environment: Mapping[str, str]) -> str | None:
    """objdump, where it is installed."""
    return shutil.which("objdump", path=environment["PATH"])


def data_among_instructions(parts: list[elf.Section]) -> list[str]:
    """The variables that lie in executable sections."""
    executable = {number for number, part in enumerate(parts) if part.flags & elf.EXECUTABLE}
    return [s.name for s in elf.placed(parts) if s.kind == elf.OBJECT and s.section in executable]
