"""What becomes of ncu's words: figures, and a sentence on what holds a launch back.

ncu_h200.csv is what ncu 2025.3.1 wrote on an H200, without the columns that nobody reads: of three
kernels on 32 Mi numbers, a plain loop, one that spills and one in eight blocks; and of two on 16 Mi
numbers, a copy of four numbers at a time and one that computes long.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from kernelforge_engine.profiles import LaunchProfile
from kernelforge_engine.worker import bottleneck, counters

WORDS = (Path(__file__).parent / "ncu_h200.csv").read_text()
BYTES = 4 * (32 << 20)
DRAM = '"40.78"'


def launches(words=WORDS):
    """The launches, with what is known of them before they run."""
    plain, spilling, idle, copy, long = (counters.figures(one) for one in counters.table(words))
    bare = LaunchProfile(kernel="k", waves=124.1, occupancy_theoretical=1.0)
    return (
        replace(bare, **plain),
        replace(bare, **spilling, spill_store_bytes=720, spill_load_bytes=1200),
        replace(replace(bare, waves=0.0076), **idle),
        replace(bare, **copy),
        replace(bare, **long),
    )


def test_every_launch_has_the_figures_that_ncu_counted():
    found = counters.table(WORDS)
    assert [(one.kernel, one.grid, one.block) for one in found] == [
        ("k", (131072, 1, 1), (256, 1, 1)),
        ("k", (131072, 1, 1), (256, 1, 1)),
        ("k", (8, 1, 1), (256, 1, 1)),
        ("k", (16384, 1, 1), (256, 1, 1)),
        ("k", (65536, 1, 1), (256, 1, 1)),
    ]
    plain = counters.figures(found[0])
    assert set(plain) == set(counters.FIGURES)
    assert plain["duration_us"] == 127.2
    assert plain["sm_mhz"] == pytest.approx(1968, abs=1)
    assert plain["dram_read_bytes"] == pytest.approx(BYTES, rel=0.001)
    # The memory of an H200 gives 4.8 TB/s.
    assert plain["dram_gb_per_s"] / plain["dram_peak_share"] == pytest.approx(4810, rel=0.01)
    assert plain["local_traffic_bytes"] == 0
    assert [stall.reason for stall in plain["stalls"]] == [
        "long_scoreboard", "wait", "not_selected",
    ]  # fmt: skip


def test_what_a_device_does_not_count_is_left_out_and_nothing_is_concluded():
    words = WORDS.replace(DRAM, '"n/a"')
    figures = counters.figures(counters.table(words)[0])
    assert "dram_peak_share" not in figures
    assert figures["dram_read_bytes"] > 0
    plain = launches(words)[0]
    assert (bottleneck.bound(plain), bottleneck.sentence(plain)) == (None, None)


def test_a_figure_in_another_unit_is_left_out_and_never_misread():
    figures = counters.figures(counters.table(WORDS.replace('"ns"', '"week"'))[0])
    assert {"duration_us", "dram_gb_per_s", "vector_gflop_per_s"}.isdisjoint(figures)
    assert figures["dram_peak_share"] == pytest.approx(0.4078)


def test_words_without_a_table_are_told_as_ncu_put_them():
    words = "==PROF== Connected to process 7\n==ERROR== Cuda driver is not compatible\n"
    with pytest.raises(counters.Unreadable, match=r"^Cuda driver is not compatible$"):
        counters.table(words)
    with pytest.raises(counters.Unreadable, match="it wrote nothing"):
        counters.table("")


def test_metrics_that_an_older_ncu_stumbles_over_are_known_by_name():
    words = "==ERROR== Failed to access the following 2 metrics: a__b.sum, c__d.avg\n"
    assert counters.lacking(words) == {"a__b.sum", "c__d.avg"}
    assert counters.lacking(WORDS) == set()


def test_the_bottleneck_is_named_with_the_figures_it_rests_on():
    plain, spilling, idle, copy, long = launches()
    assert [bottleneck.bound(one) for one in (plain, spilling, idle, copy, long)] == [
        "compute-bound", "memory-bound", "latency-bound", "memory-bound", "compute-bound",
    ]  # fmt: skip
    assert bottleneck.sentence(copy).startswith("memory-bound: device memory ran at 72% of peak")
    assert bottleneck.sentence(plain).startswith(
        "compute-bound: the multiprocessors' instruction pipes ran at 63% of peak, and 60% or more "
        "is a bound; 57% of their time its warps waited for loads from device memory"
    )
    assert bottleneck.sentence(spilling).endswith(
        "it is short of registers: a thread spills 720 bytes and reads back 1200."
    )
    assert "its grid takes 0.76% of the places for blocks" in bottleneck.sentence(idle)


def test_the_cache_is_named_where_what_passes_through_it_does_not_keep_memory_busy():
    copy = launches()[3]
    assert copy.l2_peak_share > copy.dram_peak_share
    cached = replace(copy, dram_peak_share=0.3)
    assert bottleneck.sentence(cached).startswith("memory-bound: the L2 cache ran at 86% of peak")


def test_warps_that_are_ready_beside_others_are_no_bottleneck():
    long = launches()[4]
    assert long.stalls[0].reason == "not_selected"
    assert "waited" not in bottleneck.sentence(long)


def test_few_places_for_warps_are_named_with_what_takes_them():
    idle = launches()[2]
    crowded = replace(
        idle, waves=4.0, occupancy_theoretical=0.25, occupancy_limited_by=("shared_memory",)
    )
    said = bottleneck.sentence(crowded)
    assert "at most 25% of the places for warps can be taken, limited by shared memory" in said
