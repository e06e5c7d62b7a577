"""Dispatch modes that see every operator at its highest schema level, below autograd.

The first pass counts calls by key and, at the first call of each key, tests and times the operator
on copies of its inputs. The second pass stores example inputs of the variants that were chosen.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.nn.modules import module as nn_module
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from kernelforge_engine.calls import Call
from kernelforge_engine.dispatch.encode import spec_of
from kernelforge_engine.dispatch.guard import Unguardable, describe, schema_values, words
from kernelforge_engine.worker.clock import call_us
from kernelforge_engine.worker.eligibility import refusal, tensors_in
from kernelforge_engine.worker.roofline import count_flops
from kernelforge_engine.worker.tensors import copied

Key = tuple[str, tuple[int, ...]]


@dataclass(kw_only=True)
class Seen:
    """What the first pass knows about one key; `reason` says why it is not a target."""

    call: Call
    reason: str | None
    eager_us: float
    module: str
    flops: int = 0
    dtype: torch.dtype | None = None
    calls: int = 1


def key_of(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Key | None:
    """The identity of a call, or None when some argument cannot be guarded."""
    try:
        return op.name(), words(schema_values(op, args, kwargs))[0]
    except Unguardable:
        return None


class ModuleTrail:
    """Which module is running, through global hooks (hooks on modules would change fast paths)."""

    def __init__(self, model: object) -> None:
        named = model.named_modules() if isinstance(model, torch.nn.Module) else ()
        self._names = {id(module): name for name, module in named}
        self._stack: list[str] = []

    @property
    def here(self) -> str:
        """Path and class of the innermost running module."""
        return self._stack[-1] if self._stack else ""

    def _enter(self, module: torch.nn.Module, _args: Any) -> None:
        name = self._names.get(id(module), "")
        self._stack.append(f"{name} ({type(module).__name__})".strip())

    def _leave(self, _module: torch.nn.Module, _args: Any, _output: Any) -> None:
        self._stack.pop()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Follow every module forward inside."""
        enter = nn_module.register_module_forward_pre_hook(self._enter)
        leave = nn_module.register_module_forward_hook(self._leave, always_call=True)
        try:
            yield
        finally:
            enter.remove()
            leave.remove()
            self._stack.clear()


@contextmanager
def below_autograd() -> Iterator[None]:
    """Where composite operators (linear, conv2d, softmax) are still whole."""
    guard = torch._C._AutoDispatchBelowAutograd()
    try:
        yield
    finally:
        del guard


class CountingPass(TorchDispatchMode):
    """Counts calls by key; each key's first call is tested and timed on copies."""

    def __init__(self, trail: ModuleTrail, device: torch.device) -> None:
        super().__init__()
        self.seen: dict[Key, Seen] = {}
        self._trail = trail
        self._device = device

    def __torch_dispatch__(
        self, op: Any, _types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run the operator and record it."""
        kwargs = kwargs or {}
        key = key_of(op, args, kwargs)
        if key is None:
            return self._unguarded(op, args, kwargs)
        if key in self.seen:
            self.seen[key].calls += 1
            return op(*args, **kwargs)
        before = pytree.tree_map_only(torch.Tensor, copied, (args, kwargs))
        output = op(*args, **kwargs)
        with _same_random_state(self._device):
            self.seen[key] = self._first(op, (args, kwargs), before, output)
        return output

    def _unguarded(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Count and time a call that can never be a target, so that shares add up."""
        start = time.perf_counter_ns()
        output = op(*args, **kwargs)
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        us = (time.perf_counter_ns() - start) / 1000.0
        known = self.seen.get((op.name(), ()))
        if known is None:
            self.seen[op.name(), ()] = Seen(
                call=nameless(op),
                reason="it has an argument that no guard can describe",
                eager_us=us,
                module=self._trail.here,
            )
        else:
            known.eager_us += (us - known.eager_us) / (known.calls + 1)
            known.calls += 1
        return output

    def _first(self, op: Any, live: tuple[Any, Any], before: tuple[Any, Any], output: Any) -> Seen:
        # Described on the live arguments: aliasing and alignment are theirs, not the copies'.
        call, reason = described(op, live[0], live[1], output)
        reason = reason or refusal(op, before[0], before[1], output)
        repeat: Callable[[], Any] = lambda: op(*before[0], **before[1])  # noqa: E731
        floating = [t.dtype for t in tensors_in(before) if t.is_floating_point()]
        return Seen(
            call=call,
            reason=reason,
            eager_us=call_us(repeat, self._device),
            flops=count_flops(repeat) if reason is None else 0,
            dtype=floating[0] if floating else None,
            module=self._trail.here,
        )


def described(
    op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any
) -> tuple[Call, str | None]:
    """The record of a call; for one that no package could serve, its inputs and the reason."""
    try:
        return describe(op, args, kwargs, output), None
    except Unguardable as refused:
        key, tensors = words(schema_values(op, args, kwargs))
        inputs = tuple(spec_of(t) for t in tensors)
        return replace(nameless(op), words=key, inputs=inputs), str(refused)


def nameless(op: Any) -> Call:
    """The record of an operator without its arguments."""
    return Call(
        operator=op._schema.name,
        overload=op._schema.overload_name,
        words=(),
        arguments=(),
        inputs=(),
        outputs=(),
    )


@contextmanager
def _same_random_state(device: torch.device) -> Iterator[None]:
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        yield


class StoringPass(TorchDispatchMode):
    """Hands the inputs of each wanted key's first call to `keep`, before the call runs."""

    def __init__(self, wanted: set[Key], keep: Callable[[Key, list[torch.Tensor]], None]) -> None:
        super().__init__()
        self._wanted = set(wanted)
        self._keep = keep

    def __torch_dispatch__(
        self, op: Any, _types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Keep the inputs if they are wanted, then run the operator."""
        kwargs = kwargs or {}
        key = key_of(op, args, kwargs)
        if key is not None and key in self._wanted:
            self._wanted.discard(key)
            self._keep(key, words(schema_values(op, args, kwargs))[1])
        return op(*args, **kwargs)
