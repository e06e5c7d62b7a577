"""Running a CUDA candidate for its profile: once to see how its launches fit, once under ncu.

The plan runs twice under ncu, and the launches of the second time are counted: the first brings the
device to its clocks.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from math import prod
from pathlib import Path

import torch

from kernelforge_engine import codec
from kernelforge_engine.builder.toolkit import ncu
from kernelforge_engine.calls import Json
from kernelforge_engine.errors import NotProfiled
from kernelforge_engine.plans import ResolvedLaunch
from kernelforge_engine.pool.orders import ProfileOrder
from kernelforge_engine.pool.program import Program
from kernelforge_engine.pool.protocol import Inspected, Residency
from kernelforge_engine.profiles import LaunchProfile
from kernelforge_engine.worker import bottleneck, counters
from kernelforge_engine.worker.counters import Counted, Unreadable
from kernelforge_engine.worker.rehearsing import OCCUPANCY, REHEARSAL, program, written

SECONDS = 240.0
INSPECTION_SECONDS = 60.0
MOST_LAUNCHES = 16
COUNTERS = "counters"
REFRESH = "then profile it again with refresh=true"
NOT_INSTALLED = (
    "ncu, a part of the CUDA toolkit, is not installed. Next: install Nsight Compute, "
    f"so that ncu is on the PATH, {REFRESH}"
)
FORBIDDEN = (
    "this user may not read the device's performance counters (ERR_NVGPUCTRPERM). Next: have the "
    "NVIDIA driver loaded with NVreg_RestrictProfilingToAdminUsers=0, or run the server with the "
    f"capability CAP_SYS_ADMIN, {REFRESH}"
)
PERMISSION = "ERR_NVGPUCTRPERM"
OTHERS = "it counted other kernels than those of the plan"
REFUSED = (
    "ncu: {why}. Next: run ncu by itself on a program that uses the device, mend what it reports, "
    f"{REFRESH}"
)
NO_SPILLS = "the binary was built before its spills were noted"
NO_LIMIT = "the driver fits another number of blocks than any one resource explains"


class NotCounted(Exception):
    """There are no counters; the text says why and what to do."""


class Counting:
    """The launches of one order, as far as they can be measured here."""

    def __init__(self, order: ProfileOrder, inputs: Sequence[torch.Tensor]) -> None:
        self._order, self._inputs = order, inputs
        self._planned = order.plan.launches[:MOST_LAUNCHES]

    def launches(self) -> tuple[tuple[LaunchProfile, ...], dict[str, str]]:
        """The first launches of the plan, and why figures are missing."""
        order = self._order
        with tempfile.TemporaryDirectory(prefix="kernelforge-") as folder:
            draws = [self._inputs, self._inputs]
            call, plan = order.variant.call, order.plan
            file = written(Path(folder), call, plan, order.artifact, draws)
            launches, lacking = self._placed(self._inspected(file))
            try:
                counted = self._counted(file)
            except NotCounted as why:
                return launches, {**lacking, COUNTERS: str(why)}
        pairs = zip(launches, counted, strict=True)
        found = tuple(_with(launch, counts) for launch, counts in pairs)
        return found, {**lacking, **_absent(counted)}

    def _inspected(self, file: Path) -> Inspected:
        answer = file.with_name("occupancy.json")
        command = program(OCCUPANCY, file, answer)
        run = Program(command, self._order.environment, file.with_name("occupancy.txt"))
        status = run.ended(INSPECTION_SECONDS)
        if status or not answer.is_file():
            words = (run.words.strip().splitlines() or ["it wrote nothing"])[-1]
            raise NotProfiled(what="the candidate", why=words)
        return codec.loads(Inspected, answer.read_bytes())

    def _placed(self, inspected: Inspected) -> tuple[tuple[LaunchProfile, ...], dict[str, str]]:
        """The launches with what is known before any of them runs."""
        resources = self._order.artifact.resources
        fits = inspected.launches[: len(self._planned)]
        pairs = zip(self._planned, fits, strict=True)
        found = tuple(_placed(launch, fit, resources.get(launch.kernel)) for launch, fit in pairs)
        lacking = {}
        if any(launch.spill_load_bytes is None for launch in found):
            lacking["spill_store_bytes, spill_load_bytes"] = NO_SPILLS
        if any(not launch.occupancy_limited_by for launch in found):
            lacking["occupancy_limited_by"] = NO_LIMIT
        return found, lacking

    def _counted(self, file: Path) -> list[Counted]:
        """The counters of the launches, asked for again without what this ncu or device lacks.

        Raises:
            NotCounted: there are none.
        """
        profiler = ncu()
        if profiler is None:
            raise NotCounted(NOT_INSTALLED)
        text = self._said(profiler, file, counters.METRICS)
        if missing := counters.lacking(text):
            rest = [name for name in counters.METRICS if name not in missing]
            text = self._said(profiler, file, rest)
        try:
            counted = counters.table(text)
        except Unreadable as why:
            refusal = REFUSED.format(why=str(why).rstrip("."))
            raise NotCounted(FORBIDDEN if PERMISSION in text else refusal) from why
        symbols = [self._order.artifact.symbols[launch.kernel] for launch in self._planned]
        if [one.kernel for one in counted] != symbols:
            raise NotCounted(REFUSED.format(why=OTHERS))
        return counted

    def _said(self, profiler: Path, file: Path, metrics: Sequence[str]) -> str:
        """What ncu writes of the second time the plan runs."""
        log = file.with_name("counters.csv")
        options = {
            "--csv": (), "--page": ("raw",), "--print-units": ("base",),
            "--print-kernel-base": ("mangled",), "--clock-control": ("none",),
            "--launch-skip": (str(len(self._order.plan.launches)),),
            "--launch-count": (str(len(self._planned)),),
            "--log-file": (str(log),), "--metrics": (",".join(metrics),),
        }  # fmt: skip
        given = [word for name, values in options.items() for word in (name, *values)]
        command = [str(profiler), *given, *program(REHEARSAL, file)]
        run = Program(command, self._order.environment, file.with_name("ncu.txt"))
        if run.ended(SECONDS) is None:
            why = f"ncu took more than {SECONDS:.0f} s. Next: profile it on smaller inputs"
            raise NotCounted(why)
        text = log.read_text("utf-8", errors="replace") if log.is_file() else ""
        return text if counters.HEADING in text else f"{text}\n{run.words}"


def _placed(launch: ResolvedLaunch, fit: Residency, built: Json) -> LaunchProfile:
    spilt = built if isinstance(built, dict) else {}
    limits = [name for name, count in fit.limits.items() if count == fit.blocks_per_multiprocessor]
    places = fit.multiprocessors * fit.most_warps
    return LaunchProfile(
        kernel=launch.kernel,
        grid=launch.grid,
        block=launch.block,
        cluster=launch.cluster,
        registers_per_thread=fit.registers,
        static_shared_bytes=fit.static_shared_bytes,
        dynamic_shared_bytes=launch.shared,
        local_bytes=fit.local_bytes,
        spill_store_bytes=_number(spilt.get("spill_store_bytes")),
        spill_load_bytes=_number(spilt.get("spill_load_bytes")),
        resident_blocks=fit.resident_blocks,
        waves=prod(launch.grid) / fit.resident_blocks if fit.resident_blocks else None,
        occupancy_theoretical=fit.resident_blocks * fit.warps_per_block / places,
        occupancy_limited_by=tuple(limits),
    )


def _with(launch: LaunchProfile, counted: Counted) -> LaunchProfile:
    figures = counters.figures(counted)
    measured: LaunchProfile = replace(launch, **figures)  # type: ignore[arg-type]
    return replace(
        measured, bound=bottleneck.bound(measured), bottleneck=bottleneck.sentence(measured)
    )


def _absent(counted: Sequence[Counted]) -> dict[str, str]:
    """The figures that some launch lacks although it was counted."""
    known = [counters.figures(one) for one in counted]
    lacking = [name for name in counters.FIGURES if any(name not in found for found in known)]
    why = "ncu has no such counter on this device"
    return {", ".join(lacking): why} if lacking else {}


def _number(value: Json) -> int | None:
    return value if isinstance(value, int) else None
