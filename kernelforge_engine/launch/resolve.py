"""From a plan and the tensors of one call to the numbers that are launched."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from kernelforge_engine.calls import ITEM_BYTES, Argument, Call, OutputSpec, TensorSpec
from kernelforge_engine.launch.expression import ExpressionError, Number, Value, evaluate
from kernelforge_engine.launch.header import SourceRejected
from kernelforge_engine.plans import (
    ArgumentKind,
    Buffer,
    Launch,
    LaunchPlan,
    ResolvedArgument,
    ResolvedLaunch,
    ResolvedPlan,
)

MAX_WORKSPACE_BYTES = 8 << 30
GRID_LIMIT = (2**31 - 1, 65535, 65535)
BLOCK_LIMIT = (1024, 1024, 64)
THREADS_LIMIT = 1024
SHARED_LIMIT = 232448  # bytes a block may opt in to on compute capability 9.0 and 10.0
F32_MOST = (2 - 2**-23) * 2.0**127
INT_RANGE = {"i32": 1 << 31, "i64": 1 << 63}


def resolve(plan: LaunchPlan, call: Call) -> ResolvedPlan:
    """The launches of a plan for one call's tensors and arguments.

    Raises:
        SourceRejected: an expression has no value here, or a size is outside the device's limits.
    """
    return _Resolver(plan, call).resolved()


def environment(call: Call) -> dict[str, Value]:
    """What expressions may name: in0.., out0.. and the operator's own arguments."""
    names: dict[str, Value] = {a.name: _plain(a) for a in call.arguments if _nameable(a)}
    names |= {f"in{i}": t for i, t in enumerate(call.inputs)}
    names |= {f"out{i}": o.tensor for i, o in enumerate(call.outputs)}
    return names


def _nameable(argument: Argument) -> bool:
    value = argument.value
    if isinstance(value, dict):
        return "float" in value
    if isinstance(value, list):
        return all(isinstance(v, int | float) for v in value)
    return isinstance(value, int | float)


def _plain(argument: Argument) -> Value:
    value = argument.value
    return float(str(value["float"])) if isinstance(value, dict) else value


def buffer_sizes(call: Call) -> list[Buffer]:
    """The buffers of a call before its workspaces: every input, then every fresh output."""
    inputs = [_buffer("in", i, t) for i, t in enumerate(call.inputs)]
    fresh = [(i, o) for i, o in enumerate(call.outputs) if o.alias is None]
    return inputs + [_buffer("out", i, o.tensor) for i, o in fresh]


def _buffer(role: str, index: int, spec: TensorSpec) -> Buffer:
    size = spec.extent * ITEM_BYTES[spec.dtype]
    return Buffer(role="input" if role == "in" else "output", index=index, bytes=size)


@dataclass(frozen=True)
class _Resolver:
    plan: LaunchPlan
    call: Call

    def resolved(self) -> ResolvedPlan:
        names = environment(self.call)
        for name, text in self.plan.lets:
            if name in names:
                raise SourceRejected(f"let.{name} hides the argument {name}; choose another name")
            names[name] = self._value(f"let.{name}", text, names)
        buffers = self._buffers(names)
        positions = self._positions(buffers)
        launches = tuple(
            self._launch(f"launch[{i}]", launch, names, positions)
            for i, launch in enumerate(self.plan.launches)
        )
        return ResolvedPlan(buffers=tuple(buffers), launches=launches)

    def _buffers(self, names: Mapping[str, Value]) -> list[Buffer]:
        zeroed = set(self.plan.zeroed_outputs)
        unknown = zeroed - {i for i, o in enumerate(self.call.outputs) if o.alias is None}
        if unknown:
            raise SourceRejected(f"[output.out{min(unknown)}] is not a fresh output of this call")
        buffers = [
            Buffer(role=b.role, index=b.index, bytes=b.bytes, zero=True)
            if b.role == "output" and b.index in zeroed
            else b
            for b in buffer_sizes(self.call)
        ]
        for i, workspace in enumerate(self.plan.workspaces):
            where = f"workspace.ws{i}.bytes"
            size = self._size(where, workspace.bytes, names, MAX_WORKSPACE_BYTES)
            buffers.append(Buffer(role="workspace", index=i, bytes=size, zero=workspace.zero))
        return buffers

    def _positions(self, buffers: list[Buffer]) -> dict[str, int]:
        prefix = {"input": "in", "output": "out", "workspace": "ws"}
        found = {f"{prefix[b.role]}{b.index}": i for i, b in enumerate(buffers)}
        aliases: list[tuple[int, OutputSpec]] = list(enumerate(self.call.outputs))
        found |= {f"out{i}": o.alias for i, o in aliases if o.alias is not None}
        return found

    def _launch(
        self, where: str, launch: Launch, names: Mapping[str, Value], positions: Mapping[str, int]
    ) -> ResolvedLaunch:
        grid = self._triple(f"{where}.grid", launch.grid, names, GRID_LIMIT)
        block = self._triple(f"{where}.block", launch.block, names, BLOCK_LIMIT)
        if block[0] * block[1] * block[2] > THREADS_LIMIT:
            raise SourceRejected(f"{where}.block has more than {THREADS_LIMIT} threads")
        cluster = launch.cluster and self._triple(
            f"{where}.cluster", launch.cluster, names, (16, 16, 16)
        )
        return ResolvedLaunch(
            kernel=launch.kernel,
            args=tuple(self._argument(f"{where}.args", a, names, positions) for a in launch.args),
            grid=grid,
            block=block,
            shared=self._size(f"{where}.shared", launch.shared, names, SHARED_LIMIT, least=0),
            cluster=cluster or None,
            cooperative=launch.cooperative,
        )

    def _argument(
        self, where: str, text: str, names: Mapping[str, Value], positions: Mapping[str, int]
    ) -> ResolvedArgument:
        if ":" not in text:
            if text not in positions:
                known = ", ".join(positions)
                raise SourceRejected(f"{where}: there is no buffer {text}; this call has {known}")
            return ResolvedArgument(kind="buffer", value=positions[text])
        kind, expression = text.split(":", 1)
        value = self._value(f"{where} {kind}", expression, names)
        return ResolvedArgument(kind=_kind(kind), value=_typed(where, kind, value))

    def _triple(
        self,
        where: str,
        texts: tuple[str, str, str],
        names: Mapping[str, Value],
        limits: tuple[int, int, int],
    ) -> tuple[int, int, int]:
        x, y, z = (
            self._size(where, text, names, limit) for text, limit in zip(texts, limits, strict=True)
        )
        return x, y, z

    def _size(
        self, where: str, text: str, names: Mapping[str, Value], limit: int, least: int = 1
    ) -> int:
        value = self._value(where, text, names)
        if not isinstance(value, int) or not least <= value <= limit:
            raise SourceRejected(
                f"{where} = {text} gives {value}; it must be an integer from {least} to {limit}"
            )
        return value

    def _value(self, where: str, text: str, names: Mapping[str, Value]) -> Number:
        try:
            return evaluate(text, names)
        except ExpressionError as error:
            raise SourceRejected(f"{where} = {text}: {error}") from error


def _kind(text: str) -> ArgumentKind:
    kinds: dict[str, ArgumentKind] = {"i32": "i32", "i64": "i64", "f32": "f32", "f64": "f64"}
    return kinds[text]


def _real(where: str, kind: str, value: float) -> float:
    if not math.isfinite(value):
        raise SourceRejected(
            f"{where}: {kind} was given {value}, which is not finite; it cannot be an argument, so "
            "write INFINITY or NAN in the source instead"
        )
    if kind == "f32" and abs(value) > F32_MOST:
        raise SourceRejected(f"{where}: {value} does not fit {kind}")
    return value


def _typed(where: str, kind: str, value: Number) -> Number:
    if kind in ("f32", "f64"):
        return _real(where, kind, float(value))
    if not isinstance(value, int):
        raise SourceRejected(f"{where}: {kind} was given the real number {value}")
    if not -INT_RANGE[kind] <= value < INT_RANGE[kind]:
        raise SourceRejected(f"{where}: {value} does not fit {kind}")
    return value
