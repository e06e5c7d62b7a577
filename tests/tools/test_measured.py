"""What an agent is told of a measured model, from records as a measurement leaves them."""

from kernelforge_engine.measurements import Comparison, KernelSaving, Measurement, Saving
from kernelforge_tools.answer import plain
from kernelforge_tools.measure_model import measured_answer

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
    answer = plain(measured_answer(Measurement(rows=(ROW,), kernels=(*kernels, kernel(99, -5.0)))))
    shown = answer["data"]["kernels"]
    assert [k["node_id"] for k in shown[:3]] == ["n99", "n41", "n40"]
    assert answer["data"]["left_out"].startswith("showing 16 of 41")
    assert "The model is slower with n99." in answer["summary"]
    assert answer["next"] == ['get_node(node_id="n99")']


def test_a_flagged_saving_and_a_failed_mode_are_in_the_summary():
    measured = Measurement(rows=(ROW,), failed={"cuda_graph": "it is for CUDA devices only"})
    answer = plain(measured_answer(measured))
    assert answer["status"] == "faster"
    assert "saved 10 us of 40 predicted, outside [0.5, 1.2] x predicted" in answer["summary"]
    assert "cuda_graph failed: it is for CUDA devices only." in answer["summary"]
    assert answer["data"]["rows"][0]["original_us"] == 123.5
    assert "left_out" not in answer["data"]


def test_a_measurement_without_a_row_has_failed():
    answer = plain(measured_answer(Measurement(rows=(), failed={"eager": "no time"})))
    assert (answer["status"], answer["summary"]) == ("failed", "eager failed: no time.")
