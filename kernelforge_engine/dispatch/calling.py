"""The models whose calls are replayed, and the classes whose `__call__` asks for them first.

It is the class that changes, as with regions: an attribute of the model itself would be copied and
pickled with it.
"""

import threading
import weakref
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch.compiler import is_compiling

from kernelforge_engine.cast.options import CudaGraph
from kernelforge_engine.dispatch.instances import MISSED
from kernelforge_engine.dispatch.replaying import Graphs, Replay
from kernelforge_engine.errors import BadOption

Table = dict[int, tuple["weakref.ref[torch.nn.Module]", Replay]]


class _Class:
    """A class with models that are replayed, by their ids."""

    def __init__(self, kind: Any) -> None:
        self.models: Table = {}
        self._kind = kind
        self._own = vars(kind).get("__call__")
        self._stand_in = _stand_in(kind.__call__, kind, self.models)
        kind.__call__ = self._stand_in

    def restore(self) -> None:
        """Put back what was there, unless somebody else has replaced it since."""
        if vars(self._kind).get("__call__") is not self._stand_in:
            return
        if self._own is not None:
            self._kind.__call__ = self._own
        else:
            del self._kind.__call__


def _stand_in(
    original: Callable[..., Any], kind: type[torch.nn.Module], models: Table
) -> Callable[..., Any]:
    @wraps(original)
    def call(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        if not is_compiling() and type(self) is kind:
            found = models.get(id(self))
            if found is not None and found[0]() is self:
                answer = found[1].serve(original, args, kwargs)
                if answer is not MISSED:
                    return answer
        return original(self, *args, **kwargs)

    return call


_lock = threading.RLock()  # a model may go while it is held
_classes: dict[type[torch.nn.Module], _Class] = {}


def asked_for(
    model: object, cuda_graph: bool | CudaGraph
) -> tuple[torch.nn.Module, CudaGraph] | None:
    """The model that is to be replayed, and how; None where that is not asked for.

    Raises:
        BadOption: it cannot be had.
    """
    if cuda_graph is False:
        return None
    options = CudaGraph() if cuda_graph is True else cuda_graph
    if not isinstance(options, CudaGraph):
        accepted = "True, or CudaGraph(limit=..., copies=...)"
        raise BadOption(field="cuda_graph", value=options, why="it says not how", accepted=accepted)
    if not isinstance(model, torch.nn.Module) or isinstance(model, torch.jit.ScriptModule):
        kind = "a ScriptModule" if isinstance(model, torch.nn.Module) else type(model).__name__
        why = f"a graph is one model's, and {kind} is no module of Python"
        accepted = "enable(model, cuda_graph=True) with the module whose calls are to be replayed"
        raise BadOption(field="cuda_graph", value=cuda_graph, why=why, accepted=accepted)
    if options.limit < 1:
        accepted = "a limit of 1 or more"
        raise BadOption(field="limit", value=options.limit, why="no graph fits", accepted=accepted)
    return model, options


class Replays:
    """The models that one cast replays."""

    def __init__(self) -> None:
        self._now: list[tuple[type[torch.nn.Module], Replay]] = []
        self._past = Graphs()

    def add(self, model: torch.nn.Module, options: CudaGraph) -> None:
        """Replay the calls of a model from now on.

        Raises:
            BadOption: it is replayed already.
        """
        kind = type(model)
        with _lock:
            found = _classes.get(kind)
            if found is not None and _is_in(found.models, model):
                raise BadOption(
                    field="cuda_graph",
                    value=options,
                    why=f"this {kind.__name__} is replayed already",
                    accepted="it once for each model, or disable() the cast that replays it first",
                )
            if found is None:
                found = _classes[kind] = _Class(kind)
            replay = Replay(model, options)
            models, key = found.models, id(model)
            ref = weakref.ref(model, lambda gone: _forget(models, key, gone))
            models[key] = ref, replay
            self._now.append((kind, replay))

    def close(self) -> None:
        """Free all graphs; what was counted stays."""
        with _lock:
            for kind, replay in self._now:
                found = _classes.get(kind)
                if found is None:  # its models are gone, and another cast has put it back
                    continue
                for key in [k for k, (_, other) in found.models.items() if other is replay]:
                    del found.models[key]
                if not found.models:
                    found.restore()
                    del _classes[kind]
        for _, replay in self._now:
            replay.close()
        self._past = self.counted()
        self._now.clear()

    def counted(self) -> Graphs:
        """What became of the calls of all models, those of earlier times included."""
        found = self._past
        for _, replay in self._now:
            found = found.with_those_of(replay.counted())
        return found


def _is_in(models: Table, model: torch.nn.Module) -> bool:
    found = models.get(id(model))
    return found is not None and found[0]() is model


def _forget(models: Table, key: int, gone: object) -> None:
    """A model is gone: its graphs are of no use, and its id may become that of another one."""
    with _lock:
        if key in models and models[key][0] is gone:
            models.pop(key)[1].close()
