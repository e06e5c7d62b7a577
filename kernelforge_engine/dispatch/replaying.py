"""A model whose calls are replayed as CUDA graphs: which call may be, and why another is not.

A graph repeats the work of the device and nothing else, and reads memory where it was. So a call
is recorded only after it was watched once, and a graph is used only while the model's tensors lie
where they lay and its attributes, hooks and the kernels that are enabled are the same.
"""

import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from operator import is_
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from kernelforge_engine.cast.options import CudaGraph
from kernelforge_engine.dispatch.graph import Graph, Memory, is_replayable
from kernelforge_engine.dispatch.instances import MISSED
from kernelforge_engine.dispatch.signature import KEY_SET, is_observed, settings, signed
from kernelforge_engine.dispatch.state import State
from kernelforge_engine.dispatch.watching import WRITES, Watch

CHANGES = 8  # a model that keeps changing is not recorded again after so many times


@dataclass(frozen=True, kw_only=True)
class Graphs:
    """What became of the calls of models that were enabled with `cuda_graph`.

    `eager` counts calls that ran as before by reason: `autograd` (a gradient is wanted), `device`
    (an argument or the model is not on one CUDA device), `unsupported_argument` (neither tensors
    nor plain values in lists, tuples and dictionaries), `key_set` (a mode, a subclass, a transform
    or tracing), `hooks` (on the model or inside it), `capturing` (somebody else's graph is being
    captured), `writes` (it changes an argument, its own state, or what is not its own), `sync` (the
    processor waits for the device), `host` (values pass from host memory to the device), `output`
    (it returns an argument, its own state, or what is no tensor or plain value), `raised` (it does
    not run while it is watched), `capture` (the capture failed), `changing` (its attributes or
    tensors keep changing), `limit` (there are too many signatures). `why` has the text of the last
    failure by reason. A replayed call counts no hits of kernels.
    """

    captured: int = 0
    replayed: int = 0
    eager: Mapping[str, int] = field(default_factory=dict)
    why: Mapping[str, str] = field(default_factory=dict)

    def with_those_of(self, other: "Graphs") -> "Graphs":
        """Both together."""
        return Graphs(
            captured=self.captured + other.captured,
            replayed=self.replayed + other.replayed,
            eager=Counter(self.eager) + Counter(other.eager),
            why={**self.why, **other.why},
        )


@dataclass(frozen=True, kw_only=True)
class Given:
    """The arguments of one call that may be replayed."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    tensors: list[Tensor]
    facts: tuple[object, ...]
    state: State

    @property
    def device(self) -> torch.device:
        """Where all of it lies."""
        return self.read()[0].device

    def read(self) -> list[Tensor]:
        """The tensors of the call and of its model."""
        return [*self.tensors, *self.state.tensors]

    def versions(self) -> list[int]:
        """How often each was written, as far as torch counts it."""
        return [t._version for t in self.read() if not t.is_inference()]


_recording = threading.local()


@contextmanager
def _within() -> Iterator[None]:
    """While a call is watched and recorded, calls inside it are a part of it."""
    _recording.is_on = True
    try:
        yield
    finally:
        del _recording.is_on


class Replay:
    """Replays the calls of one model."""

    def __init__(self, model: torch.nn.Module, options: CudaGraph) -> None:
        self._model = weakref.ref(model)
        self._options = options
        self._lock = threading.RLock()
        self._state: State | None = None
        self._memory: Memory | None = None
        self._known: dict[tuple[object, ...], Graph | str] = {}
        self._changes = 0
        self._captured = self._replayed = 0
        self._eager: Counter[str] = Counter()
        self._why: dict[str, str] = {}

    def serve(
        self, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """What a call of the model returns, or MISSED where it has to run as before."""
        model = self._model()
        if model is None or hasattr(_recording, "is_on"):
            return MISSED
        with self._lock:
            given = self._given(model, args, kwargs)
            if isinstance(given, str):
                return self._missed(given)
            found = self._known.get(given.facts)
            if isinstance(found, Graph):
                self._replayed += 1
                return found.replay(given.tensors, copies=self._options.copies)
            if found is None and len(self._known) < self._options.limit:
                return self._first(model, original, given)
            return self._missed(found or "limit")

    def counted(self) -> Graphs:
        """What became of the calls so far."""
        with self._lock:
            return Graphs(
                captured=self._captured,
                replayed=self._replayed,
                eager=dict(self._eager),
                why=dict(self._why),
            )

    def close(self) -> None:
        """Free the graphs, and replay no more."""
        with self._lock:
            self._model = weakref.ref(torch.nn.Module())
            self._forget()

    def _forget(self) -> None:
        self._known.clear()
        self._state = self._memory = None

    def _missed(self, reason: str) -> Any:
        self._eager[reason] += 1
        return MISSED

    def _given(
        self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Given | str:
        """A call that may be replayed, or why it may not, in a word."""
        if is_observed():
            return KEY_SET
        tensors: list[Tensor] = []
        facts: list[object] = []
        if why := signed([args, kwargs], tensors, facts):
            return why
        state = self._seen(model)
        if state is None:
            return "changing"
        if why := _unfit(state, tensors):
            return why
        device = (tensors or state.tensors)[0].device
        facts += settings(device.type)
        return Given(args=args, kwargs=kwargs, tensors=tensors, facts=tuple(facts), state=state)

    def _seen(self, model: torch.nn.Module) -> State | None:
        """What the model is now, None where it changes too often; graphs of what it was go."""
        state = self._state
        if state is not None and not (state.is_current() and state.holds()):
            self._changes += state.is_current()
            self._forget()
        if self._state is None and self._changes <= CHANGES:
            self._state = State(model)
        return self._state

    def _first(self, model: torch.nn.Module, original: Callable[..., Any], given: Given) -> Any:
        """Run a call watched, and record it if nothing speaks against that."""
        watch = Watch(given.read(), given.device)
        versions = given.versions()
        with _within():
            try:
                with watch:
                    output = original(model, *given.args, **given.kwargs)
            except Exception as error:  # noqa: BLE001  what is wrong with the call is raised again
                self._refuse(given, "raised", error)
                return MISSED
            if why := watch.why or _against(given, versions, watch, output):
                self._refuse(given, why)
            else:
                self._record(partial(original, model), given, pytree.tree_structure(output))
        return output

    def _record(self, run: Callable[..., Any], given: Given, form: pytree.TreeSpec) -> None:
        call, tensors = (given.args, given.kwargs), (given.tensors, given.state.tensors)
        try:
            self._memory = self._memory or Memory(given.device)
            found = Graph(run, call, tensors, form, self._memory)
        except Exception as error:  # noqa: BLE001  the call itself has succeeded
            self._refuse(given, "capture", error.__context__ or error)
            return
        self._known[given.facts] = found
        self._captured += 1

    def _refuse(self, given: Given, reason: str, error: BaseException | None = None) -> None:
        self._known[given.facts] = reason
        self._eager[reason] += 1
        if error is not None:
            self._why[reason] = f"{type(error).__name__}: {error}".splitlines()[0]


def _unfit(state: State, tensors: list[Tensor]) -> str:
    """Why no call with these tensors may be replayed, in a word."""
    if not state.is_plain:
        return KEY_SET
    devices = [*state.devices.union(t.device for t in tensors)]
    if len(devices) != 1 or devices[0].type != "cuda":
        return "device"
    if torch.is_grad_enabled() and any(t.requires_grad for t in (*tensors, *state.tensors)):
        return "autograd"
    if state.is_hooked():
        return "hooks"
    return "capturing" if torch.cuda.is_current_stream_capturing() else ""


def _against(given: Given, versions: list[int], watch: Watch, output: Any) -> str:
    """Why a call may not be recorded after its first run, in a word."""
    tensors: list[Tensor] = []
    signed([given.args, given.kwargs], tensors, [])
    is_same = len(tensors) == len(given.tensors) and all(map(is_, tensors, given.tensors))
    if not is_same or not given.state.holds() or given.versions() != versions:
        return WRITES
    leaves = pytree.tree_leaves(output)
    if not all(is_replayable(leaf, given.device) for leaf in leaves):
        return "output"
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    return "output" if any(map(watch.is_given, tensors)) else ""
