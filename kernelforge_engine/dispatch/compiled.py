"""Kernels of a cast inside torch.compile.

Inductor would decompose or fuse an operator before the shim could see a call of it. While a cast is
enabled, a pass over the graph that Dynamo hands to Inductor puts a custom operator in the place of
every node that is one call of a served operator with a served key. Inductor keeps a custom operator
as it is and fuses around it. What it does is call the operator it stands for: the guard of the shim
decides then, as in eager code, and compiled code stays right when the cast is disabled.

A graph that needs gradients is left alone, since a custom operator has none, and so are calls that
write to their arguments. Only what is compiled while the cast is enabled has its kernels. Regions
are in compiled_regions.py.
"""

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch._inductor import config
from torch._inductor.custom_graph_pass import CustomGraphPass
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx import Graph, Node, map_arg
from torch.utils import _pytree as pytree

from kernelforge_engine import __version__, codec
from kernelforge_engine.calls import Call, Json, TensorSpec
from kernelforge_engine.cast.words import words_of
from kernelforge_engine.dispatch.compiled_regions import CompiledRegions
from kernelforge_engine.dispatch.encode import (
    Unguardable,
    encode_value,
    name_of,
    schema,
    schema_values,
)
from kernelforge_engine.dispatch.guard import operator_of
from kernelforge_engine.dispatch.kernels import Kernel
from kernelforge_engine.dispatch.traced import tried, writes

NAMESPACE = "kernelforge"
Key = tuple[str, tuple[int, ...]]


@cache
def stand_in(op: OpOverload) -> OpOverload:
    """The custom operator `kernelforge::aten_softmax.int` that calls `aten::softmax.int`."""
    of = schema(op)
    name = of.name.replace("::", "_")
    text = str(of).replace(f"{of.name}", name, 1)
    # What a kernel was judged for is its strides too: Inductor must not choose others.
    _library().define(text, tags=(torch.Tag.needs_exact_strides,))
    full = f"{name}.{of.overload_name}".rstrip(".")
    _library().impl(full, op, "CompositeExplicitAutograd")
    torch.library.register_fake(f"{NAMESPACE}::{full}", op, lib=_library())
    made: OpOverload = getattr(getattr(torch.ops.kernelforge, name), of.overload_name or "default")
    return made


@cache
def _library() -> torch.library.Library:
    return torch.library.Library(NAMESPACE, "FRAGMENT")


class Substitution(CustomGraphPass):
    """The pass of this process; it knows the keys that all enabled casts serve together."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._keys: Counter[Key] = Counter()
        self._outputs: Counter[Any] = Counter()
        self._regions = CompiledRegions(_library)
        self._before: Any = None

    def add(self, calls: Sequence[Call], kernels: Sequence[Kernel]) -> None:
        """Serve these calls of operators, and these regions, in what is compiled from now on. Their
        operators are made here, since Inductor may take code that calls them from its cache on
        disk, and run no pass at all."""
        with self._lock:
            for call in calls:
                if _can_stand_in(call):
                    stand_in(operator_of(call))
            self._regions.add(kernels)
            self._count(calls, 1)

    def remove(self, calls: Iterable[Call], kernels: Iterable[Kernel]) -> None:
        """Serve these no longer."""
        with self._lock:
            self._regions.remove(kernels)
            self._count(calls, -1)

    def _count(self, calls: Iterable[Call], by: int) -> None:
        for call in calls:
            if _can_stand_in(call):
                self._keys[call.name, call.words] += by
                self._outputs[_shown(call.outputs[0].tensor)] += by
        self._keys, self._outputs = +self._keys, +self._outputs
        self._place()

    def _place(self) -> None:
        """Stand in Inductor's configuration exactly while there is something to serve."""
        is_there = config.pre_grad_custom_pass is self
        is_used = bool(self._keys or self._regions)
        if is_used and not is_there:
            self._before = config.pre_grad_custom_pass
            config.pre_grad_custom_pass = self
        elif is_there and not is_used:
            config.pre_grad_custom_pass = self._before

    def __reduce__(self) -> str:
        # There is one: Inductor copies its configuration with all that is in it.
        return "substitution"

    def uuid(self) -> str:
        """What Inductor's cache tells graphs of other casts, and of none, by."""
        before = self._before.uuid() if isinstance(self._before, CustomGraphPass) else None
        keys: list[Json] = [[name, list(words)] for name, words in sorted(self._keys)]
        names: list[Json] = [*self._regions.names()]
        return codec.sha256(codec.dumps([__version__, str(before), keys, names]))

    def __call__(self, graph: Graph) -> None:
        """Replace every node that is one call of a served key."""
        if self._before is not None:
            self._before(graph)
        with self._lock:
            if self._regions:
                self._regions.replace(graph)
            for node in list(graph.nodes):
                self._visit(graph, node)

    def _visit(self, graph: Graph, node: Node) -> None:
        results = pytree.tree_leaves(node.meta.get("example_value"))
        if node.op not in ("call_function", "call_method") or not results:
            return
        first = results[0]
        if not isinstance(first, FakeTensor) or writes(node):
            return
        try:
            if not self._outputs[_shown(_spec(first))]:
                return
            seen = _observed(node, first.fake_mode)
            if seen is None or (name_of(seen.op), seen.words) not in self._keys:
                return
        except Unguardable:
            return
        with graph.inserting_before(node):
            new = graph.call_function(stand_in(seen.op), seen.args, seen.kwargs)
        new.meta = dict(node.meta)
        node.replace_all_uses_with(new)
        graph.erase_node(node)


def _can_stand_in(call: Call) -> bool:
    return call.region is None and not call.mutated


substitution = Substitution()


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """The one operator call that a node makes, its tensors being the nodes they come from."""

    op: OpOverload
    words: tuple[int, ...]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def _observed(node: Node, fake: FakeTensorMode) -> _Seen | None:
    """The call of a node that is exactly one operator on its own arguments, else None.

    Raises:
        Unguardable: no guard covers it.
    """
    places: dict[int, Node] = {}

    def value(of: Node) -> Any:
        found = of.meta.get("example_value")
        places[id(found)] = of
        return found

    args, kwargs = map_arg((node.args, node.kwargs), value)
    tensors = [t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
    if not tensors or not all(isinstance(t, FakeTensor) for t in tensors):
        return None
    if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
        return None
    calls = tried(node, args, kwargs, fake)[1].calls
    if len(calls) != 1:
        return None
    op, given, named, _ = calls[0]
    if any(
        isinstance(v, torch.SymInt | torch.SymFloat) for v in pytree.tree_leaves((given, named))
    ):
        return None
    if any(
        isinstance(t, Tensor) and id(t) not in places for t in pytree.tree_leaves((given, named))
    ):
        return None

    def back(item: Any) -> Any:
        return places[id(item)] if isinstance(item, Tensor) else item

    return _Seen(
        op=op,
        words=_words(op, given, named),
        args=pytree.tree_map(back, tuple(given)),
        kwargs=pytree.tree_map(back, dict(named)),
    )


def _words(op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[int, ...]:
    specs: list[TensorSpec] = []

    def named(tensor: Tensor) -> Json:
        specs.append(_spec(tensor))
        return {"tensor": len(specs) - 1}

    encoded = [encode_value(value, named) for value in schema_values(op, args, kwargs)]
    return words_of(encoded, specs)


def _spec(tensor: Tensor) -> TensorSpec:
    """The metadata of a tensor that does not exist yet; what Inductor allocates is aligned."""
    return TensorSpec(
        dtype=str(tensor.dtype).removeprefix("torch."),
        shape=tuple(map(_hint, tensor.shape)),
        stride=tuple(map(_hint, tensor.stride())),
        device=tensor.device.type,
        aligned=True,
    )


def _hint(size: int | torch.SymInt) -> int:
    """A size, or what a size that may vary was when it was compiled."""
    if isinstance(size, int):
        return size
    hint = size.node.hint
    if hint is None:
        raise Unguardable(why="a size is not known before it runs")
    return int(hint)


def _shown(spec: TensorSpec) -> tuple[str, tuple[int, ...], str]:
    return spec.dtype, spec.shape, spec.device
