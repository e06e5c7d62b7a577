"""Resource limits: what a process may use before the kernel stops it, and it alone."""

import contextlib
import resource
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Hard limits; None leaves one as it is. Seconds are of processor time over all threads.

    `address_bytes` must stay None for a process that uses CUDA: its driver reserves far more
    addresses than there is memory.
    """

    cpu_seconds: int | None = None
    address_bytes: int | None = None
    file_bytes: int | None = None
    open_files: int | None = None


def restrict(limits: Limits) -> None:
    """Apply limits, forbid core files, and offer this process first when memory runs out."""
    wanted = {
        resource.RLIMIT_CPU: limits.cpu_seconds,
        resource.RLIMIT_AS: limits.address_bytes,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_CORE: 0,
    }
    for kind, value in wanted.items():
        if value is not None:
            _lower(kind, value)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _lower(kind: int, value: int) -> None:
    hard = resource.getrlimit(kind)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))
