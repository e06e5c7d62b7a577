"""What other work on the machine does to times."""

import os

MOST = 1.5  # load over threads: a benchmark by itself keeps no more than its threads busy


def is_busy(load: float, threads: int) -> bool:
    """Whether more wants to run than one measurement alone."""
    return load > MOST * threads


def busy_now() -> str | None:
    """What to expect of benchmarks on the processors that this process may use, by the load of the
    last minute."""
    load, threads = os.getloadavg()[0], len(os.sched_getaffinity(0))
    if not is_busy(load, threads):
        return None
    return (
        f"The machine is busy (load {load:.1f} on {threads} threads): until it is calm, times on "
        "the CPU are inconclusive, and shares and gains of a capture are wrong."
    )
