"""What observing costs: the passes of a capture against plain runs, interleaved, as JSON.

Ratios of time and of peak memory for each pass: `keys` counts every call by its key, `examples`
stores the inputs of every target on the disk as well. `capture` is a whole capture, in which every
operator is also tried and timed, in plain runs of the model.
"""

import gc
import json
import re
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import torch
import transformers

from kernelforge_engine.pool.orders import CaptureOrder, ModelOrder
from kernelforge_engine.worker.capture import capture
from kernelforge_engine.worker.examples import examples
from kernelforge_engine.worker.load import Loaded, load
from kernelforge_engine.worker.observe import observing
from kernelforge_engine.worker.recorder import CountingPass, StoringPass
from kernelforge_engine.worker.regions import RegionKeeper, RegionTracer
from kernelforge_engine.worker.sightings import wanted
from kernelforge_engine.worker.trail import ModuleTrail

ROUNDS = 5
MODELS = ("cnn", "transformer", "generation")


def make_cnn() -> torch.nn.Module:
    """ResNet-50."""
    return transformers.ResNetForImageClassification(transformers.ResNetConfig())


def inputs_cnn() -> dict[str, torch.Tensor]:
    """A picture."""
    return {"pixel_values": torch.randn(1, 3, 224, 224)}


def make_transformer() -> torch.nn.Module:
    """BERT of six layers."""
    return transformers.BertModel(transformers.BertConfig(num_hidden_layers=6))


def inputs_transformer() -> dict[str, torch.Tensor]:
    """A text of 128 tokens."""
    ids = torch.randint(5, 30000, (1, 128))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


class Generation(torch.nn.Module):
    """Sixteen tokens after a prompt, with a cache that grows."""

    def __init__(self, model: transformers.LlamaForCausalLM) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The prompt and what follows."""
        return self.model.generate(
            ids, attention_mask=mask, max_new_tokens=16, do_sample=False, eos_token_id=None
        )


def make_generation() -> torch.nn.Module:
    """Llama of six layers, a thousand wide."""
    config = transformers.LlamaConfig(
        vocab_size=8000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=6,
        num_attention_heads=16, num_key_value_heads=4, pad_token_id=0,
    )  # fmt: skip
    return Generation(transformers.LlamaForCausalLM(config))


def inputs_generation() -> tuple[torch.Tensor, torch.Tensor]:
    """A prompt of 32 tokens."""
    ids = torch.randint(5, 8000, (1, 32))
    return ids, torch.ones_like(ids)


def figures(run: Callable[[], object]) -> tuple[float, int]:
    """Seconds, and the largest resident memory in bytes, of one run."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from what is used now
    start = time.perf_counter()
    run()
    seconds = time.perf_counter() - start
    status = Path("/proc/self/status").read_text()
    return seconds, 1024 * int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0])


class Passes:
    """The passes over one model, each of which can be run any number of times."""

    def __init__(self, order: ModelOrder, folder: Path) -> None:
        self.loaded: Loaded = load(order)
        self._order, self._folder = order, folder
        self._trail = ModuleTrail(self.loaded.model)
        self._tracer = RegionTracer(self.loaded.model, self.loaded.device)
        self._counting = CountingPass(
            self._trail, self.loaded.device, self._tracer.step, lambda _count: None
        )
        # Every key is new at first, and tried and timed; a region is recorded twice.
        self.keys()
        self.keys()
        self._targets = wanted(self._counting.seen, self._tracer.results(self._counting.eager_us))

    def plain(self) -> None:
        """Nobody looks."""
        self.loaded.run()

    def keys(self) -> None:
        """Count calls of operators and regions by key."""
        inputs = self.loaded.fresh()
        regions = self._tracer.watching()
        with observing("whole"), self._trail.watching(), regions, self._counting:
            self.loaded.run(inputs)

    def examples(self) -> None:
        """Store an example of every target in a new project."""
        inputs = self.loaded.fresh()
        order = self._capture_order()
        with ExitStack() as stack:
            kept = stack.enter_context(examples(order, self._targets))
            stack.enter_context(observing("whole"))
            stack.enter_context(RegionKeeper(self._tracer, kept.open, kept.keep))
            stack.enter_context(StoringPass(kept.open, kept.keep, self._tracer.step))
            self.loaded.run(inputs)

    def capture(self) -> None:
        """All of it, from loading the model to the report."""
        capture(self._capture_order(), lambda _progress: None)

    def _capture_order(self) -> CaptureOrder:
        blobs, cache = tempfile.mkdtemp(dir=self._folder), str(self._folder / "cache")
        return CaptureOrder(model=self._order, blobs=blobs, cache=cache, max_bytes=4 << 30)


def compared(name: str, folder: Path) -> dict[str, object]:
    """The ratios of one model."""
    model = f"{__file__}:make_{name}"
    passes = Passes(ModelOrder(model=model, inputs=(f"inputs_{name}",), device="cpu"), folder)
    kinds = {"plain": passes.plain, "keys": passes.keys, "examples": passes.examples}
    found: dict[str, list[tuple[float, int]]] = {kind: [] for kind in kinds}
    for _ in range(ROUNDS):
        for kind, run in kinds.items():
            found[kind].append(figures(run))
    seconds = {kind: median(s for s, _ in runs) for kind, runs in found.items()}
    peaks = {kind: median(b for _, b in runs) for kind, runs in found.items()}
    whole, _ = figures(passes.capture)
    return {
        "plain_ms": round(seconds["plain"] * 1000, 1),
        "keys_over_plain": round(seconds["keys"] / seconds["plain"], 2),
        "examples_over_plain": round(seconds["examples"] / seconds["plain"], 2),
        "keys_memory_over_plain": round(peaks["keys"] / peaks["plain"], 2),
        "examples_memory_over_plain": round(peaks["examples"] / peaks["plain"], 2),
        "capture_over_plain": round(whole / seconds["plain"], 1),
    }


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        for name in MODELS:
            ratios = compared(name, Path(folder))
            print(json.dumps({"benchmark": "capture_overhead", "model": name, **ratios}))


if __name__ == "__main__":
    main()
