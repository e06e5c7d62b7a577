"""Submit to verdict on a warm engine: compile, validate and benchmark one candidate, as JSON.

On CUDA the cases are softmax on 8192x8192 float32 and group_norm on 1x128x1024x1024 bfloat16, on
the CPU smaller ones. Every candidate is new text, so nothing comes from the store of artifacts.
Beside it, in the same run, `torch.utils.cpp_extension.load_inline` builds the same device code
behind the usual host function: what most harnesses wait for before they can check anything.
"""

import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import anyio
import torch
from torch.utils.cpp_extension import load_inline

from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import CaptureRequest, Progress, Proposal
from kernelforge_engine.records import Outcome, Status, Variant
from kernelforge_server.settings import resolve

CANDIDATES = 7
CUDA = torch.cuda.is_available()
MODEL = """
import torch
from torch.nn import functional


def make_model():
    return lambda rows, image: (torch.softmax(rows, -1), functional.group_norm(image, 32))


def make_inputs():
    torch.manual_seed(0)
    return torch.randn(ROWS), torch.randn(IMAGE).to(torch.KIND)
"""
SIZES = (
    {"ROWS": "8192, 8192", "IMAGE": "1, 128, 1024, 1024", "KIND": "bfloat16"}
    if CUDA
    else {"ROWS": "512, 1024", "IMAGE": "1, 64, 64, 64", "KIND": "float32"}
)
OPERATORS = ("aten::softmax.int", "aten::group_norm")
HOST = "#include <torch/extension.h>\nvoid nothing(torch::Tensor x) {}\n"


@dataclass(frozen=True, kw_only=True)
class Timed:
    """Seconds of one candidate: until its verdict, of which compiling, and until its timing."""

    verdict: float
    compiling: float
    whole: float


async def main() -> None:
    text = MODEL
    for name, value in SIZES.items():
        text = text.replace(name, value)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.py"
        file.write_text(text)
        async with Engine.open(resolve(Path(folder) / "project")) as engine:
            device = "cuda" if CUDA else "cpu"
            request = CaptureRequest(model=f"{file}:make_model", device=device)
            await engine.capture(request, lambda _progress: None)
            cards = {c.operator: c for c in await engine.cards()}
            for operator in OPERATORS:
                (variant,) = cards[operator].variants
                await measure(engine, variant, Path(folder))


async def measure(engine: Engine, variant: Variant, folder: Path) -> None:
    (offer, *_) = await engine.offers(variant.id)
    for tier in ("quick", "full"):
        each = [await one(engine, variant, offer.text, f"{tier} {n}") for n in range(CANDIDATES)]
        warm = each[1:]
        figures = {
            "benchmark": "verdict_latency",
            "operator": variant.call.name,
            "device": variant.call.backend,
            "tier": tier,
            "compile_s": median(t.compiling for t in warm),
            "verdict_s": median(t.verdict for t in warm),
            "verdict_and_benchmark_s": median(t.whole for t in warm),
        }
        if tier == "quick":
            usual = inline_seconds(offer.text, folder, variant.call.name)
            figures["load_inline_s"] = usual
            figures["load_inline_over_compile"] = usual / figures["compile_s"]
            figures["load_inline_over_verdict_and_benchmark"] = (
                usual / figures["verdict_and_benchmark_s"]
            )
        rounded = {k: round(v, 3) if isinstance(v, float) else v for k, v in figures.items()}
        print(json.dumps(rounded), flush=True)


async def one(engine: Engine, variant: Variant, text: str, name: str) -> Timed:
    """A candidate that no store has seen, from its submission to its timing."""
    steps: dict[str, float] = {}

    def notice(progress: Progress) -> None:
        steps.setdefault(progress.text, time.monotonic())

    start = time.monotonic()
    proposal = Proposal(
        text=f"{text}\n// {name}\n", variant_id=variant.id, tier=name.split()[0], note=name
    )
    submission = await engine.submit(proposal, notice)
    judged = time.monotonic()
    assert submission.verdict.status == Status.VALID, submission.verdict
    assert submission.node
    node = await engine.benchmark(submission.node.id, notice)
    assert node.timing
    assert node.timing.outcome != Outcome.IMPLAUSIBLE
    return Timed(
        verdict=judged - start,
        compiling=steps["validating"] - steps["compiling"],
        whole=time.monotonic() - start,
    )


def inline_seconds(text: str, folder: Path, name: str) -> float:
    """What load_inline needs for the same device code and one host function."""
    code = text.partition("*/")[2]
    module = "usual_" + "".join(c if c.isalnum() else "_" for c in name)
    place = folder / module
    place.mkdir()
    sources = {"cuda_sources": [HOST.replace("nothing", "other") + code]} if CUDA else {}
    start = time.monotonic()
    load_inline(
        name=module,
        cpp_sources=[HOST if CUDA else HOST + code],
        functions=["nothing"],
        build_directory=str(place),
        **sources,
    )
    return time.monotonic() - start


if __name__ == "__main__":
    anyio.run(main)
