"""ncu's counters: which ones are asked for, and what its table of them says of each launch.

The table is that of `ncu --csv --page raw --print-units base`: a line of names, a line of units, a
line for every launch. A metric that the device does not have is `n/a` in it.
"""

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite

from kernelforge_engine.profiles import Stall

DURATION = "gpu__time_duration.sum"
CLOCK = "sm__cycles_elapsed.avg.per_second"
ACTIVE, ELAPSED = "sm__cycles_active.avg", "sm__cycles_elapsed.avg"
STALLED = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
EXECUTED = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
AT_PEAK = "sm__sass_thread_inst_executed_op_{}_pred_on.sum.peak_sustained"  # a cycle, all of them
REASONS = (
    "barrier", "branch_resolving", "dispatch_stall", "drain", "gmma", "imc_miss", "lg_throttle",
    "long_scoreboard", "math_pipe_throttle", "membar", "mio_throttle", "misc", "no_instruction",
    "not_selected", "selected", "short_scoreboard", "sleeping", "tex_throttle", "wait",
)  # fmt: skip
NO_STALL = "selected"
SHOWN_STALLS = 3
# Operations of a thread's instruction; those on 16 bits hold two numbers.
OPERATIONS = {
    "fadd": 1, "fmul": 1, "ffma": 2, "dadd": 1, "dmul": 1, "dfma": 2, "hadd": 2, "hmul": 2,
    "hfma": 4,
}  # fmt: skip
FUSED = {"f": "ffma", "d": "dfma", "h": "hfma"}
# A figure of a launch, the metrics that give it, the first one that the device has, and their unit.
SHARES = {
    "dram_peak_share": (
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    ),
    "l2_hit_share": ("lts__t_sector_hit_rate.pct",),
    "l2_peak_share": ("lts__throughput.avg.pct_of_peak_sustained_elapsed",),
    "l1_hit_share": ("l1tex__t_sector_hit_rate.pct",),
    "occupancy_achieved": ("sm__warps_active.avg.pct_of_peak_sustained_active",),
    "sm_busy_share": ("sm__instruction_throughput.avg.pct_of_peak_sustained_active",),
    "compute_peak_share": ("sm__throughput.avg.pct_of_peak_sustained_elapsed",),
    "tensor_pipe_share": (
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
        "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_elapsed",
    ),
}
READ, WRITTEN = "dram__bytes_read.sum", "dram__bytes_write.sum"
LOCAL = (
    "l1tex__t_bytes_pipe_lsu_mem_local_op_ld.sum",
    "l1tex__t_bytes_pipe_lsu_mem_local_op_st.sum",
)
METRICS = (
    DURATION, CLOCK, ACTIVE, ELAPSED, READ, WRITTEN, *LOCAL,
    *(name for names in SHARES.values() for name in names),
    *(EXECUTED.format(name) for name in OPERATIONS),
    *(AT_PEAK.format(name) for name in FUSED.values()),
    *(STALLED.format(name) for name in REASONS),
)  # fmt: skip
NANOSECONDS, BYTES = {"ns": 1.0, "nsecond": 1.0}, {"byte": 1.0}
FIGURES = (
    "duration_us", "sm_mhz", "dram_read_bytes", "dram_write_bytes", "dram_gb_per_s", *SHARES,
    "sm_active_share", "vector_gflop_per_s", "vector_peak_share", "local_traffic_bytes", "stalls",
)  # fmt: skip
NUMBERS = re.compile(r"\d+")
HEADING = "Kernel Name"
NOTICE = "=="  # how a line begins in which ncu speaks of itself
NOT_THERE = "n/a"
LACKING = re.compile(r"Failed to access the following \d+ metrics?: (.+)")


class Unreadable(Exception):
    """What ncu wrote is no table of its counters; the text says what it is."""


@dataclass(frozen=True, kw_only=True)
class Counted:
    """The counters of one launch, without those that the device does not have."""

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    values: Mapping[str, float] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)

    def value(self, name: str, units: Mapping[str, float] | None = None) -> float | None:
        """A counter in the unit that is wanted, or None."""
        found = self.values.get(name)
        if found is None or units is None:
            return found
        factor = units.get(self.units.get(name, ""))
        return None if factor is None else found * factor


def table(text: str) -> list[Counted]:
    """Every launch in what ncu wrote.

    Raises:
        Unreadable: there is none.
    """
    lines = [line for line in text.splitlines() if line and not line.startswith(NOTICE)]
    rows = [row for row in csv.reader(lines) if len(row) > 1]
    start = next((i for i, row in enumerate(rows) if HEADING in row), None)
    if start is None or len(rows) < start + 2:
        raise Unreadable(_said(text))
    names, units = rows[start], dict(zip(rows[start], rows[start + 1], strict=True))
    return [_counted(dict(zip(names, row, strict=True)), units) for row in rows[start + 2 :]]


def lacking(text: str) -> set[str]:
    """The metrics for whose lack ncu refused to work: older ones do not write n/a."""
    found = LACKING.search(text)
    return {name.strip() for name in found[1].split(",")} if found else set()


def _counted(row: Mapping[str, str], units: Mapping[str, str]) -> Counted:
    values = {}
    for name in METRICS:
        text = row.get(name, NOT_THERE).replace(",", "")
        if text and text != NOT_THERE and isfinite(number := float(text)):
            values[name] = number
    return Counted(
        kernel=row[HEADING],
        grid=tuple(map(int, NUMBERS.findall(row["Grid Size"]))),
        block=tuple(map(int, NUMBERS.findall(row["Block Size"]))),
        values=values,
        units=units,
    )


def _said(text: str) -> str:
    """The line in which ncu says what is wrong, or its last one."""
    lines = [line.strip("= ") for line in text.splitlines() if line.strip("= ")]
    errors = [line for line in lines if line.startswith("ERROR")]
    return (errors or lines or ["it wrote nothing"])[0 if errors else -1].removeprefix("ERROR== ")


def figures(counted: Counted) -> dict[str, float | int | tuple[Stall, ...]]:
    """The figures of a profile that a launch's counters give."""
    ns = counted.value(DURATION, NANOSECONDS)
    cycles, rate = counted.value(ELAPSED), counted.value(CLOCK)
    found: dict[str, float | int | tuple[Stall, ...] | None] = {
        "duration_us": None if ns is None else ns / 1e3,
        "sm_mhz": None if rate is None else rate / 1e6,
        **_memory(counted, ns),
        **{name: _share(counted, metrics) for name, metrics in SHARES.items()},
        "sm_active_share": _ratio(counted.value(ACTIVE), cycles),
        **_arithmetic(counted, ns, cycles),
        "stalls": _stalls(counted) or None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _memory(counted: Counted, ns: float | None) -> dict[str, float | int | None]:
    read, written = counted.value(READ, BYTES), counted.value(WRITTEN, BYTES)
    local = [counted.value(name, BYTES) for name in LOCAL]
    moved = None if read is None or written is None else read + written
    return {
        "dram_read_bytes": _whole(read),
        "dram_write_bytes": _whole(written),
        "dram_gb_per_s": _ratio(moved, ns),
        "local_traffic_bytes": _whole(_sum(local)),
    }


def _arithmetic(
    counted: Counted, ns: float | None, cycles: float | None
) -> dict[str, float | None]:
    """Operations outside the tensor cores, and what part they are of what could have been done: a
    fused instruction a cycle in every place there is, each type by its own places."""
    done = {name: counted.value(EXECUTED.format(name)) for name in OPERATIONS}
    flops = _sum([None if n is None else n * OPERATIONS[name] for name, n in done.items()])
    parts = []
    for letter, fused in FUSED.items():
        of_type = _sum([n for name, n in done.items() if name[0] == letter])
        most = counted.value(AT_PEAK.format(fused))
        parts.append(None if not most or not cycles or of_type is None else of_type / most / cycles)
    return {"vector_gflop_per_s": _ratio(flops, ns), "vector_peak_share": _sum(parts)}


def _stalls(counted: Counted) -> tuple[Stall, ...]:
    """What warps waited for most, as parts of all the time they were there."""
    waited = {name: counted.value(STALLED.format(name)) for name in REASONS}
    known = {name: value for name, value in waited.items() if value is not None}
    total = sum(known.values())
    if not total:
        return ()
    most = sorted(known, key=lambda name: -known[name])
    stalls = [Stall(reason=name, share=known[name] / total) for name in most if name != NO_STALL]
    return tuple(stalls[:SHOWN_STALLS])


def _share(counted: Counted, names: Sequence[str]) -> float | None:
    found = [value for name in names if (value := counted.value(name)) is not None]
    return found[0] / 100 if found else None


def _ratio(value: float | None, by: float | None) -> float | None:
    return None if value is None or not by else value / by


def _sum(values: Sequence[float | None]) -> float | None:
    """A sum of which every part is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
