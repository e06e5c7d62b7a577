"""One compilation in a sandboxed fork, with a limit on the clock.

A fork, because a compiler inside this process can crash on a strange source, and because the
sandbox then needs no right to the store: this side writes the result.
"""

import dataclasses
import os
import select
import signal
import time
import traceback
from pathlib import Path

from kernelforge_engine import codec
from kernelforge_engine.builder.compiler import Compiled, Compiler, Unit
from kernelforge_engine.errors import WorkFailed
from kernelforge_engine.sandbox.limits import Limits
from kernelforge_engine.sandbox.lock import Policy, enter

WALL_SECONDS = 120.0
LIMITS = Limits(cpu_seconds=60, address_bytes=6 << 30, file_bytes=256 << 20, open_files=256)
ALLOWED = "60 s of processor time and 6 GiB of memory"
MEND = "free space there, or let TMPDIR name another folder, and run the same call again"
SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives",
    "/dev/urandom", "/proc/cpuinfo",
)  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class Report:
    """What came back: the compiler's result and the isolation it ran in."""

    compiled: Compiled
    sandbox: str = ""


def compile_confined(compiler: Compiler, unit: Unit, folder: Path) -> Report:
    """Compile with nothing readable but the system, the compiler's folders and `folder`.

    Raises:
        WorkFailed: the fork could not do its work.
    """
    status, answer = _forked(compiler, unit, folder)
    if answer is None:
        return _refused(f"error: the compiler did not finish within {WALL_SECONDS:.0f} s")
    if status < 0:
        ending = signal.Signals(-status).name
        return _refused(f"error: the compiler was ended by {ending}; it may use {ALLOWED}")
    if status:
        raise WorkFailed(why=f"the compiler could not be run in {folder}", step=MEND)
    return codec.loads(Report, answer)


def _forked(compiler: Compiler, unit: Unit, folder: Path) -> tuple[int, bytes | None]:
    """How the fork ended, and what it answered; None when its time was over."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os._exit(_inside(compiler, unit, folder, writing))
    os.close(writing)
    answer = _read(reading)
    if answer is None:
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), answer


def _inside(compiler: Compiler, unit: Unit, folder: Path, writing: int) -> int:
    # Nothing may leave this function but its result: the caller's frames belong to the parent.
    try:
        codec.adapter(Report)
        os.chdir(folder)
        policy = Policy(
            read=(*SYSTEM, *compiler.readable),
            write=(str(folder), "/dev/null"),
            spawn=True,
            limits=LIMITS,
        )
        level = enter(policy)
        report = Report(compiled=compiler.compile(unit, folder), sandbox=level)
        os.write(writing, codec.dumps(report).encode())
    except BaseException:  # noqa: BLE001  reported to the parent by the exit code and these words
        traceback.print_exc()
        return 1
    return 0


def _read(reading: int) -> bytes | None:
    """Everything until the other end closes, or None when the time is over."""
    deadline = time.monotonic() + WALL_SECONDS
    parts = bytearray()
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        while select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
            if not (part := pipe.read(1 << 16)):
                return bytes(parts)
            parts += part
    return None


def _refused(log: str) -> Report:
    return Report(compiled=Compiled(log=log))
