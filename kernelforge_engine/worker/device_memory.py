"""Device memory of its own, outside torch's pool, that another process can open."""

import logging
from typing import Any

import torch

from kernelforge_engine.runner.driver import CudaError, Driver

log = logging.getLogger(__name__)


class DeviceMemory:
    """One block in torch's context on the current device; `shared` is its handle for others."""

    def __init__(self, size: int) -> None:
        torch.cuda.init()
        torch.cuda.current_stream().synchronize()  # makes torch's context current in this thread
        self._driver, self._size = Driver(), size
        self._address = self._driver.allocate(size)
        try:
            self.shared = self._driver.shared(self._address)
        except CudaError:
            self.close()
            raise

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The block as unsigned bytes, in the protocol that torch reads without copying."""
        return {
            "shape": (self._size,),
            "typestr": "|u1",
            "data": (self._address, False),
            "version": 3,
        }

    def tensor(self) -> torch.Tensor:
        """The block as bytes; it must not be used after `close`."""
        return torch.as_tensor(self, device="cuda")

    def close(self) -> None:
        """Give the block back."""
        torch.cuda.synchronize()
        self._driver.call("cuMemFree_v2", self._address)


def device_memory(size: int) -> DeviceMemory | None:
    """A block that can be shared, or None where the driver refuses to share memory."""
    try:
        return DeviceMemory(size)
    except CudaError as error:
        log.warning("device memory is not shared, the arena is copied instead: %s", error)
        return None
