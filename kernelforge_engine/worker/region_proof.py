"""Whether the program of a region does what the region did, and what that takes."""

import logging
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._C._autograd import DeviceType
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import _disable_current_modes

from kernelforge_engine.dispatch.encode import spec_of
from kernelforge_engine.dispatch.program import Program
from kernelforge_engine.worker.below import below_autograd
from kernelforge_engine.worker.clock import device_us
from kernelforge_engine.worker.eligibility import shape_from_data
from kernelforge_engine.worker.roofline import count_flops
from kernelforge_engine.worker.tensors import bytes_of, copied

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What one call of a region takes."""

    eager_us: float
    flops: int
    launches: int | None


@contextmanager
def unobserved(device: torch.device) -> Iterator[None]:
    """Where nothing that runs is recorded or followed, and random numbers stay as they were."""
    watcher = sys.getprofile()
    sys.setprofile(None)
    try:
        with (
            _disable_current_modes(),
            torch.random.fork_rng([device] if device.type == "cuda" else []),
            torch.no_grad(),
            below_autograd(),
        ):
            yield
    finally:
        sys.setprofile(watcher)


def prove(
    program: Program,
    tensors: Sequence[Tensor],
    own: Collection[int],
    outputs: Sequence[Tensor],
    computing: int,
) -> Cost | str:
    """What one call takes, or why its program is not what the region did.

    Run twice on copies of the inputs, the program must give the region's own outputs bit for bit.
    Parameters, the inputs in `own`, need no copy: no operator of it declares that it writes them.
    `computing` of its operators do more than make a view.
    """
    try:
        return _refusal(program, tensors, own, outputs) or _cost(program, tensors, computing)
    except Exception as error:  # noqa: BLE001  an operator of the user's may raise anything
        log.info("a region a second time: %s", error)
        return f"it cannot be run a second time: {type(error).__name__}"


def _refusal(
    program: Program, tensors: Sequence[Tensor], own: Collection[int], outputs: Sequence[Tensor]
) -> str | None:
    why = shape_from_data(
        lambda *given: program.run(given), program.operators, (tuple(tensors), {}), list(outputs)
    )
    if why is not None:
        return why
    given = [t if i in own else copied(t) for i, t in enumerate(tensors)]
    first, second = (_with_layout(program.run(given)) for _ in range(2))
    if not _same(first, second):
        return "it is random"
    if not _same(first, _with_layout(outputs)):
        return "its operators alone do not give its result"
    return None if _same(_with_layout(given), _with_layout(tensors)) else "it writes an input"


def _cost(program: Program, tensors: Sequence[Tensor], computing: int) -> Cost:
    device = tensors[0].device

    def run() -> Any:
        return program.run(tensors)

    return Cost(
        eager_us=device_us(run, device),
        flops=count_flops(run),
        launches=_kernels(run, device) if device.type == "cuda" else computing,
    )


def _kernels(run: Callable[[], Any], device: torch.device) -> int | None:
    """Kernels that one call launches, None where this machine does not let a profiler see them."""
    torch.cuda.synchronize(device)
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        run()
        torch.cuda.synchronize(device)
    return sum(event.device_type == DeviceType.CUDA for event in seen.events()) or None


def _with_layout(tensors: Sequence[Tensor]) -> list[tuple[Any, Tensor]]:
    return [((t.dtype, t.shape, spec_of(t).stride), t) for t in tensors]


def _same(first: Sequence[tuple[Any, Tensor]], second: Sequence[tuple[Any, Tensor]]) -> bool:
    return len(first) == len(second) and all(
        a[0] == b[0] and torch.equal(_bits(a[1]), _bits(b[1]))
        for a, b in zip(first, second, strict=True)
    )


def _bits(tensor: Tensor) -> Tensor:
    return bytes_of(tensor.reshape(-1))
