"""A project as days of work leave it, filed through the stores: nothing is run for it."""

from dataclasses import replace
from pathlib import Path

from store_cases import CAPTURE, TIMING, filing, sighting

from kernelforge_engine.exchanges import CastEntrySummary, CastSummary
from kernelforge_engine.measurements import (
    Comparison,
    KernelSaving,
    Measured,
    Measurement,
    Saving,
)
from kernelforge_engine.records import (
    Capture,
    Family,
    Inner,
    Label,
    Member,
    Outcome,
    Status,
)
from kernelforge_engine.store.casts import Casts
from kernelforge_engine.store.database import Database
from kernelforge_engine.store.stores import Stores
from kernelforge_engine.store.usage import UsageBook
from kernelforge_engine.usage import Report

HOSTILE = "</title><script>alert(1)</script>|[x](javascript:alert(1))<img src=//evil>{{ 7 * 7 }}"
SHA = "ab" * 32
NORM, SILU = "v1", "v2"
START = 1_795_000_000.0
# The children of eager and of one another: (parent, speed-up or None where it is not timed).
TREE = ((1, 0.7), (2, 1.32), (3, 1.9), (3, 1.26), (4, 2.84), (2, 1.02), (5, 2.31), (6, None))
FAILED = ((1, Status.COMPILE_FAILED), (2, Status.WRONG_VALUES), (4, Status.WRONG_VALUES),
          (4, Status.WRONG_VALUES), (6, Status.TIMED_OUT))  # fmt: skip


def capture(**changes: object) -> Capture:
    made = replace(
        CAPTURE,
        model="/home/someone/models/decoder.py:make_model",
        device_name="a processor",
        wall_us=8100.0,
        busy_us=7600.0,
        calls=420,
        bound="memory-bound",
        coverage=0.994,
        created_at=START,
    )
    return replace(made, **changes)


def operator(name: str, word: int, share: float, headroom: float, **changes: object):
    seen = sighting(word, share, eager_us=100.0, floor_us=100.0 / headroom, calls=12)
    call = replace(seen.call, operator=f"aten::{name}")
    return replace(seen, call=call, **changes)


def region(name: str, word: int, share: float):
    seen = operator(name, word, share, 60.0, inside=(Inner(operator="aten::mul", calls=3, us=9.0),))
    return replace(seen, call=replace(seen.call, operator=f"region::{name}", region=None))


def family(member):
    """The shape family of one variant."""
    sizes = Member(sizes=(2,), call=member.call, calls=12, eager_us=100.0, floor_us=25.0,
                   examples=member.examples)  # fmt: skip
    found = Family(symbols=("s0",), fits=((0, 1),), members=(sizes,), held_out=())
    return replace(member, family=found)


SILU_CALLS = operator("silu", 2, 0.23, 4.4)
SIGHTINGS = (
    operator("group_norm", 1, 0.41, 3.1),
    SILU_CALLS,
    operator("conv2d", 3, 0.19, 1.02),
    operator("view", 4, 0.05, 1.0, target=False, reason="an output is a view"),
    operator("add", 5, 0.004, 6.0),
    operator("mul", 6, 0.002, 6.0),
    region("UpBlock", 7, 0.52),
    family(SILU_CALLS),
)


def timing(speedup: float):
    outcome = Outcome.FASTER if speedup > 1.1 else Outcome.SLOWER
    return replace(
        TIMING,
        outcome=Outcome.INCONCLUSIVE if 0.95 < speedup < 1.1 else outcome,
        speedup=speedup,
        low=speedup * 0.95,
        high=speedup * 1.06,
        eager_us=100.0,
        candidate_us=100.0 / speedup,
    )


def comparison(mode="eager", low=1.31, **changes: object) -> Comparison:
    saving = Saving(predicted_us=2310.0, measured_us=2150.0, low_us=1990.0, high_us=2300.0,
                    share=0.41, ceiling=1.69)  # fmt: skip
    made = Comparison(
        mode=mode,
        original_us=8100.0,
        patched_us=5950.0,
        speedup=low + 0.05,
        low=low,
        high=low + 0.1,
        quartets=60,
        max_abs=3e-6,
        max_relative=4e-6,
        hits=720,
        run_hits=12,
        saving=saving,
    )
    return replace(made, **changes)


def measured(
    *rows: Comparison, sha: str | None = SHA, saving_us: float = 2100.0, **changes: object
) -> Measured:
    kernel = KernelSaving(node_id="n6", operator="aten::group_norm", run_hits=12,
                          predicted_us=2310.0, saving_us=saving_us, low_us=saving_us - 200.0,
                          high_us=saving_us + 150.0)  # fmt: skip
    found = Measured(
        task="export",
        model=capture().model,
        device="cpu",
        cast_sha256=sha,
        measurement=Measurement(rows=rows, kernels=(kernel,)),
        at=START + 900,
    )
    return replace(found, **changes)


def cast(*nodes: str, sha: str = SHA) -> CastSummary:
    entries = tuple(
        CastEntrySummary(
            node_id=node, operator="aten::group_norm", variant="", calls=1, share=0.4,
            label=Label.GENERATED, outcome=None, eager_us=None, candidate_us=None, speedup=None,
            low=None, high=None,
        )
        for node in nodes
    )  # fmt: skip
    return CastSummary(
        path="/home/someone/decoder.cast", sha256=sha, bytes=1, format_version=1, device_name="",
        torch_version="", archs=(), entries=entries, load="",
    )  # fmt: skip


async def file_tree(stores: Stores, note: str) -> None:
    """A tree of nine nodes and five failures for the group norm, a failure alone for silu."""
    await stores.trees.root(NORM, START)
    for number, (parent, speedup) in enumerate(TREE):
        kept = filing(NORM, f"n{parent}", digest=f"d{number}")
        kept = replace(kept, note=note, at=START + number, device_seconds=2.5)
        node = await stores.trees.file_node(kept)
        if speedup is not None:
            await stores.trees.file_timing(node.id, timing(speedup), 4.0)
    for number, (parent, status) in enumerate(FAILED):
        refused = filing(NORM, f"n{parent}", status=status, digest=f"e{number}")
        refused = replace(refused, author=note, at=START + 20 + number, device_seconds=0.5)
        await stores.trees.file_attempt(refused)
    root = await stores.trees.root(SILU, START)
    await stores.trees.file_attempt(filing(SILU, root.id, status=Status.CRASHED, digest="f"))


def spent(key: str, about: str | None, arm: str | None = None, model: str = "claude-opus-5"):
    tokens = {"input": 40_000, "output": 6_000, "cache_read": 200_000}
    return Report(key=key, reporter="test", model=model, tokens=tokens, about=about, arm=arm)


async def file_project(
    folder: Path, *rows: Measured, note: str = "vectorized loads", **changes: object
) -> None:
    """The whole of it, with these measurements of the one cast it has; `changes` are the
    capture's."""
    async with Database.open(folder, None) as database:
        stores, casts, book = Stores.of(database), Casts(database), UsageBook(database)
        await stores.captures.add(capture(**changes), SIGHTINGS)
        await file_tree(stores, note)
        for number, about in enumerate(("n4", "n6", "a2", "k1", None)):
            await book.add(spent(f"r{number}", about, "first" if number < 2 else None), START)
        await casts.add(cast("n6"), START + 800)
        for one in rows:
            await casts.file(one)
