"""What this machine offers and withholds, found out once for an engine."""

import os

from kernelforge_engine.children import Children
from kernelforge_engine.errors import NotIsolated
from kernelforge_engine.pool.orders import Probed
from kernelforge_engine.pool.protocol import Isolated

DEEDS = {"read": "read files", "socket": "open sockets", "process": "start processes"}


def load_per_thread() -> float:
    """How many processes wanted each thread that this one may use, over the last minute."""
    return os.getloadavg()[0] / len(os.sched_getaffinity(0))


class Machine:
    """Devices and isolation; with `strict` no candidate runs where something is open to it."""

    def __init__(self, children: Children, *, strict: bool) -> None:
        self._children, self._strict = children, strict
        self._probed: Probed | None = None
        self._isolated: Isolated | None = None

    async def probed(self) -> Probed:
        """Every device a kernel can be written for."""
        if self._probed is None:
            self._probed = await self._children.probe()
        return self._probed

    async def isolation(self) -> Isolated:
        """What surrounds a candidate here."""
        if self._isolated is None:
            self._isolated = await self._children.isolation()
        return self._isolated

    async def trusted(self) -> Probed:
        """The same devices, where candidates may be run.

        Raises:
            NotIsolated: something is open to them, and nothing may be.
        """
        found = await self.isolation() if self._strict else None
        if found and found.open:
            deeds = " and ".join(DEEDS[door] for door in found.open)
            raise NotIsolated(deeds=deeds, level=found.level)
        return await self.probed()
