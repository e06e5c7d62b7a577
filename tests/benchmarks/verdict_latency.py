"""Submit to verdict on a warm engine: compile, validate and benchmark one candidate, as JSON.

Every candidate is new text, so nothing comes from the store of artifacts. The ratio is the whole
verdict over its own compile step alone, measured in the same run.
"""

import json
import tempfile
import time
from pathlib import Path
from statistics import median

import anyio

from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import CaptureRequest, Progress, Proposal
from kernelforge_engine.records import Outcome, Status
from kernelforge_server.settings import resolve

CANDIDATES = 7
MODEL = """
import torch


def make_model():
    return torch.nn.GELU()


def make_inputs():
    torch.manual_seed(0)
    return torch.randn(64, 1536)
"""


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.py"
        file.write_text(MODEL)
        async with Engine.open(resolve(Path(folder) / "project")) as engine:
            await measure(engine, file)


async def measure(engine: Engine, file: Path) -> None:
    await engine.capture(CaptureRequest(model=f"{file}:make_model"), lambda _progress: None)
    (card,) = [c for c in await engine.cards() if c.operator == "aten::gelu"]
    (variant,) = card.variants
    (offer, *_) = await engine.offers(variant.id)
    seconds, compiling = [], []
    for number in range(CANDIDATES):
        text = f"{offer.text}\n// candidate {number}\n"
        steps: dict[str, float] = {}

        def notice(progress: Progress, steps: dict[str, float] = steps) -> None:
            steps[progress.text] = time.monotonic()

        start = time.monotonic()
        proposal = Proposal(text=text, variant_id=variant.id, note=str(number))
        submission = await engine.submit(proposal, notice)
        assert submission.verdict.status == Status.VALID
        assert submission.node
        node = await engine.benchmark(submission.node.id, notice)
        assert node.timing
        assert node.timing.outcome != Outcome.IMPLAUSIBLE
        seconds.append(time.monotonic() - start)
        compiling.append(steps["validating"] - steps["compiling"])
    warm, compile_s = median(seconds[1:]), median(compiling[1:])
    print(
        json.dumps(
            {
                "benchmark": "verdict_latency",
                "median_s": round(warm, 3),
                "compile_s": round(compile_s, 3),
                "verdict_over_compile": round(warm / compile_s, 1),
            }
        )
    )


if __name__ == "__main__":
    anyio.run(main)
