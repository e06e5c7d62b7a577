"""The whole isolation of a process in one call, and the level that was really reached."""

import signal
from collections.abc import Callable
from dataclasses import dataclass, field

from kernelforge_engine.sandbox import landlock, libc, limits, privileges, seccomp, witness
from kernelforge_engine.sandbox.limits import Limits

PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What a process may still do.

    Args:
        read: files and folders it may read; everything else is closed.
        write: files and folders it may also change.
        spawn: whether it may start processes and threads.
        native: whether it runs native code of a candidate: then it also gives up capabilities and
            every way to change a file.
        lethal: whether a forbidden system call ends the process, where it would otherwise fail.
        network: whether to leave the network before anything else; threads must not exist yet.
        limits: what it may use.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    spawn: bool = False
    native: bool = False
    lethal: bool = False
    network: bool = True
    limits: Limits = field(default_factory=Limits)


def enter(policy: Policy, start_threads: Callable[[], None] | None = None) -> str:
    """Lock this process for the rest of its life; everything it imports must be imported.

    `start_threads` is called between Landlock, which a thread inherits only when it is started
    afterwards, and the filter that lets no thread start.

    Returns:
        What was reached, such as "landlock7+seccomp+netns+rlimits". Where a forbidden act still
        works it is named behind: "rlimits; open: read, socket, process".
    """
    reached = []
    isolated = policy.network and privileges.leave_network()
    if policy.native:
        privileges.drop_capabilities()
    # A change of credentials may have cleared the wish to die with the parent.
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    limits.restrict(policy.limits)
    if abi := landlock.restrict(policy.read, policy.write):
        reached.append(f"landlock{abi}")
    if start_threads:
        start_threads()
    if seccomp.restrict(spawn=policy.spawn, native=policy.native):
        reached.append("seccomp")
    if isolated:
        reached.append("netns")
    reached.append("rlimits")
    doors = witness.open_doors(spawn=policy.spawn)
    if policy.lethal and seccomp.restrict(spawn=policy.spawn, native=policy.native, lethal=True):
        reached.append("lethal")
    return "+".join(reached) + (f"; open: {', '.join(doors)}" if doors else "")
