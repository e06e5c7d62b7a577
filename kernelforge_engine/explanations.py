"""What every status, timing outcome and rule means: pure data, shown wherever one appears."""

from collections.abc import Mapping
from dataclasses import dataclass

from kernelforge_engine.calls import Json


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """One thing the engine can find: what is checked, why, on what evidence, and what mends it."""

    name: str
    checks: str
    why: str
    evidence: str
    satisfied_by: str


def _entry(name: str, checks: str, why: str, evidence: str, satisfied_by: str) -> Explanation:
    return Explanation(
        name=name, checks=checks, why=why, evidence=evidence, satisfied_by=satisfied_by
    )


STATUSES = (
    _entry(
        "valid",
        "every rule, on the captured inputs and on fresh ones drawn from a secret seed",
        "one set of inputs and a fixed tolerance let constants, zeros and shortcuts pass",
        "the draws, the class of the operator, the sandbox that was reached",
        "nothing more: benchmark it",
    ),
    _entry(
        "rejected_source",
        "that the launch header can be read and every expression in it has a value",
        "the engine launches exactly what the header says, so it must say it without doubt",
        "the field of the header, and what was expected there",
        "a header in the documented format whose expressions use names that exist",
    ),
    _entry(
        "compile_failed",
        "that the source compiles under fixed flags, includes only headers by a plain name, and "
        "that the object asks for nothing but mathematics, memory and OpenMP and reads no clock; "
        "on CUDA that no kernel writes a variable of the file or calls the device runtime",
        "flags of a candidate's own change numerics, what it cannot import it cannot do, and what "
        "depends on earlier calls or on time is right only while it is watched",
        "the compiler's log without host paths, or the imported names",
        "a source without the quoted errors and without calls of the system",
    ),
    _entry(
        "launch_failed",
        "that the artifact loads and takes the launch it declares",
        "a launch that did nothing leaves old memory that may look right",
        "the error of the loader or the driver",
        "a grid, block, shared memory and arguments that fit the kernel and the device",
    ),
    _entry(
        "keeps_state",
        "that a call leaves no count or cache for the next one, and the processor's floating-point "
        "modes as they were",
        "a count can make one call in a thousand wrong, and a changed rounding mode would change "
        "every later result",
        "what changed: a variable of the file, a thread_local one, memory that it keeps, or a mode",
        "tables that are filled once, and for the rest workspaces, local variables or thread_local "
        "scratch that is written before it is read",
    ),
    _entry(
        "crashed",
        "that the process of the candidate outlives it, makes no forbidden system call, and "
        "reports times that explain how long the Judge waited",
        "after a fault nothing that a process says can be believed",
        "the signal or exit code, and what the process wrote last",
        "a kernel that stays inside its buffers and calls nothing of the system",
    ),
    _entry(
        "timed_out",
        "that a run ends within 5 s plus 200 times eager's own time",
        "a kernel that hangs would hold the device for everybody",
        "the time that was allowed",
        "loops that end, and no waiting for other blocks without a cooperative launch",
    ),
    _entry(
        "wrong_structure",
        "that every element of every output is written, and that the code keeps the rules of C++ "
        "(undefined behavior, at promotion)",
        "memory of an earlier run can hold the right answer, and undefined behavior may do "
        "something else with the next compiler",
        "how many elements kept each poison, or the sanitizer's line",
        "a grid and loops that reach the last element, and arithmetic that cannot overflow",
    ),
    _entry(
        "wrong_values",
        "that outputs agree with float64 as closely as eager's own do",
        "a fixed tolerance passes wrong formulas and lower precision",
        "the rule, the draw, the place of the worst element and by how much; never a value",
        "the same mathematics as eager, accumulated in float32 or better",
    ),
    _entry(
        "memory_violation",
        "that nothing outside the buffers is written and, at promotion, that nothing outside them "
        "is read or freed",
        "memory next to a buffer belongs to another tensor in a real model",
        "the guard band that changed, or the sanitizer's line",
        "bounds checks for the last block, tile or vector",
    ),
    _entry(
        "mutated_input",
        "that inputs which the operator does not write are unchanged after every run",
        "the model reads them again afterwards",
        "the input that changed",
        "a workspace for intermediate results",
    ),
    _entry(
        "nondeterministic",
        "that runs on the same inputs give the same bits, whatever was in memory before",
        "a difference means a race, or a read of memory that nobody wrote",
        "the draw on which runs differed",
        "barriers between dependent steps, no atomics on floating-point sums, and workspaces "
        "that are written before they are read or declared as zeroed",
    ),
)
OUTCOMES = (
    _entry(
        "faster",
        "that the lower end of the interval of paired ratios lies above 1 by the margin",
        "the best of many noisy runs is always fast",
        "the interval and how many pairs it rests on",
        "nothing more: export it",
    ),
    _entry(
        "slower",
        "that the upper end of the interval lies below 1 by the margin",
        "a cast must not slow a model down",
        "the interval and how many pairs it rests on",
        "fewer passes over memory, more parallel work, or another idea",
    ),
    _entry(
        "inconclusive",
        "whether the interval lies clearly on one side of 1",
        "a difference within the noise is no difference",
        "the interval, its width and the state of the machine",
        "a larger gain, or an idle machine",
    ),
    _entry(
        "implausible",
        "that a time is not below what the bytes that must be moved need on this device",
        "no kernel beats memory, so such a time is work that was left out or a clock that lied",
        "the time against the measured bandwidth",
        "doing all the work on every call",
    ),
)
RULES = (
    _entry(
        "T1",
        "the root mean square of the error against that of eager's own error",
        "a wrong formula or a lower precision moves the whole output",
        "rms_error_over_bound: 1 is the most that is allowed",
        "the arithmetic of eager, accumulated in float32 or better",
    ),
    _entry(
        "T1 per block",
        "T1 on 256 parts of the output",
        "one bad tile or row hides in the mean of a large output",
        "elements_from: where the part begins; index: its worst element; rms_error_over_bound",
        "the same care in the last tile, row and tail as everywhere",
    ),
    _entry(
        "T2",
        "the worst single element against eager's own worst error",
        "no share of the elements is excused",
        "index: where it is; error_over_bound: 1 is the most that is allowed",
        "handling of the extreme inputs, such as large, tiny or shifted ones",
    ),
    _entry(
        "T2 per binade",
        "every element against the worst that eager does on elements of that size",
        "small results that were flushed to zero hide behind the error of large ones",
        "index: the worst element for its size; error_over_bound: 1 is the most that is allowed",
        "formulas that keep their relative accuracy over the whole range, such as of exp",
    ),
    _entry(
        "T3",
        "that 16-bit results are not all too small or all too large by a part of their last bit",
        "cutting bits off instead of rounding passes every tolerance and adds up over a model",
        "bias_over_bound: 1 is the most that is allowed",
        "rounding to the nearest, ties to even, in every store to 16 bits",
    ),
    _entry(
        "T4",
        "that float32 results use the whole mantissa as often as eager's do",
        "results that were computed in 16 bits and widened have zeros there",
        "share_over_bound: 1 is the most that is allowed",
        "float32 from the loads to the stores",
    ),
    _entry(
        "selection",
        "that a place (index) is in range and holds the value that eager selected, and that sort "
        "and topk name no place twice",
        "models gather with these places, so one that is off by one reads another token",
        "how many places are wrong, and the first of them",
        "comparing values together with their places; among equal values any place will do",
    ),
    _entry(
        "class mask",
        "that NaN and infinities stand where eager or float64 has them",
        "models rely on how NaN and infinities propagate",
        "how many elements differ, and the first of them",
        "comparisons and maxima that let NaN through, and no overflow on the way",
    ),
    _entry(
        "exact",
        "every bit: where the operator copies or selects, of integers, and on the one-hot and "
        "integers draws, on which sums of products are exact in any order",
        "a copy has no rounding that could excuse a difference",
        "how many elements differ, and the first of them",
        "moving values unchanged, all bits of every factor, and sums in float32; argmax, max and "
        "a stable sort take the first of equal values",
    ),
    _entry(
        "address sanitizer",
        "every load and store of a build with AddressSanitizer, guard bands poisoned",
        "a read past a buffer finds something harmless in a test and something else in a model",
        "the kind of access and the line of your file",
        "bounds checks before every load",
    ),
    _entry(
        "memcheck",
        "every access of the device code to memory, each buffer an allocation of its own",
        "a read past a buffer finds something harmless in a test and something else in a model",
        "the kind of access, the kernel, and the thread that made it",
        "bounds checks before every load and store",
    ),
    _entry(
        "initcheck",
        "that device code reads no global memory that nobody wrote",
        "what is there depends on what ran before",
        "the kind of access, the kernel, and the thread that made it",
        'writing a workspace before it is read, or init = "zero" in the header',
    ),
    _entry(
        "racecheck",
        "that two threads reach shared memory in an order that something enforces",
        "a race gives the right result on one device and another on the next",
        "the two accesses and their kernel",
        "a barrier between writing shared memory and reading or writing it again",
    ),
    _entry(
        "synccheck",
        "that barriers are reached by every thread that they wait for",
        "a barrier in a branch is undefined and may hang on another device",
        "the kind of barrier, the kernel, and the thread that reached it",
        "barriers outside of branches and loops that differ from thread to thread",
    ),
    _entry(
        "undefined behavior sanitizer",
        "overflow, shifts, bounds, null and conversions in a build with UBSan",
        "a compiler may assume that undefined behavior never happens",
        "the kind of behavior and the line of your file",
        "unsigned or wider integers, shifts below the width, and indexes inside arrays",
    ),
)
EVERY = (*STATUSES, *OUTCOMES, *RULES)
NAMED = {entry.name: entry for entry in EVERY}


def explained(status: str, evidence: Mapping[str, Json]) -> tuple[Explanation, ...]:
    """What is known about a status or an outcome, and about the rule that its evidence names."""
    names = (status, str(evidence.get("rule", "")))
    return tuple(NAMED[name] for name in names if name in NAMED)
