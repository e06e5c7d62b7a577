"""compute-sanitizer over a CUDA candidate: the same cubin, launched by a process of its own.

Each tool is a run of its own, and all of them run at once. What a tool cannot do here is said; only
what it found is judged.
"""

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from kernelforge_engine.builder.toolkit import compute_sanitizer
from kernelforge_engine.calls import Call
from kernelforge_engine.plans import ResolvedPlan
from kernelforge_engine.pool.program import Program
from kernelforge_engine.records import Artifact, Status
from kernelforge_engine.worker.rehearsing import REHEARSAL, program, written

SECONDS = 240.0
PADDING_BYTES = 4096  # between two allocations, so that one does not end where the next begins
CLEAN = "nothing found"
TOOLS = {
    "memcheck": Status.MEMORY_VIOLATION,
    "initcheck": Status.NONDETERMINISTIC,
    "racecheck": Status.NONDETERMINISTIC,
    "synccheck": Status.WRONG_STRUCTURE,
}
COUNTED = re.compile(r"^=+ ERROR SUMMARY: (\d+) error|SUMMARY: .*\((\d+) errors?,", re.MULTILINE)
FOUND = re.compile(
    r"^=+ ((?:Invalid|Uninitialized|Barrier|Error: |Address|Misaligned|Stack|Divergent)[^\n]*)",
    re.MULTILINE,
)
KERNEL = re.compile(r"^=+ +(?:at|by|and) [^\n]*?\b([A-Za-z_]\w*)(?:\([^\n]*\))?\+0x", re.MULTILINE)
THREAD = re.compile(r"^=+ +by thread (\([\d,]+\)) in block (\([\d,]+\))", re.MULTILINE)
ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+\b")


@dataclass(frozen=True, kw_only=True)
class Watched:
    """What one tool came to: `said` in words, and whether that is a finding."""

    tool: str
    said: str
    is_finding: bool = False
    kernel: str = ""

    @property
    def status(self) -> Status:
        """The verdict that its finding comes to."""
        return TOOLS[self.tool]


def watched(
    call: Call,
    plan: ResolvedPlan,
    artifact: Artifact,
    environment: Mapping[str, str],
    draws: Sequence[Sequence[torch.Tensor]],
) -> list[Watched]:
    """What each tool says of the candidate on these inputs."""
    sanitizer = compute_sanitizer()
    if sanitizer is None:
        why = "not run: compute-sanitizer, a part of the CUDA toolkit, is not installed"
        return [Watched(tool=tool, said=why) for tool in TOOLS]
    with tempfile.TemporaryDirectory(prefix="kernelforge-") as folder:
        order = written(Path(folder), call, plan, artifact, draws)
        running = [_Run(sanitizer, tool, order, environment) for tool in TOOLS]
        return [run.ended() for run in running]


class _Run:
    """One tool at work."""

    def __init__(
        self, sanitizer: Path, tool: str, order: Path, environment: Mapping[str, str]
    ) -> None:
        self._tool, self._log = tool, order.with_name(f"{tool}.log")
        options = ["--tool", tool, "--log-file", str(self._log), "--report-api-errors", "no"]
        if tool == "memcheck":
            options += ["--padding", str(PADDING_BYTES)]
        command = [str(sanitizer), *options, *program(REHEARSAL, order)]
        self._program = Program(command, environment, order.with_name(f"{tool}.txt"))

    def ended(self) -> Watched:
        """What it said, once it has ended."""
        status = self._program.ended(SECONDS)
        if status is None:
            return self._unfinished(f"it took more than {SECONDS:.0f} s")
        log = self._log.read_text("utf-8", errors="replace") if self._log.is_file() else ""
        count = COUNTED.search(log)
        if count is None:
            return self._unfinished(_last_line(log).strip("= "))
        if int(count[1] or count[2]):
            return self._finding(log)
        if status:
            return self._unfinished(_last_line(self._program.words))
        return Watched(tool=self._tool, said=CLEAN)

    def _finding(self, log: str) -> Watched:
        found, kernel, thread = FOUND.search(log), KERNEL.search(log), THREAD.search(log)
        what = found[1] if found else "an error"
        at = f" in {kernel[1]}" if kernel else ""
        by = f", by thread {thread[1]} of block {thread[2]}" if thread else ""
        said = ADDRESS.sub("an address", what).removeprefix("Error: ").rstrip(" :.")
        return Watched(
            tool=self._tool,
            said=f"{said}{at}{by}",
            is_finding=True,
            kernel=kernel[1] if kernel else "",
        )

    def _unfinished(self, why: str) -> Watched:
        return Watched(tool=self._tool, said=f"not run to its end: {ADDRESS.sub('', why)}")


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it wrote nothing"])[-1]
