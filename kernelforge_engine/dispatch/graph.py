"""One CUDA graph of a model's call: inputs in memory of its own, the recorded work, its outputs."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from kernelforge_engine.dispatch.signature import BY_VALUE, is_plain, rebuilt
from kernelforge_engine.dispatch.watching import Watch

WARM_UPS = 2  # in the first one, regions are compared with what their kernels were judged on
_one_at_a_time = threading.Lock()  # torch allows one capture in a process


class Unlike(RuntimeError):
    """A second run of the model was something else than its first one."""

    def __init__(self, *, what: str) -> None:
        super().__init__(f"a second run is unlike the first one: {what}")


class Memory:
    """What the graphs of one model share: a pool, and the order in which they run."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.pool = torch.cuda.graph_pool_handle()
        self.stream = torch.cuda.Stream(device)
        self.done = torch.cuda.Event()


class Graph:
    """A call that was recorded, to be replayed with other values in its inputs."""

    def __init__(
        self,
        run: Callable[..., Any],
        given: tuple[Any, Any],
        tensors: tuple[Sequence[Tensor], Sequence[Tensor]],
        form: pytree.TreeSpec,
        memory: Memory,
    ) -> None:
        """Record `run(*args, **kwargs)` of the `given` arguments, which returns what has this
        `form`; `tensors` are those of the arguments, and those of the model."""
        self._memory, self._form = memory, form
        own, of_model = tensors
        self._home = torch.cuda.current_stream(memory.device)
        with torch.inference_mode(False):
            self._inputs = [twin(tensor) for tensor in own]
        by = {id(t): static for t, static in zip(own, self._inputs, strict=True)}
        args, kwargs = rebuilt(given, by)
        self._fill(own)
        watch = Watch([*self._inputs, *of_model], memory.device)
        self._graph = torch.cuda.CUDAGraph()
        with _undisturbed(memory.device):
            self._outputs = self._recorded(lambda: run(*args, **kwargs), watch)
        self._held = list(watch.held.values())  # what else it reads, as a table that is kept

    def _recorded(self, run: Callable[[], Any], watch: Watch) -> list[Any]:
        memory = self._memory
        memory.stream.wait_stream(self._home)
        try:
            with torch.cuda.stream(memory.stream):
                with watch:
                    run()
                if watch.why:
                    raise Unlike(what=watch.why)
                for _ in range(WARM_UPS):
                    run()
                output = captured(self._graph, run, memory.pool)
        finally:
            self._home.wait_stream(memory.stream)
        leaves, form = pytree.tree_flatten(output)
        if form != self._form:
            raise Unlike(what="it returns something else")
        memory.done.record(self._home)
        return leaves

    def replay(self, tensors: Sequence[Tensor], *, copies: bool) -> Any:
        """What the call returns for these tensors, in tensors of its own where `copies` is true."""
        stream = torch.cuda.current_stream(self._memory.device)
        if stream != self._home:
            for own in self._inputs:
                own.record_stream(stream)
        stream.wait_event(self._memory.done)
        self._fill(tensors)
        self._graph.replay()
        found = [_copied(leaf) if copies else leaf for leaf in self._outputs]
        self._memory.done.record(stream)
        return pytree.tree_unflatten(found, self._form)

    def _fill(self, tensors: Sequence[Tensor]) -> None:
        with torch.no_grad():
            for own, given in zip(self._inputs, tensors, strict=True):
                fill(own, given)


def captured(graph: torch.cuda.CUDAGraph, run: Callable[[], Any], pool: Any) -> Any:
    """What `run` returned while the current stream, which is none's default, was recorded.

    What a broken capture leaves behind is mended.
    """
    torch.cuda.synchronize()
    try:
        with _one_at_a_time, _own_workspace():
            # Only this thread's work is held to what a capture allows.
            graph.capture_begin(pool=pool, capture_error_mode="thread_local")
            try:
                output = run()
            finally:
                graph.capture_end()
    except Exception:
        _let_go(pool)
        mend()
        raise
    return output


def mend() -> None:
    """After a broken capture the random generators believe that it goes on; one that succeeds tells
    them otherwise."""
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()), _one_at_a_time:
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin(capture_error_mode="thread_local")
        torch.empty(1, device="cuda").zero_()
        graph.capture_end()
    torch.cuda.synchronize()


def _let_go(pool: Any) -> None:
    """A capture that breaks may leave its pool open, and counted as used by it."""
    device = torch.cuda.current_device()
    with suppress(RuntimeError):
        torch._C._cuda_endAllocateToPool(device, pool)
        torch._C._cuda_releasePool(device, pool)


@contextmanager
def _own_workspace() -> Iterator[None]:
    """The workspace of cuBLAS is of the graph's pool, and used by nobody else after that."""
    torch._C._cuda_clearCublasWorkspaces()
    try:
        yield
    finally:
        torch._C._cuda_clearCublasWorkspaces()


@contextmanager
def _undisturbed(device: torch.device) -> Iterator[None]:
    """Runs that nobody asked for draw no random numbers of the caller's, and nothing is recorded
    that reads weights which autocast keeps for a while."""
    state, cached = torch.cuda.get_rng_state(device), torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        with torch.cuda.device(device):
            yield
    finally:
        torch.set_autocast_cache_enabled(cached)
        torch.cuda.set_rng_state(state, device)


def is_replayable(leaf: Any, device: torch.device) -> bool:
    """Whether a replay can return this again."""
    if isinstance(leaf, Tensor):
        return is_plain(leaf) and leaf.device == device and not leaf.requires_grad
    return leaf is None or type(leaf) in (*BY_VALUE, float)


def twin(tensor: Tensor) -> Tensor:
    """A tensor of the same layout in memory of its own, its values unset."""
    return torch.empty_strided(
        tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device
    )


def fill(own: Tensor, given: Tensor) -> None:
    """Copy values between two tensors of the same layout, each element once."""
    if 0 in given.stride():
        sizes = [1 if not step else n for n, step in zip(given.shape, given.stride(), strict=True)]
        own, given = (t.as_strided(sizes, t.stride(), t.storage_offset()) for t in (own, given))
    own.copy_(given)


def _copied(leaf: Any) -> Any:
    if not isinstance(leaf, Tensor):
        return leaf
    made = twin(leaf)
    fill(made, leaf)
    return made
