"""Kernels that were accepted in one project, as the user's library keeps them for others."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from kernelforge_engine import codec
from kernelforge_engine.calls import Backend, Call
from kernelforge_engine.evidence import Machine
from kernelforge_engine.launch.header import parse_source
from kernelforge_engine.plans import LaunchPlan
from kernelforge_engine.records import Timing, Verdict

VERSION = 1
READABLE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.")
MOST_NAMED = 40  # characters of an operator in the name of a folder


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """A kernel that was found faster than eager: its source, with its launch header, the call it
    was judged on, and what speaks for it there. No value of a tensor is in it, and no model code.

    Attributes:
        sizes: at how many sizes it was judged; `call` is one of them.
        project, node_id, author, note: where it comes from, and the idea.
        accepted_at: seconds since 1970.
    """

    text: str
    call: Call
    verdict: Verdict
    timing: Timing
    machine: Machine
    project: str
    node_id: str
    author: str = ""
    note: str = ""
    sizes: int = 1
    accepted_at: float
    type: Literal["kernelforge.accepted"] = "kernelforge.accepted"
    version: int = VERSION

    @property
    def id(self) -> str:
        """The same kernel for the same call on the same device is one entry: newer evidence takes
        the place of older."""
        machine = [self.machine.device_name, self.machine.arch]
        return codec.sha256(codec.dumps([codec.sha256(self.text), codec.dump(self.call), *machine]))

    @property
    def backend(self) -> Backend:
        return self.call.backend

    @property
    def tier(self) -> str:
        """How thoroughly it was judged."""
        return str(self.verdict.evidence.get("policy", "full"))

    def plan(self) -> LaunchPlan:
        """What its header declares.

        Raises:
            SourceRejected: it has none that can be read.
        """
        return parse_source(self.text, self.backend).plan


def bare(call: Call) -> Call:
    """A call as it is kept: without guard words, which are torch's, and the model's own text."""
    region = call.region and replace(call.region, source="")
    return replace(call, words=(), region=region)


def kin(call: Call) -> str:
    """What a kernel and a call have in common at least, as a name for a folder: the operator, or
    the operators that a region runs, whatever its class is called."""
    steps = [step.operator + step.overload for step in call.region.steps] if call.region else []
    name = "region" if call.region else call.name
    digest = codec.sha256(codec.dumps([name, call.backend, *steps]))
    shown = "".join(c if c in READABLE else "-" for c in name[:MOST_NAMED])
    return f"{shown}-{call.backend}-{digest[:12]}"


def best_first(kernels: Iterable[Accepted], call: Call, device_name: str) -> list[Accepted]:
    """Kernels for a call on a device, the most promising first: those that were judged on this very
    call, on this device, and with the surest gain. Of a source with several records, the best."""
    same = bare(call)
    best: dict[str, Accepted] = {}
    for kernel in sorted(
        kernels,
        key=lambda k: (k.call != same, k.machine.device_name != device_name, -k.timing.low),
    ):
        best.setdefault(kernel.text, kernel)
    return list(best.values())
