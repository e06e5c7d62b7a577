"""Programs that run a CUDA candidate's plan on files of inputs, for a sanitizer or a profiler."""

import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from kernelforge_engine import codec
from kernelforge_engine.calls import Call
from kernelforge_engine.plans import ResolvedPlan
from kernelforge_engine.pool.protocol import Rehearsal
from kernelforge_engine.records import Artifact
from kernelforge_engine.worker.arena import shift_of
from kernelforge_engine.worker.tensors import bytes_of, flat

REHEARSAL = "kernelforge_engine.runner.rehearsal"
OCCUPANCY = "kernelforge_engine.runner.occupancy"


def written(
    folder: Path,
    call: Call,
    plan: ResolvedPlan,
    artifact: Artifact,
    draws: Sequence[Sequence[torch.Tensor]],
) -> Path:
    """The file of an order to launch the plan once for each of `draws`; their values lie beside
    it."""
    order = folder / "order.json"
    known: dict[int, tuple[str, ...]] = {}  # of a draw that is repeated the files are the same
    for number, inputs in enumerate(draws):
        if id(inputs) not in known:
            known[id(inputs)] = _kept(folder, number, inputs)
    files = tuple(known[id(inputs)] for inputs in draws)
    shifts = tuple(shift_of(call, buffer) for buffer in plan.buffers)
    rehearsal = Rehearsal(artifact=artifact, plan=plan, shifts=shifts, draws=files)
    order.write_text(codec.dumps(rehearsal), encoding="utf-8")
    return order


def program(module: str, *arguments: Path) -> list[str]:
    """The command that runs one of the Runner's programs."""
    return [sys.executable, "-P", "-m", module, *map(str, arguments)]


def _kept(folder: Path, number: int, inputs: Sequence[torch.Tensor]) -> tuple[str, ...]:
    names = []
    for index, tensor in enumerate(inputs):
        path = folder / f"{number}-{index}"
        path.write_bytes(bytes_of(flat(tensor)).cpu().numpy().tobytes())
        names.append(str(path))
    return tuple(names)
