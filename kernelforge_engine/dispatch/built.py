"""Kernels that were built on this machine, found again when there is no compiler left to ask.

A built kernel is named by its source and by all that the compiler says of itself, so that without
one its name is not known. Here it is noted under what can be known without: the source and the
processor.
"""

import contextlib
import platform
import re
from functools import cache
from pathlib import Path

from pydantic import ValidationError

import kernelforge_engine
from kernelforge_engine import codec
from kernelforge_engine.pool.protocol import Build
from kernelforge_engine.records import Artifact

FOLDER = "built"
FACTS = re.compile(r"^(?:model name|flags|Features|CPU part)\s*:\s*(.*)$", re.MULTILINE)


def remember(order: Build, artifact: Artifact) -> None:
    """Note what was built for an order."""
    path = _path(order)
    # A note that cannot be written is missed only where the compiler goes away later.
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".draft")
        draft.write_text(codec.dumps(artifact))
        draft.replace(path)


def recall(order: Build) -> Artifact | None:
    """What was built for an order on this machine before, or None."""
    try:
        artifact = codec.loads(Artifact, _path(order).read_bytes())
    except (OSError, ValidationError):
        return None
    return artifact if Path(artifact.path).is_file() else None


def _path(order: Build) -> Path:
    facts = [order.text, order.launches, order.arch, kernelforge_engine.__version__, _processor()]
    return Path(order.folder).parent / FOLDER / f"{codec.sha256(codec.dumps(facts))}.json"


@cache
def _processor() -> str:
    """What decides which instructions there are: a home folder may be that of many machines."""
    try:
        told = sorted(set(FACTS.findall(Path("/proc/cpuinfo").read_text())))
    except OSError:
        told = []
    return " ".join([platform.machine(), *told])
