"""The measurement child: a user's model with and without a cast, in a process of its own."""

from pathlib import Path

import numpy as np
import torch

from kernelforge_engine import cast as casts
from kernelforge_engine.exchanges import Notice, Progress
from kernelforge_engine.pool.adopt import channel
from kernelforge_engine.pool.orders import Measured, MeasureOrder
from kernelforge_engine.worker.load import load
from kernelforge_engine.worker.measure import compare
from kernelforge_engine.worker.serve import serve

QUARTETS = 24
SEED = 0  # of the order of samples and the bootstrap; timings differ from run to run anyway


def measure(order: MeasureOrder, notice: Notice) -> Measured:
    """Load the model, then the cast on the model's device, then compare."""
    notice(Progress(done=0, total=3, text="loading the model"))
    loaded = load(order.model)
    loaded.run()
    if loaded.device.type == "cuda":
        torch.cuda.set_device(loaded.device)
    notice(Progress(done=1, total=3, text="loading the cast"))
    cast = casts.load(Path(order.cast), cache=Path(order.cache))
    notice(Progress(done=2, total=3, text="comparing, interleaved"))
    measurement = compare(
        loaded.model,
        loaded.sets,
        cast,
        quartets=QUARTETS,
        rng=np.random.default_rng(SEED),
    )
    notice(Progress(done=3, total=3, text="compared"))
    return Measured(measurement=measurement)


if __name__ == "__main__":
    ours, _ = channel()
    serve(ours, MeasureOrder, measure)
