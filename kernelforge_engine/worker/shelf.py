"""Where a capture puts its example tensors: content-addressed files within the project's quota."""

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from kernelforge_engine.errors import QuotaReached, StoreUnavailable
from kernelforge_engine.pool.orders import CaptureOrder
from kernelforge_engine.worker.tensors import blob_path, flat

HEADER_BYTES = 128  # at most what safetensors puts before one tensor


class Shelf:
    """Stores tensors for one capture and remembers which files were new."""

    def __init__(self, order: CaptureOrder) -> None:
        self._folder = Path(order.blobs)
        self._quota, self._room = order.quota_bytes, order.room_bytes
        self.made: list[Path] = []

    def store(self, tensor: torch.Tensor) -> str:
        """Write the memory of a tensor once; the digest that names it.

        Raises:
            StoreUnavailable: the disk is full or read-only, or the quota does not allow it.
        """
        memory = flat(tensor.detach()).cpu().contiguous()
        digest = hashlib.sha256(str(memory.dtype).encode())
        digest.update(memory.view(torch.uint8).numpy().data)
        name = digest.hexdigest()
        target = blob_path(self._folder, name)
        if not target.exists():
            self._take(memory.nbytes + HEADER_BYTES)
            try:
                _write(memory, target)
            except (OSError, SafetensorError) as error:
                raise StoreUnavailable(path=self._folder.parent, why=str(error)) from error
            self.made.append(target)
        return name

    def _take(self, size: int) -> None:
        if self._room is None:
            return
        if size > self._room:
            need = f"an example tensor of {size} bytes"
            raise QuotaReached(path=self._folder.parent, quota=self._quota, need=need)
        self._room -= size


@contextmanager
def shelf(order: CaptureOrder) -> Iterator[Shelf]:
    """A shelf that is cleared of what is new on it when the capture fails."""
    made = Shelf(order)
    try:
        yield made
    except BaseException:
        for path in made.made:
            path.unlink(missing_ok=True)
        raise


def _write(memory: torch.Tensor, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as file:
        scratch = Path(file.name)
    try:
        save_file({"data": memory}, scratch)
        scratch.rename(target)
    finally:
        scratch.unlink(missing_ok=True)
