"""A kernel of a region, ready to be seated wherever the region may be called."""

import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor

from kernelforge_engine.calls import Call, Json, Region, TensorSpec
from kernelforge_engine.cast.words import words_of
from kernelforge_engine.dispatch.facts import Facts, facts_of
from kernelforge_engine.dispatch.recording import ABSENT
from kernelforge_engine.dispatch.regions import AGAIN
from kernelforge_engine.dispatch.shim import LoadedCode, Shim
from kernelforge_engine.plans import ResolvedPlan

ONCE_MORE = 8  # the tag of a tensor that comes once more: kAgain in native/words.h

Words = tuple[int, ...]


def tensor_words(values: Iterable[Json], inputs: tuple[TensorSpec, ...]) -> Words:
    """What the shim compares of a region's call: its tensors, in order."""
    words: list[int] = []
    for value in values:
        if isinstance(value, list):
            words += tensor_words(value, inputs)
        elif isinstance(value, dict) and "tensor" in value:
            words += words_of([value], inputs)
        elif isinstance(value, str) and value.startswith(AGAIN):
            words += [ONCE_MORE, int(value.removeprefix(AGAIN))]
    return tuple(words)


class Forms:
    """The forms in which regions return their outputs, by number; equal ones are one."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, tuple[bool, ...]], int] = {}
        self.made: list[Any] = []

    def number(self, region: Region) -> int:
        """The number of a region's form; `made` at that place makes it of a list of tensors."""
        absent = tuple(n == ABSENT for n in region.returns)
        key = region.form, absent
        if key not in self._numbers:
            self.made.append(_form(region.form, absent))
            self._numbers[key] = len(self.made) - 1
        return self._numbers[key]


def _form(form: str, absent: tuple[bool, ...]) -> Any:
    if form == "tensor":
        return itemgetter(0)
    kind = tuple if form == "tuple" else list
    if not any(absent):
        return kind

    def filled(outputs: list[Tensor]) -> Any:
        following = iter(outputs)
        return kind(None if gap else next(following) for gap in absent)

    return filled


@dataclass(kw_only=True, eq=False)
class Scope:
    """The modules whose forwards a kernel may replace: all of the process, or those of models."""

    everywhere: bool = False
    modules: dict[int, "weakref.ref[torch.nn.Module]"] = field(default_factory=dict)

    def add(self, model: torch.nn.Module | None) -> None:
        """Extend it to the modules of a model, or to the whole process."""
        if model is None:
            self.everywhere = True
        else:
            self.modules |= {id(m): weakref.ref(m) for m in model.modules()}

    def clear(self) -> None:
        """Let it include nothing."""
        self.everywhere = False
        self.modules.clear()

    def holds(self, module: torch.nn.Module | None) -> bool:
        """Whether it includes a module; a function, None, is the whole process's."""
        if self.everywhere or module is None:
            return True
        found = self.modules.get(id(module))
        return found is not None and found() is module

    def kinds(self) -> set[type]:
        """The classes of the modules it names."""
        return {type(m) for ref in self.modules.values() if (m := ref()) is not None}


class Kernel:
    """One region's kernel of a cast. It is off until it is enabled, and counts its hits. The
    kernels of a cast share a scope."""

    def __init__(
        self,
        shim: Shim,
        call: Call,
        region: Region,
        resolved: ResolvedPlan,
        code: LoadedCode | None = None,
        scope: Scope | None = None,
    ) -> None:
        self.call, self.region = call, region
        self.name = call.operator.partition("::")[2]
        self.scope = scope or Scope()
        self.targets: set[Any] = set()  # what it may stand in for
        self.enabled = False
        values = call.arguments[:-1]  # the last one is its program
        self.names = tuple(a.name for a in values)
        self.facts: Facts = facts_of([a.value for a in values])
        self.words = tensor_words((a.value for a in values), call.inputs)
        self.shim, self._resolved, self.code = shim, resolved, code
        self._switch = shim.switch()
        self._variants: list[int] = []

    def turn(self, *, on: bool) -> None:
        """Serve calls, or no more."""
        self.enabled = on
        self.shim.turn(self._switch, on=on)

    def seated(self, site: int, form: int) -> int:
        """A new variant of this kernel at a site.

        Raises:
            NotInstalled: a function is missing or refused.
        """
        call = replace(self.call, words=self.words)
        variant = self.shim.seat(site, self._switch, form, call, self._resolved, self.code)
        self._variants.append(variant)
        return variant

    @property
    def hits(self) -> int:
        """Calls it has served, wherever it was seated."""
        return sum(map(self.shim.variant_hits, self._variants))
