"""The least time a call can take: its compulsory bytes and its flops at this machine's rates."""

import json
import logging
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from kernelforge_engine import codec
from kernelforge_engine.calls import Call
from kernelforge_engine.records import Bound
from kernelforge_engine.worker.clock import device_us
from kernelforge_engine.worker.machine import device_name
from kernelforge_engine.worker.traffic import call_bytes

MOVED_BYTES = {"cuda": 1 << 30, "cpu": 1 << 20}  # of a cpu cache-resident, as small activations are
MATRIX = {"cuda": 8192, "cpu": 1024}
LEAST_SHARE = 16  # how much smaller a measurement may be made where memory is short
ROUNDS = 3  # another process may have kept the machine busy during one
LOOKS = {"cuda": 1, "cpu": 5}  # a processor may be busy with other work for all of a look
BUSY = 0.6  # below this part of the wall time the device waits for its next kernel
MEMORY = "memory"
METHOD = 1  # raised when rates are measured in another way, so that kept ones are not used

log = logging.getLogger(__name__)


class Roofline:
    """The rates of one device, kept in a cache folder for a machine and a torch: the best of the
    first looks, one look for each process. A file that is damaged or cannot be written only costs
    another look.
    """

    def __init__(self, device: torch.device, cache: Path) -> None:
        self._device = device
        threads = torch.get_num_threads() if device.type == "cpu" else 0
        self._machine = [device_name(device), str(torch.__version__), threads, METHOD]
        digest = codec.sha256(json.dumps(self._machine))
        self._file = cache / "rates" / f"{digest[:16]}.json"
        self._seen: dict[str, float] = {}

    @property
    def bytes_per_us(self) -> float:
        """Bytes read plus written per microsecond, by whatever moves most of them: reading is
        faster than writing as well."""
        return self._rate(MEMORY, self._moved)

    def flops_per_us(self, dtype: torch.dtype) -> float:
        """Multiplications plus additions of a large matrix product, per microsecond."""
        name = str(dtype).removeprefix("torch.")
        if dtype == torch.float32:  # a model may allow its products fewer bits
            name += f" {torch.get_float32_matmul_precision()}"
        return self._rate(name, lambda share: self._multiplied(dtype, share))

    def floor_us(self, call: Call, flops: int, dtype: torch.dtype | None) -> float:
        """Microseconds that the bytes or the flops of a call need at least."""
        return max(self.memory_us(call_bytes(call)), self.compute_us(flops, dtype))

    def memory_us(self, count: int) -> float:
        """Microseconds that moving bytes takes at least."""
        return count / self.bytes_per_us

    def compute_us(self, flops: int, dtype: torch.dtype | None) -> float:
        """Microseconds that flops take at least; 0 where no rate says so."""
        return flops / self.flops_per_us(dtype) if flops and dtype else 0.0

    def _rate(self, name: str, measured: Callable[[int], float]) -> float:
        if name not in self._seen:
            kept = self._read()
            rate, looks = kept.get(name, (0.0, 0))
            if looks < LOOKS[self._device.type]:
                rate = max(rate, _with_less_memory(measured))
                self._write(kept | {name: (rate, looks + 1)})
            self._seen[name] = rate
        return self._seen[name]

    def _moved(self, share: int) -> float:
        count = MOVED_BYTES[self._device.type] // share
        source = torch.ones(count // 4, device=self._device)
        target = torch.empty_like(source)
        return max(
            2 * count / self._best_us(lambda: torch.neg(source, out=target)),
            2 * count / self._best_us(lambda: target.copy_(source)),
            count / self._best_us(lambda: torch.sum(source)),
        )

    def _multiplied(self, dtype: torch.dtype, share: int) -> float:
        n = MATRIX[self._device.type] // share
        a = torch.randn(n, n, device=self._device).to(dtype)
        out = torch.empty_like(a)
        return 2 * n**3 / self._best_us(lambda: torch.mm(a, a, out=out))

    def _best_us(self, run: Callable[[], Any]) -> float:
        return min(device_us(run, self._device) for _ in range(ROUNDS))

    def _read(self) -> dict[str, tuple[float, int]]:
        """The rates on file, each with the number of looks it is the best of."""
        try:
            found = json.loads(self._file.read_text(encoding="utf-8"))
            if found["machine"] != self._machine:
                return {}
            rates = {
                str(k): (float(rate), int(looks)) for k, (rate, looks) in found["rates"].items()
            }
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}
        return {name: kept for name, kept in rates.items() if 0 < kept[0] < float("inf")}

    def _write(self, rates: dict[str, tuple[float, int]]) -> None:
        scratch = self._file.with_suffix(f".{uuid.uuid4().hex}")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            scratch.write_text(json.dumps({"machine": self._machine, "rates": rates}))
            scratch.replace(self._file)
        except OSError as error:
            log.info("the rates of this machine are not kept: %s", error)
        finally:
            with suppress(OSError):
                scratch.unlink(missing_ok=True)


def _with_less_memory(measured: Callable[[int], float]) -> float:
    """A rate at full size, or at smaller ones where a model fills the device's memory."""
    share = 1
    while share < LEAST_SHARE:
        try:
            return measured(share)
        except torch.OutOfMemoryError:
            share *= 2
    return measured(share)


def bound_of(
    wall_us: float | None, busy_us: float, floors: Iterable[tuple[float, float]]
) -> Bound | None:
    """What holds a model back; `floors` are (memory, compute) microseconds of all its calls, each
    already multiplied by how often it was called. None where the model's own time is not known."""
    if not wall_us:
        return None
    if busy_us < BUSY * wall_us:
        return "launch-bound"
    memory = compute = 0.0
    for moved, computed in floors:
        memory += moved if moved >= computed else 0.0
        compute += computed if computed > moved else 0.0
    return "compute-bound" if compute > memory else "memory-bound"


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
