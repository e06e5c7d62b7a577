"""Whether a module is still what it was: what its forward may read, by identity."""

from collections.abc import Mapping
from operator import is_, itemgetter
from typing import Any

import torch
from torch.nn.modules import module as nn_module

HELD = ("_parameters", "_buffers", "_modules")
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
EVERYWHERE: tuple[Mapping[int, Any], ...] = (
    nn_module._global_forward_hooks,
    nn_module._global_forward_pre_hooks,
    nn_module._global_backward_hooks,
    nn_module._global_backward_pre_hooks,
)
# What every module has and no forward reads.
OF_TORCH = frozenset(vars(torch.nn.Module())) - {"training", *HELD}


class Structure:
    """The attributes, parameters, buffers, parts and training flags of a module and its parts.

    `hooks` hold those of its parts, which a kernel in place of their forwards would skip; those of
    the module itself run around its forward.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        parts = [vars(part) for part in module.modules()]
        self.hooks: list[Mapping[Any, Any]] = [p[name] for p in parts[1:] for name in HOOKS]
        if len(parts) > 1:
            self.hooks += EVERYWHERE
        self._dicts = []
        for number, part in enumerate(parts):
            kept = HOOKS if number else ()
            self._dicts.append(_seen(part, [n for n in part if n not in OF_TORCH or n in kept]))
            self._dicts += [_seen(part[name], list(part[name])) for name in HELD if part[name]]
        self._empty = [part[name] for part in parts for name in HELD if not part[name]]

    def holds(self) -> bool:
        """Whether nothing was added, removed or replaced since."""
        try:
            for found, size, values_of, values in self._dicts:
                if len(found) != size or not all(map(is_, values_of(found), values)):
                    return False
        except KeyError:
            return False
        return not any(self._empty)


def _seen(found: dict[str, Any], names: list[str]) -> tuple[dict[str, Any], int, Any, Any]:
    """A dictionary, and how to see that it has the same values under some of its names."""
    if len(names) == 1:  # of which itemgetter gives the bare value
        names = names * 2
    values_of = itemgetter(*names)
    return found, len(found), values_of, values_of(found)
