"""What a model reads of itself, as a recorded graph of it has taken it for granted."""

from collections.abc import Callable
from itertools import count

import torch
from torch import Tensor

from kernelforge_engine.dispatch.instance import tensors_of
from kernelforge_engine.dispatch.signature import is_plain
from kernelforge_engine.dispatch.structure import EVERYWHERE, HOOKS, Structure

PLACE: tuple[Callable[[Tensor], object], ...] = (Tensor.data_ptr, Tensor.stride, Tensor.size)
_epochs = count()
_epoch = [next(_epochs)]


def kernels_changed() -> None:
    """Kernels were enabled or disabled: what was recorded before may run others."""
    _epoch[0] = next(_epochs)


class State:
    """Its attributes and parts by identity, its tensors by where they lie, and the kernels that are
    enabled."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.tensors = list(tensors_of(model).values())
        self.is_plain = all(map(is_plain, self.tensors))
        self.devices = {t.device for t in self.tensors}
        self._epoch = _epoch[0]
        self._structure = Structure(model)
        self._hooks = [*self._structure.hooks, *EVERYWHERE, *(vars(model)[n] for n in HOOKS)]
        self._places = self._now()

    def is_hooked(self) -> bool:
        """Whether somebody's code runs around the model or a part of it."""
        return any(self._hooks)

    def holds(self) -> bool:
        """Whether the model is still the same."""
        return self._structure.holds() and self._now() == self._places

    def is_current(self) -> bool:
        """Whether the same kernels are enabled as when this was seen."""
        return self._epoch == _epoch[0]

    def _now(self) -> list[object]:
        if not self.is_plain:  # which keep it from being recorded
            return []
        return [found for of in PLACE for found in map(of, self.tensors)]
