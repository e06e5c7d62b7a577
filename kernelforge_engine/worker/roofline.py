"""The least time a call can take: its compulsory bytes and its flops at this machine's rates."""

import logging
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from kernelforge_engine.calls import Call
from kernelforge_engine.worker.clock import call_us

CUDA_COPY_BYTES = 1 << 30
CPU_COPY_BYTES = 1 << 20  # cache-resident, as activations of a small model are
MATRIX = {"cuda": 8192, "cpu": 1024}

log = logging.getLogger(__name__)


class Roofline:
    """The rates of one device, measured when first needed."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._bytes_per_us: float | None = None
        self._flops_per_us: dict[torch.dtype, float] = {}

    @property
    def bytes_per_us(self) -> float:
        """Bytes read plus written by a large copy, per microsecond."""
        if self._bytes_per_us is None:
            count = CUDA_COPY_BYTES if self._device.type == "cuda" else CPU_COPY_BYTES
            source = torch.ones(count, dtype=torch.uint8, device=self._device)
            target = torch.empty_like(source)
            self._bytes_per_us = 2 * count / call_us(lambda: target.copy_(source), self._device)
        return self._bytes_per_us

    def flops_per_us(self, dtype: torch.dtype) -> float:
        """Multiplications plus additions of a large matrix product, per microsecond."""
        if dtype not in self._flops_per_us:
            n = MATRIX[self._device.type]
            a = torch.randn(n, n, device=self._device).to(dtype)
            self._flops_per_us[dtype] = 2 * n**3 / call_us(lambda: a @ a, self._device)
        return self._flops_per_us[dtype]

    def floor_us(self, call: Call, flops: int, dtype: torch.dtype | None) -> float:
        """Microseconds that the bytes or the flops of a call need at least."""
        moved = call_bytes(call) / self.bytes_per_us
        return max(moved, flops / self.flops_per_us(dtype)) if flops and dtype else moved


def call_bytes(call: Call) -> int:
    """Bytes that must be read and written: every input once, every output once."""
    rows = _gathered(call)
    read = sum(rows.get(i, t.data_bytes) for i, t in enumerate(call.inputs))
    return read + sum(o.tensor.data_bytes for o in call.outputs)


def _gathered(call: Call) -> dict[int, int]:
    """An embedding reads only the rows it looks up."""
    if call.operator != "aten::embedding":
        return {}
    return {0: min(call.inputs[0].data_bytes, call.outputs[0].tensor.data_bytes)}


def count_flops(run: Callable[[], Any]) -> int:
    """The flops of one call as torch counts them; 0 where it knows no formula."""
    counter = FlopCounterMode(display=False)
    try:
        with counter:
            run()
    except Exception as error:  # noqa: BLE001  an estimate must never end a capture
        log.info("no flop count: %s", error)
        return 0
    return int(counter.get_total_flops())
