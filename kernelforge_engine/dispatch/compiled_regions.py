"""Regions inside compiled code: custom operators in the place of the programs that were judged.

What a region is called and whose it is says nothing in a graph of Dynamo; what it runs does. Where
the recorded operators of an enabled kernel stand in a graph, on tensors of the same kind, an
operator takes their place that hands its tensors to the shim, as the stand-in of a forward does in
eager code, and runs those very operators where the shim refuses them.
"""

import inspect
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FunctionType
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.fx import Graph, Node

from kernelforge_engine import codec
from kernelforge_engine.calls import Call
from kernelforge_engine.dispatch.encode import Unguardable
from kernelforge_engine.dispatch.graph import fill
from kernelforge_engine.dispatch.guard import autocast_depth
from kernelforge_engine.dispatch.instances import COMPILED
from kernelforge_engine.dispatch.kernels import Kernel
from kernelforge_engine.dispatch.known import Site
from kernelforge_engine.dispatch.ledger import Ledger
from kernelforge_engine.dispatch.matching import Match, matched
from kernelforge_engine.dispatch.program import Program
from kernelforge_engine.dispatch.shim import PROVEN
from kernelforge_engine.dispatch.swapping import regions
from kernelforge_engine.dispatch.traced import Traced

LINE = re.compile(r'File "(.+)", line (\d+), in ')
Library = Callable[[], torch.library.Library]


def name_of(call: Call) -> str:
    """The name of the operator for a region's call, the same in every process."""
    name = "".join(c if c.isalnum() else "_" for c in call.operator.partition("::")[2])
    digest = codec.sha256(codec.dumps([call.operator, list(call.words)]))
    return f"region_{name}_{digest[:24]}"


class Region:
    """One operator: a program on tensors of one kind, and the kernels that may serve it."""

    def __init__(self, kernel: Kernel, library: torch.library.Library) -> None:
        """Define the operator.

        Raises:
            Unguardable: an operator of the program is not registered here.
        """
        self.call, self.region = kernel.call, kernel.region
        self.kernels: list[Kernel] = []
        self._program, self._shim = Program(self.region, len(self.call.inputs)), kernel.shim
        self._site: Site | None = None
        self.op = self._defined(library)

    def serve(self, kernels: list[Kernel]) -> None:
        """Have calls served by these kernels from now on, the last one first."""
        if self._site is not None:
            _ledger(self.kernels[0]).keep(self._site)
        self.kernels = kernels
        self._site = _ledger(kernels[0]).site(tuple(kernels)) if kernels else None
        if self._site is not None:
            for variants in self._site.variants.values():
                for kernel, variant in variants:
                    kernel.shim.prove(variant, PROVEN)  # its program is this operator's

    def is_served(self) -> bool:
        """Whether a kernel is enabled."""
        return any(kernel.enabled for kernel in self.kernels)

    def _defined(self, library: torch.library.Library) -> OpOverload:
        name = name_of(self.call)
        given = ", ".join(f"Tensor a{n}" for n in range(len(self.call.inputs)))
        outputs = ["Tensor"] * len(self.call.outputs)
        made = outputs[0] if len(outputs) == 1 else f"({', '.join(outputs)})"
        tags = (torch.Tag.needs_exact_strides,)
        library.define(f"{name}({given}) -> {made}", tags=tags)
        library.impl(name, self._run, "CompositeExplicitAutograd")
        torch.library.register_fake(f"kernelforge::{name}", self._fake, lib=library)
        op: OpOverload = getattr(torch.ops.kernelforge, name).default
        return op

    def _run(self, *tensors: Tensor) -> Any:
        site = self._site
        if site is not None:
            outputs, outcome = self._shim.serve(list(tensors), site.number)
            if outcome >= 0:
                return self._formed(outputs)
        found = self._program.run(tensors)
        return self._formed([self._own(t, n) for n, t in enumerate(found)])

    def _own(self, tensor: Tensor, number: int) -> Tensor:
        """An output in memory of its own, with the strides that were compiled for."""
        spec = self.call.outputs[number].tensor
        is_alone = len(self.call.outputs) == 1 and not tensor.storage_offset()
        if is_alone and tensor.stride() == spec.stride:
            return tensor
        made = torch.empty_strided(
            tensor.shape, spec.stride, dtype=tensor.dtype, device=tensor.device
        )
        fill(made, tensor)
        return made

    def _fake(self, *tensors: Tensor) -> Any:
        device = tensors[0].device
        specs = [output.tensor for output in self.call.outputs]
        return self._formed(
            [
                torch.empty_strided(s.shape, s.stride, dtype=getattr(torch, s.dtype), device=device)
                for s in specs
            ]
        )

    def _formed(self, outputs: Sequence[Tensor]) -> Any:
        return outputs[0] if len(self.call.outputs) == 1 else tuple(outputs)


class CompiledRegions:
    """The regions of all enabled casts, as operators of compiled code."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._made: dict[str, Region] = {}  # for ever: compiled code calls them
        self._kernels: list[Kernel] = []

    def __bool__(self) -> bool:
        return bool(self._kernels)

    def add(self, kernels: Iterable[Kernel]) -> None:
        """Serve these in what is compiled from now on, before others."""
        self._change([*self._kernels, *kernels])

    def remove(self, kernels: Iterable[Kernel]) -> None:
        """Serve these no longer."""
        gone = set(kernels)
        self._change([k for k in self._kernels if k not in gone])

    def names(self) -> list[str]:
        """What there is to serve."""
        return sorted(name for name, region in self._made.items() if region.is_served())

    def _change(self, kernels: list[Kernel]) -> None:
        self._kernels = kernels
        by_name: dict[str, list[Kernel]] = {name: [] for name in self._made}
        for kernel in kernels:
            by_name.setdefault(name_of(kernel.call), []).append(kernel)
        for name, named in by_name.items():
            if name not in self._made:
                try:
                    self._made[name] = Region(named[0], self._library())
                except Unguardable:
                    continue
            if self._made[name].kernels != named:
                self._made[name].serve(named)

    def replace(self, graph: Graph) -> None:
        """Put operators in the place of all regions of a graph that can be served; the others stay
        and are counted."""
        if autocast_depth() == 0:
            found = [r for r in self._made.values() if r.is_served()]
            found.sort(key=lambda r: len(r.region.steps), reverse=True)
            _replace(graph, found)
        _count_left(graph, self._kernels)


def _ledger(kernel: Kernel) -> Ledger:
    return regions(kernel.shim).compiled(kernel.call.operator)


def _replace(graph: Graph, candidates: Sequence[Region]) -> None:
    traced = Traced(graph)
    gone: set[Node] = set()
    for region in candidates:
        for start in range(len(traced.ran)):
            match = matched(traced, start, region.call, region.region)
            if match is not None and not gone.intersection(match.nodes):
                gone.update(match.nodes)
                _put(graph, traced, match, region)


def _put(graph: Graph, traced: Traced, match: Match, region: Region) -> None:
    """Put an operator in the place of the nodes of a region."""
    inside = set(match.nodes)
    with graph.inserting_before(match.last):
        made = graph.call_function(region.op, tuple(match.inputs))
        single = len(match.returned) == 1
        outputs = (
            [made]
            if single
            else [
                graph.call_function(operator.getitem, (made, n)) for n in range(len(match.returned))
            ]
        )
    made.meta = {"example_value": match.returned[0] if single else tuple(match.returned)}
    for node, tensor in zip(outputs, match.returned, strict=True):
        node.meta["example_value"] = tensor
        traced.become(match.last, node, tensor)
    at = {id(tensor): node for node, tensor in zip(outputs, match.returned, strict=True)}
    for node in match.nodes:
        if id(traced.values[node]) in at:
            node.replace_all_uses_with(
                at[id(traced.values[node])], delete_user_cb=lambda user: user not in inside
            )
    for node in reversed(match.nodes):
        del traced.values[node]
        graph.erase_node(node)


def _count_left(graph: Graph, kernels: Iterable[Kernel]) -> None:
    """Count the regions of which lines are left in a graph."""
    nodes = [node for node in graph.nodes if node.op in ("call_function", "call_method")]
    traces = [node.meta.get("stack_trace") or "" for node in nodes]
    left = {(file, int(line)) for trace in traces for file, line in LINE.findall(trace)}
    found = {k.call.operator: k for k in kernels if k.enabled and not left.isdisjoint(_lines(k))}
    for kernel in found.values():
        _ledger(kernel).counts[COMPILED] += 1


def _lines(kernel: Kernel) -> Iterator[tuple[str, int]]:
    """The lines of the forwards and functions that a kernel may stand in for."""
    for target in kernel.targets:
        function = inspect.unwrap(target.original)
        if isinstance(function, FunctionType):
            for _, _, line in function.__code__.co_lines():
                yield function.__code__.co_filename, line or 0
