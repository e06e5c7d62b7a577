"""What an agent is told of a measured model or node, from records as a measurement leaves them."""

from dataclasses import replace

import pytest

from kernelforge_engine.benchmarking import standing
from kernelforge_engine.measurements import Comparison, KernelSaving, Measurement, Saving
from kernelforge_engine.records import Capture, Label, Node, Outcome, Timing
from kernelforge_tools.answer import plain
from kernelforge_tools.benchmark import timed
from kernelforge_tools.capture_model import captured
from kernelforge_tools.measure_model import measured_answer

CAST = "model.cast"
SAVING = Saving(
    predicted_us=40.0, measured_us=10.0, low_us=5.0, high_us=15.0, share=0.5, ceiling=2.0,
    flag="outside [0.5, 1.2] x predicted: overlap with other work",
)  # fmt: skip
ROW = Comparison(
    mode="eager", original_us=123.456789, patched_us=100.0, speedup=1.23456789, low=1.1, high=1.3,
    quartets=24, max_abs=0.0, max_relative=0.0, hits=900, run_hits=3, saving=SAVING,
)  # fmt: skip


def kernel(number, saving_us):
    return KernelSaving(
        node_id=f"n{number}", operator="aten::relu", run_hits=1, predicted_us=2.0,
        saving_us=saving_us, low_us=saving_us - 1, high_us=saving_us + 1,
    )  # fmt: skip


def test_the_kernels_that_slow_a_model_come_first_and_a_long_list_is_cut():
    kernels = tuple(kernel(number, float(number)) for number in range(2, 42))
    measured = Measurement(rows=(ROW,), kernels=(*kernels, kernel(99, -5.0)))
    answer = plain(measured_answer(measured, CAST))
    shown = answer["data"]["kernels"]
    assert [k["node_id"] for k in shown[:3]] == ["n99", "n41", "n40"]
    assert answer["data"]["left_out"].startswith("showing 16 of 41")
    assert "The model is slower with n99." in answer["summary"]
    assert answer["next"] == ['get_node(node_id="n99")']


def test_a_flagged_saving_and_a_failed_mode_are_in_the_summary():
    measured = Measurement(rows=(ROW,), failed={"cuda_graph": "it is for CUDA devices only"})
    answer = plain(measured_answer(measured, CAST))
    assert answer["status"] == "faster"
    assert "saved 10 us of 40 predicted, outside [0.5, 1.2] x predicted" in answer["summary"]
    assert "cuda_graph failed: it is for CUDA devices only." in answer["summary"]
    assert answer["data"]["rows"][0]["original_us"] == 123.5
    assert "left_out" not in answer["data"]


def test_a_measurement_without_a_row_has_failed():
    answer = plain(measured_answer(Measurement(rows=(), failed={"eager": "no time"}), CAST))
    assert (answer["status"], answer["summary"]) == ("failed", "eager failed: no time.")


def test_an_unclear_measurement_of_a_restless_machine_is_to_be_made_again():
    row = replace(ROW, low=0.8, high=1.5, fallbacks={"region::Norm": {"first_call": 9}})
    answer = plain(measured_answer(Measurement(rows=(row,)), CAST))
    assert answer["status"] == "no clear difference"
    assert answer["next"][0] == 'measure_model(path="model.cast")'
    assert "model's own code" in answer["data"]["meaning"]["first_call"]
    steady = replace(row, low=0.99, high=1.01)
    assert plain(measured_answer(Measurement(rows=(steady,)), CAST))["next"] == ["list_cards()"]


def timed_node(timing):
    return Node(
        id="n2", variant_id="v1", parent_id="n1", source_digest="d", artifact_digest=None,
        label=Label.GENERATED, author="me", note="", visits=1, timing=timing, verdict=None,
        created_at=0.0,
    )  # fmt: skip


def test_a_win_stands_unless_a_later_benchmark_contradicts_it():
    win = Timing(
        outcome=Outcome.FASTER, speedup=2.0, low=1.9, high=2.1, eager_us=20.0, candidate_us=10.0,
        scope="O", evidence={"attempt": 1, "why": "two comparisons clear the margin"},
    )  # fmt: skip
    vague = replace(
        win, outcome=Outcome.INCONCLUSIVE, speedup=2.5, low=0.7, high=9.0,
        evidence={"attempt": 2, "why": "the times scatter too widely"},
    )  # fmt: skip
    stands = standing(win, vague)
    assert (stands.outcome, stands.low, stands.evidence["attempt"]) == (Outcome.FASTER, 1.9, 2)
    answer = plain(timed(timed_node(stands)))
    assert answer["status"] == "faster"
    assert "inconclusive at 2.5x (the times scatter too widely)" in answer["summary"]
    equal, slower = replace(vague, low=0.9, high=1.1), replace(win, outcome=Outcome.SLOWER)
    for found in (equal, slower, replace(win, speedup=1.95)):
        assert standing(win, found) is found
    assert standing(None, vague) is vague
    assert standing(vague, win) is win


@pytest.mark.parametrize(("load", "is_busy"), [(2.1, False), (7.06, True)])
def test_a_time_that_was_taken_on_a_busy_machine_says_so(load, is_busy):
    timing = Timing(
        outcome=Outcome.INCONCLUSIVE, speedup=12.8, low=3.5, high=30.5, eager_us=40.0,
        candidate_us=9.3, scope="O",
        evidence={
            "why": "the times scatter too widely", "dispatch_us": 8.528,
            "machine": {"threads": 2, "before": {"load": 1.0}, "after": {"load": load}},
        },
    )  # fmt: skip
    answer = plain(timed(timed_node(timing)))
    assert "9.3 us (8.528 us of it dispatch) against 40" in answer["summary"]
    assert ("busy (load 7.06 on 2 threads)" in answer["summary"]) == is_busy
    assert ("busy" in answer["data"]) == is_busy
    assert answer["next"][0] == 'benchmark(node_id="n2")'
    settled = replace(timing, evidence={"why": "it takes as long as eager, within the margin"})
    assert plain(timed(timed_node(settled)))["next"] == ['mcts_select(variant_id="v1")']


@pytest.mark.parametrize(("busy_us", "is_disturbed"), [(95.0, False), (246.0, True)])
def test_a_capture_whose_operators_outlast_the_model_is_doubted(busy_us, is_disturbed):
    capture = Capture(
        id="c1", model="m.py", inputs=(), device="cpu", device_name="a processor",
        torch_version="2.13", wall_us=100.0, busy_us=busy_us, calls=3, output_drift=0.0,
        created_at=0.0, bound="compute-bound",
    )  # fmt: skip
    assert capture.believed_bound == (None if is_disturbed else "compute-bound")
    answer = plain(captured(capture, ()))
    assert ("took 2.5 times as long as the model itself" in answer["summary"]) == is_disturbed
    assert ("doubt" in answer["data"]) == is_disturbed
    assert ("bound" in answer["data"]) != is_disturbed
    busy = plain(captured(capture, (), "The machine is busy."))
    assert busy["data"]["doubt"].startswith("Its operators" if is_disturbed else "The machine")
    assert "bound" not in busy["data"]
