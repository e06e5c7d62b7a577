"""What one module or function is at a time, and the kernels that may serve it then."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor

from kernelforge_engine.dispatch.facts import Binding, Facts, sift
from kernelforge_engine.dispatch.instance import attributes_of, tensors_of
from kernelforge_engine.dispatch.kernels import Forms, Kernel, Words
from kernelforge_engine.dispatch.shim import Shim
from kernelforge_engine.dispatch.structure import Structure

FORMS = Forms()


class Serving(Protocol):
    """What is asked of those that hold kernels."""

    kernels: list[Kernel]
    version: object


@dataclass(kw_only=True, eq=False)
class Site:
    """A place in the shim, where calls with the same facts arrive, and its kernels' variants."""

    number: int
    kernels: tuple[Kernel, ...]
    variants: dict[Words, list[tuple[Kernel, int]]]
    shapes: frozenset[torch.Size]  # of the first tensor, to miss at once


@dataclass(kw_only=True, eq=False)
class Way:
    """One way of passing arguments, and the site of each combination of facts that has kernels."""

    binding: Binding
    sites: dict[Facts, Site]


@dataclass(frozen=True, kw_only=True, eq=False)
class Known:
    """What an instance is, and who may serve it; `structure` is None for a function. It is not
    `covered` where kernels were enabled for other models only.

    Never changed but for `ways`, so that a thread sees either all of what was learned or none.
    """

    version: object
    structure: Structure | None
    dtype: torch.dtype  # what torch makes new tensors of, which no argument says
    attributes: Mapping[str, Any]
    named: Mapping[str, Tensor]
    tail: Facts
    kernels: tuple[Kernel, ...]
    covered: bool = False
    tensors: list[Tensor] = field(default_factory=list)
    hooks: Sequence[Mapping[Any, Any]] = ()
    ways: dict[object, Way | None] = field(default_factory=dict)

    def holds(self) -> bool:
        """Whether all of this is still so."""
        if self.dtype is not torch.get_default_dtype():
            return False
        return self.structure is None or self.structure.holds()


NOTHING = Known(
    version=None, structure=None, dtype=torch.float32, attributes={}, named={}, tail=(), kernels=()
)


def look(served: Serving, module: torch.nn.Module | None) -> Known:
    """What a module is now, and the kernels with its attributes and as many tensors."""
    version = served.version
    attributes = attributes_of(module) if module is not None else {}
    named = tensors_of(module) if module is not None else {}
    facts: list[object] = []
    sift(list(attributes.values()), [], facts)
    tail = (*facts, *(Tensor for _ in named))
    covering = [kernel for kernel in served.kernels if kernel.scope.holds(module)]
    kernels = tuple(k for k in covering if k.facts[len(k.facts) - len(tail) :] == tail)
    # One that no kernel fits is not followed any more, so that it costs next to nothing.
    structure = Structure(module) if module is not None and kernels else None
    return Known(
        version=version,
        structure=structure,
        dtype=torch.get_default_dtype(),
        attributes=attributes,
        named=named if kernels else {},
        tail=tail,
        kernels=kernels,
        covered=bool(covering),
        tensors=list(named.values()) if kernels else [],
        hooks=structure.hooks if structure is not None else (),
    )


def seated(shim: Shim, kernels: tuple[Kernel, ...]) -> Site:
    """A new site of these kernels, which all have the same facts.

    Raises:
        NotInstalled: the shim refused one of them.
    """
    name = kernels[0].call.operator
    number = shim.site(name, kernels[0].call.backend)
    variants: dict[Words, list[tuple[Kernel, int]]] = {}
    for kernel in kernels:
        variant = kernel.seated(number, FORMS.number(kernel.region))
        variants.setdefault(kernel.words, []).append((kernel, variant))
    return Site(
        number=number,
        kernels=kernels,
        variants=variants,
        shapes=frozenset(torch.Size(kernel.call.inputs[0].shape) for kernel in kernels),
    )
