"""Where a capture puts its example tensors: content-addressed files within the project's quota."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from kernelforge_engine.errors import QuotaReached, StoreUnavailable
from kernelforge_engine.pool.orders import CaptureOrder
from kernelforge_engine.store.blobs import Stage, staged
from kernelforge_engine.worker.tensors import SAMPLED, flat, sample

HEADER_BYTES = 128  # at most what safetensors puts before one tensor


class Shelf:
    """Stores tensors for one capture; `stored_bytes` is what that added to the project."""

    def __init__(self, order: CaptureOrder, stage: Stage) -> None:
        self._folder = Path(order.blobs)
        self._stage = stage
        self._quota, self._room = order.quota_bytes, order.room_bytes
        self.stored_bytes = 0

    def store(self, tensor: torch.Tensor) -> str:
        """Write the memory of a tensor once; the digest that names it.

        Raises:
            StoreUnavailable: the disk is full or read-only, or the quota does not allow it.
        """
        return self._store("", flat(tensor.detach()).cpu().contiguous())

    def store_sample(self, tensor: torch.Tensor) -> str:
        """Write values drawn from a tensor instead; the name says so, see worker.tensors.fetch.

        Raises:
            StoreUnavailable: as for store.
        """
        return self._store(SAMPLED, sample(tensor.detach()).cpu().contiguous())

    def publish(self, names: set[str]) -> None:
        """Make the blobs that the capture names part of the project.

        Raises:
            StoreUnavailable: the disk is full or read-only.
        """
        with self._refusals():
            self._stage.publish(names)

    def _store(self, prefix: str, memory: torch.Tensor) -> str:
        digest = hashlib.sha256(str(memory.dtype).encode())
        digest.update(memory.view(torch.uint8).numpy().data)
        name = prefix + digest.hexdigest()
        if not self._stage.has(name):
            self._take(memory.nbytes + HEADER_BYTES)
            with self._refusals():
                self.stored_bytes += _written(memory, self._stage.path(name))
        return name

    def _take(self, size: int) -> None:
        if self._room is None:
            return
        if size > self._room:
            need = f"an example tensor of {size} bytes"
            raise QuotaReached(path=self._folder.parent, quota=self._quota, need=need)
        self._room -= size

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except (OSError, SafetensorError) as error:
            raise StoreUnavailable(path=self._folder.parent, why=str(error)) from error


@contextmanager
def shelf(order: CaptureOrder) -> Iterator[Shelf]:
    """A shelf; what was not published is gone with it.

    Raises:
        StoreUnavailable: the project folder cannot be written.
    """
    try:
        with staged(Path(order.blobs)) as stage:
            yield Shelf(order, stage)
    except OSError as error:
        raise StoreUnavailable(path=Path(order.blobs).parent, why=str(error)) from error


def _written(memory: torch.Tensor, target: Path) -> int:
    """The size of the file that a tensor was written to."""
    scratch = target.with_suffix(".part")
    save_file({"data": memory}, scratch)
    scratch.rename(target)
    return target.stat().st_size
