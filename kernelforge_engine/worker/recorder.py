"""Dispatch modes that see every operator at its highest schema level, below autograd.

The first pass counts calls by key and, at the first call of each key, tests and times the operator.
The second pass stores example inputs of the variants that were chosen.
"""

import time
import zlib
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kernelforge_engine.calls import Call
from kernelforge_engine.dispatch.encode import parameters, spec_of
from kernelforge_engine.dispatch.guard import Unguardable, describe, schema_values, words
from kernelforge_engine.worker.below import views_tracked
from kernelforge_engine.worker.clock import device_us
from kernelforge_engine.worker.eligibility import Trial, tensors_in
from kernelforge_engine.worker.glance import Glance, glance
from kernelforge_engine.worker.region_proof import unobserved
from kernelforge_engine.worker.roofline import count_flops
from kernelforge_engine.worker.tensors import memory_of
from kernelforge_engine.worker.trail import ModuleTrail

Key = tuple[str, tuple[int, ...]]
Args = tuple[Any, ...]
Follow = Callable[[Any, Args, dict[str, Any], Any], None]
TIMED = 8  # calls that are timed of an operator that cannot be repeated


@dataclass(kw_only=True)
class Seen:
    """What the first pass knows about one key; `reason` says why it is not a target.

    `memory` tells apart those inputs that are parameters or buffers of the model.
    """

    call: Call
    reason: str | None
    eager_us: float
    module: str
    flops: int = 0
    dtype: torch.dtype | None = None
    memory: Mapping[int, Hashable] = field(default_factory=dict)
    calls: int = 1


def key_of(op: Any, args: Args, kwargs: dict[str, Any]) -> Key | None:
    """The identity of a call, or None when some argument cannot be guarded."""
    try:
        return _key(op, args, kwargs)
    except Unguardable:
        return None


def _key(op: Any, args: Args, kwargs: dict[str, Any]) -> Key:
    return op.name(), words(schema_values(op, args, kwargs))[0]


def reason_words(reason: str) -> tuple[int, ...]:
    """What stands for the words of a call that has none: each reason is counted by itself."""
    return (zlib.crc32(reason.encode()),)


class CountingPass(TorchDispatchMode):
    """Counts calls by key; each key's first call is tested and timed.

    `follow` is told of every call when it has run, `tick` how many variants there are so far.
    """

    def __init__(
        self,
        trail: ModuleTrail,
        device: torch.device,
        follow: Follow,
        tick: Callable[[int], None],
    ) -> None:
        super().__init__()
        self.seen: dict[Key, Seen] = {}
        self._known: dict[Glance, Seen] = {}
        self._wordless: dict[str, Seen] = {}
        self._costs: dict[Glance, float] = {}
        self._trail, self._device = trail, device
        self._follow, self._tick = follow, tick

    def eager_us(self, key: Key) -> float:
        """The time of one call; a call without words stands for all of its operator's."""
        known = self.seen.get(key) or self._wordless[key[0]]
        return known.eager_us

    def __torch_dispatch__(self, op: Any, _types: Any, args: Args = (), kwargs: Any = None) -> Any:
        """Run the operator and record it."""
        kwargs = kwargs or {}
        seen = self._known.get(sight) if (sight := glance(id(op), args, kwargs)) else None
        if seen is None:
            output = self._slow(sight, op, args, kwargs)
        else:
            seen.calls += 1
            output = op(*args, **kwargs)
        self._follow(op, args, kwargs, output)
        return output

    def _slow(self, sight: Glance | None, op: Any, args: Args, kwargs: dict[str, Any]) -> Any:
        try:
            key = _key(op, args, kwargs)
        except Unguardable as refused:
            return self._unguarded(sight, op, args, kwargs, str(refused))
        if key in self.seen:
            self.seen[key].calls += 1
            output = op(*args, **kwargs)
        else:
            output = self._first(key, op, args, kwargs)
        if sight is not None:
            self._known[sight] = self.seen[key]
        return output

    def _first(self, key: Key, op: Any, args: Args, kwargs: dict[str, Any]) -> Any:
        trial = Trial(op, args, kwargs, self._device)
        tensors = tensors_in((args, kwargs))
        own = {i: memory_of(tensors[i]) for i in self._trail.parameters(tensors)}
        floating = [t.dtype for t in tensors if t.is_floating_point()]
        output, first_us = self._timed(op, args, kwargs)
        # Described on the live arguments: aliasing and alignment are theirs, not the copies'.
        call, reason = described(op, args, kwargs, output)
        seen = Seen(
            call=call,
            reason=reason,
            eager_us=first_us,
            module=self._trail.here,
            dtype=floating[0] if floating else None,
            memory=own,
        )
        with unobserved(self._device):
            self._try(seen, trial, output)
        self.seen[key] = seen
        self._tick(len(self.seen))
        return output

    def _try(self, seen: Seen, trial: Trial, output: Any) -> None:
        """Test and time a call; what has no memory for that keeps the time of its first call."""
        try:
            seen.reason = trial.refusal(output, seen.reason)
            with views_tracked():
                seen.eager_us = min(seen.eager_us, device_us(trial.again, self._device))
            if seen.reason is None and not seen.eager_us:
                seen.reason = "it launches nothing"
            seen.flops = count_flops(trial.again) if seen.reason is None else 0
        except torch.OutOfMemoryError:
            seen.reason = "there was no memory to run it a second time"

    def _timed(self, op: Any, args: Args, kwargs: dict[str, Any]) -> tuple[Any, float]:
        if self._device.type == "cuda":
            return _timed_by_device(op, args, kwargs, self._device)
        start = time.perf_counter_ns()
        output = op(*args, **kwargs)
        return output, (time.perf_counter_ns() - start) / 1000.0

    def _unguarded(
        self, sight: Glance | None, op: Any, args: Args, kwargs: dict[str, Any], reason: str
    ) -> Any:
        """Count and time a call that can never be a target, so that shares add up."""
        key = op.name(), reason_words(reason)
        known = self.seen.get(key)
        if known is None:
            call = replace(nameless(op), words=key[1])
            known = Seen(call=call, reason=reason, eager_us=0.0, module=self._trail.here, calls=0)
            self.seen[key] = self._wordless[key[0]] = known
        known.calls += 1
        us = self._costs.get(sight) if sight is not None else None
        if us is not None or (sight is None and known.calls > TIMED):
            output = op(*args, **kwargs)
        else:
            output, us = self._timed(op, args, kwargs)
            if sight is not None and _repeatable(op):
                with unobserved(self._device):
                    us = min(us, device_us(lambda: op(*args, **kwargs), self._device))
                self._costs[sight] = us
        known.eager_us += ((known.eager_us if us is None else us) - known.eager_us) / known.calls
        return output


def _timed_by_device(
    op: Any, args: Args, kwargs: dict[str, Any], device: torch.device
) -> tuple[Any, float]:
    """Without the wait for what was launched before; some of the host's time may remain."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with torch.cuda.device(device):
        start.record()
        output = op(*args, **kwargs)
        end.record()
    end.synchronize()
    return output, float(start.elapsed_time(end)) * 1000.0


def _repeatable(op: Any) -> bool:
    """Whether torch says that an operator only makes something new."""
    return op.namespace == "aten" and not any(p.alias for p in parameters(op))


def described(op: Any, args: Args, kwargs: dict[str, Any], output: Any) -> tuple[Call, str | None]:
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


class StoringPass(TorchDispatchMode):
    """Hands the inputs of calls to `keep` before they run, while their keys are in `wanted`.

    `follow` is told of every call when it has run.
    """

    def __init__(
        self,
        wanted: set[Key],
        keep: Callable[[Key, list[torch.Tensor]], None],
        follow: Follow | None = None,
    ) -> None:
        super().__init__()
        self._wanted, self._keep, self._follow = wanted, keep, follow
        self._keys: dict[Glance, Key | None] = {}

    def __torch_dispatch__(self, op: Any, _types: Any, args: Args = (), kwargs: Any = None) -> Any:
        """Keep the inputs if they are wanted, then run the operator."""
        kwargs = kwargs or {}
        if self._wanted:
            key = self._key(op, args, kwargs)
            if key is not None and key in self._wanted:
                self._keep(key, words(schema_values(op, args, kwargs))[1])
        output = op(*args, **kwargs)
        if self._follow is not None:
            self._follow(op, args, kwargs, output)
        return output

    def _key(self, op: Any, args: Args, kwargs: dict[str, Any]) -> Key | None:
        sight = glance(id(op), args, kwargs)
        if sight is None:
            return key_of(op, args, kwargs)
        if sight not in self._keys:
            self._keys[sight] = key_of(op, args, kwargs)
        return self._keys[sight]
