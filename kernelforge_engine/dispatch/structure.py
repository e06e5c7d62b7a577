"""Whether a module is still what it was: what its forward may read, by identity."""

from collections.abc import Mapping
from operator import is_, itemgetter
from typing import Any
from weakref import ref

import torch
from torch.nn.modules import module as nn_module

PLAIN = (bool, int, float, str, torch.dtype, torch.device)
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
        self._dicts: list[tuple[dict[str, Any], int, Any, tuple[Any, ...]]] = []
        self.names: list[list[str]] = []
        for number, part in enumerate(parts):
            kept = HOOKS if number else ()
            self._add(part, [n for n in part if n not in OF_TORCH or n in kept])
            for name in HELD:
                if part[name]:
                    self._add(part[name], list(part[name]))
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

    def _add(self, found: dict[str, Any], names: list[str]) -> None:
        """Keep a dictionary, and the values it has under some of its names."""
        self.names.append(names)
        if len(names) == 1:  # of which itemgetter gives the bare value
            names = names * 2
        values_of = itemgetter(*names)
        self._dicts.append((found, len(found), values_of, values_of(found)))

    def values(self) -> list[tuple[Any, ...]]:
        """What was under each of the names."""
        return [
            values[: len(names)]
            for names, (_, _, _, values) in zip(self.names, self._dicts, strict=True)
        ]


class Trace:
    """A structure as it was, which keeps nothing of it alive."""

    def __init__(self, structure: Structure) -> None:
        self._names = structure.names
        self._kept = [tuple(map(_kept, values)) for values in structure.values()]

    def fits(self, structure: Structure) -> bool:
        """Whether a structure is the same one; one that holds lists or the like never is, since
        they cannot be told from others once they are gone."""
        return self._names == structure.names and all(
            (name in HELD or _is_same(kept, value))
            for names, old, new in zip(self._names, self._kept, structure.values(), strict=True)
            for name, kept, value in zip(names, old, new, strict=True)
        )


def _kept(value: Any) -> Any:
    if value is None or type(value) in PLAIN:
        return type(value), value
    if type(value) is tuple:  # such as the strides of a convolution
        items = tuple(map(_kept, value))
        return (tuple, items) if all(isinstance(item, tuple) for item in items) else None
    try:
        return ref(value)
    except TypeError:
        return None


def _is_same(kept: Any, value: Any) -> bool:
    if isinstance(kept, tuple):
        return bool(kept == _kept(value))
    return kept is not None and kept() is value
