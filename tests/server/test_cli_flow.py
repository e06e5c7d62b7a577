"""A person's whole way through the command line, read as a program reads it."""

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.calm

RELU = """\
/* kernelforge
[[launch]]
kernel = "rectify"
args = ["in0", "out0", "i64:in0.numel"]
*/
extern "C" void rectify(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
"""
TRIES = 6  # on a busy machine a timing may be inconclusive


def _documents(ended: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ended.stdout.splitlines()]


def _variant(kernelforge, model: Path) -> str:
    (captured,) = _documents(kernelforge("capture", model, "--json"))
    assert captured["capture"]["id"] == "c1"
    assert captured["capture"]["output_drift"] == 0
    (listed,) = _documents(kernelforge("cards", "--json"))
    assert {card["operator"] for card in listed["cards"]} >= {"aten::linear", "aten::relu"}
    relu = next(card for card in listed["cards"] if card["operator"] == "aten::relu")
    (row,) = relu["variants"]
    assert (row["inputs"], row["calls"]) == (["f32[16, 256]"], 2)
    return row["id"]


def _evaluated(kernelforge, variant: str) -> str:
    for _ in range(TRIES):
        ended = kernelforge("evaluate", "--variant", variant, "relu.cpp", "bare.cpp", "--json")
        good, bare = _documents(ended)
        assert (good["file"], good["status"]) == ("relu.cpp", "valid")
        assert (bare["status"], bare["timing"], bare["node_id"]) == ("rejected_source", None, None)
        faster = good["timing"]["outcome"] == "faster"
        assert ended.returncode == (0 if faster else 3)
        if faster:
            return good["node_id"]
    pytest.fail(f"relu was never faster: {good}")


def test_from_a_model_file_to_a_measured_cast(kernelforge, user_projects, tmp_path):
    model = user_projects / "small_mlp" / "model.py"
    (tmp_path / "relu.cpp").write_text(RELU)
    (tmp_path / "bare.cpp").write_text("int x;")
    variant = _variant(kernelforge, model)
    assert kernelforge("export", "-o", "early.cast").returncode in {2, 3}
    node = _evaluated(kernelforge, variant)
    (tree,) = _documents(kernelforge("tree", "--variant", variant, "--json"))
    assert [n["id"] for n in tree["nodes"]][-1] == node

    # Whether so small a kernel helps the whole model is not what this is about.
    (exported,) = _documents(kernelforge("export", "-o", "model.cast", "--keep-all", "--json"))
    assert [entry["node_id"] for entry in exported["entries"]] == [node]
    assert exported["whole_model"]["unknown"] == {}
    again = kernelforge("export", "-o", "model.cast")
    assert (again.returncode, "Next:" in again.stderr) == (2, True)
    (verified,) = _documents(kernelforge("cast", "verify", "model.cast", "--json"))
    assert verified["sha256"] == exported["sha256"]
    wanted = ("--modes", "eager,cuda_graph", "--attribution", "--json")
    (measured,) = _documents(kernelforge("measure", model, "--cast", "model.cast", *wanted))
    (row,) = measured["rows"]
    assert (row["mode"], row["run_hits"], row["max_abs"]) == ("eager", 2, 0)
    assert "CUDA devices only" in measured["failed"]["cuda_graph"]
    assert [kernel["node_id"] for kernel in measured["kernels"]] == [node]
