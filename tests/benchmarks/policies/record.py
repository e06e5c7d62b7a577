"""Records landscapes: every combination of a few decisions for a kernel, judged and timed.

Each operator has a source with choices in it, as an author would make them one after another: how
to go over the data, which arithmetic, whether to vectorise, whether to use several threads. All
combinations are submitted to a real engine; what it said of each is written to recorded.json, which
the study reads. It takes some minutes and wants an idle machine.

    python tests/benchmarks/policies/record.py FOLDER
"""

import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from string import Template

import anyio

from kernelforge_engine.engine import Engine
from kernelforge_engine.errors import MeasurementFailed
from kernelforge_engine.exchanges import CaptureRequest, Proposal
from kernelforge_engine.records import Node, Timing, Variant
from kernelforge_server.settings import resolve

TRIES = 4
MODEL = """
import torch
import torch.nn.functional as F


def make_model():
    def run(x):
        return F.layer_norm(x, (768,)) + F.gelu(x)
    return run


def make_inputs():
    torch.manual_seed(0)
    return torch.randn(40, 768)  # so few that eager takes one thread for them, as they do
"""
VECTORS = {"no": "", "yes": "#pragma omp simd"}
SUMS = {"no": "", "yes": "#pragma omp simd reduction(+:sum)"}
NORM = {
    "pass": {
        "two": "$sums\n    for (long c = 0; c < cols; ++c) sum += (x[c] - mean) * (x[c] - mean);",
        "squares": """$sums
    for (long c = 0; c < cols; ++c) sum += x[c] * x[c];
    sum -= mean * mean * cols;""",
    },
    "sum": {"float": "float", "double": "double"},
    "vector": VECTORS,
    "sums": SUMS,
}
GELU = {
    "erf": {
        "library": "static inline float h(float v) { return erff(v); }",
        "double": "static inline float h(float v) { return (float)erf((double)v); }",
        "tanh": """static inline float h(float v) {
  v *= 1.41421356f;
  return tanhf(0.79788456f * (v + 0.044715f * v * v * v));
}""",
    },
    "vector": VECTORS,
    "rows": {"flat": "1", "rows": "768", "tiles": "64"},
}
HEAD = """/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.shape[0]", "i64:in0.shape[1]"]
*/
#include <cmath>
"""
SOURCES = {
    "aten::layer_norm": (
        NORM,
        HEAD
        + """
extern "C" void k(const float* in, float* out, long rows, long cols) {
  for (long r = 0; r < rows; ++r) {
    const float* x = in + r * cols;
    float* y = out + r * cols;
    $sum sum = 0, mean;
    $sums
    for (long c = 0; c < cols; ++c) sum += x[c];
    mean = sum / cols;
    sum = 0;
    $pass
    float s = 1.f / sqrtf((float)(sum / cols) + 1e-5f);
    $vector
    for (long c = 0; c < cols; ++c) y[c] = (float)(x[c] - mean) * s;
  }
}
""",
    ),
    "aten::gelu": (
        GELU,
        HEAD
        + """$erf
extern "C" void k(const float* x, float* y, long rows, long cols) {
  const long n = rows * cols, step = $rows;
  for (long r = 0; r < n; r += step) {
    $vector
    for (long c = r; c < r + step; ++c) y[c] = 0.5f * x[c] * (1.f + h(x[c] * 0.70710678f));
  }
}
""",
    ),
}

Choices = dict[str, dict[str, str]]


def written(text: str, axes: Choices, chosen: dict[str, str]) -> str:
    """The source with these choices; a choice may hold others."""
    values = {axis: axes[axis][name] for axis, name in chosen.items()}
    return Template(Template(text).substitute(values)).substitute(values)


def combinations(axes: Choices) -> Iterator[dict[str, str]]:
    """Every combination of choices."""
    for values in product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


async def main(folder: Path, model: Path) -> None:
    found = {}
    async with Engine.open(resolve(folder / "project")) as engine:
        request = CaptureRequest(model=f"{model}:make_model")
        capture = next(iter(await engine.captures()), None) or await engine.capture(
            request, _silent
        )
        for card in await engine.cards(capture.id):
            if card.operator in SOURCES:
                found[card.operator] = await _recorded(engine, card.variants[0])
    target = Path(__file__).with_name("recorded.json")
    target.write_text(json.dumps({"device": capture.device_name, "operators": found}) + "\n")


async def _recorded(engine: Engine, variant: Variant) -> dict[str, object]:
    axes, text = SOURCES[variant.call.name]
    rows, eager_us = [], [variant.eager_us]
    for chosen in combinations(axes):
        proposal = Proposal(text=written(text, axes, chosen), variant_id=variant.id, tier="quick")
        submission = await engine.submit(proposal, _silent)
        timing = await _timed(engine, submission.node) if submission.node else None
        eager_us += [timing.eager_us] if timing else []
        rows.append([*chosen.values(), round(timing.candidate_us, 2) if timing else None])
        print(variant.call.name, *rows[-1], submission.verdict.status, file=sys.stderr)
    known = {axis: list(choices) for axis, choices in axes.items()}
    return {"eager_us": round(min(eager_us), 2), "axes": known, "rows": rows}


async def _timed(engine: Engine, node: Node) -> Timing | None:
    """The timing of a node, measured where it has none; on a busy machine that may take several."""
    for _ in range(TRIES):
        if node.timing is not None:
            break
        with suppress(MeasurementFailed):
            node = await engine.benchmark(node.id, _silent)
    return node.timing


def _silent(_progress: object) -> None:
    pass


if __name__ == "__main__":
    given = Path(sys.argv[1])
    given.mkdir(parents=True, exist_ok=True)
    (given / "model.py").write_text(MODEL)
    anyio.run(main, given, given / "model.py")
