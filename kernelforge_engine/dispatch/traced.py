"""A graph of Dynamo as the operators it will run: a region is found in it by its program."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx import Graph, Node, map_arg
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from kernelforge_engine.dispatch.recording import below_autograd

GRAD, ENTER, EXIT = "_set_grad_enabled", "_enter_autocast", "_exit_autocast"


class Observer(TorchDispatchMode):
    """Sees the operators of one node as a capture does: above decomposition, below autograd."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, Sequence[Any], Mapping[str, Any], Any]] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        output = func(*args, **(kwargs or {}))
        if getattr(func, "namespace", "") != "prim":  # a tensor that is not there is asked for more
            self.calls.append((func, args, kwargs or {}, output))
        return output


def tried(node: Node, args: Any, kwargs: Any, fake: FakeTensorMode) -> tuple[Any, Observer]:
    """What a node gives for fake tensors, and the operators that it ran."""
    observer, output = Observer(), None
    with fake, torch.no_grad(), below_autograd(), observer:
        if node.op == "call_method":
            output = getattr(args[0], str(node.target))(*args[1:], **kwargs)
        elif callable(node.target):
            output = node.target(*args, **kwargs)
    return output, observer


def writes(node: Node) -> bool:
    """Whether the node may write to an argument, which must not be tried out."""
    name = name_of_target(node)
    module = getattr(node.target, "__module__", "")
    in_place = name.endswith("_") or (module == "_operator" and name.startswith("i"))
    return in_place or "out" in node.kwargs or bool(node.kwargs.get("inplace"))


def name_of_target(node: Node) -> str:
    """The name of the function or method that a node calls."""
    return node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")


@dataclass(frozen=True, eq=False, kw_only=True)
class Ran:
    """One operator of a node. `records`: torch would record gradients there."""

    node: Node
    op: OpOverload
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    output: Any
    records: bool


class Traced:
    """The operators of a graph in order, None where something runs that is not to be tried, and
    what each node gives: objects that are one tensor are one object."""

    def __init__(self, graph: Graph) -> None:
        self.ran: list[Ran | None] = []
        self.values: dict[Node, Any] = {}
        self.idle: set[Node] = set()  # nodes that ran, and ran no operator
        self.order = {node: number for number, node in enumerate(graph.nodes)}
        self._records = torch.is_grad_enabled()
        self._casts: list[bool] = []  # of the autocast contexts around a node, which are on
        for node in graph.nodes:
            if name_of_target(node).endswith("increment_nesting"):
                break  # what follows is transformed
            self._follow(node)

    def become(self, old: Node, new: Node, tensor: torch.Tensor) -> None:
        """A new node gives a tensor from now on, at the place of an old one."""
        self.values[new] = tensor
        self.order[new] = self.order[old]

    def _follow(self, node: Node) -> None:
        name = name_of_target(node)
        example = node.meta.get("example_value")
        self.values[node] = example
        if self._switch(node, name) or node.op not in ("call_function", "call_method"):
            return
        if any(self._casts) or writes(node) or not _is_fixed(example) or not self._try(node):
            self.ran.append(None)

    def _switch(self, node: Node, name: str) -> bool:
        """Note what a node switches for those that follow; whether it does that."""
        if name == GRAD:
            self._records = bool(node.args[0])
        elif name == ENTER:
            self._casts.append(node.args[2] is not False)
        elif name == EXIT:
            self._casts.pop()
        return name in (GRAD, ENTER, EXIT)

    def _try(self, node: Node) -> bool:
        """Run a node; whether that could be done."""
        args, kwargs = map_arg((node.args, node.kwargs), self.values.get)
        given = pytree.tree_leaves((args, kwargs))
        fakes = [leaf for leaf in given if isinstance(leaf, FakeTensor)]
        if not fakes or not all(map(_is_fixed, fakes)):
            return False
        if any(isinstance(leaf, torch.SymInt | torch.SymFloat) for leaf in given):
            return False
        try:
            output, observer = tried(node, args, kwargs, fakes[0].fake_mode)
        except Exception:  # noqa: BLE001  whatever it is, it is not a region's
            return False
        self.values[node] = output
        if not observer.calls:
            self.idle.add(node)
        for op, taken, named, made in observer.calls:
            if not isinstance(op, OpOverload):
                return False
            ran = Ran(
                node=node, op=op, args=taken, kwargs=named, output=made, records=self._records
            )
            self.ran.append(ran)
        return True


def _is_fixed(value: Any) -> bool:
    """Whether it holds tensors, and no size of theirs varies."""
    tensors = [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]
    sizes = [size for t in tensors for size in (*t.shape, *t.stride())]
    return bool(tensors) and all(type(size) is int for size in sizes)
