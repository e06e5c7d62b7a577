"""Whether a kernel that was judged on one call may serve another: what its plan and its layout
take for granted has to hold there too. It is only a guess; the other project judges it anew."""

import ast
from collections.abc import Iterator, Sequence

from kernelforge_engine.calls import Argument, Call, Json, Region, Step, TensorSpec
from kernelforge_engine.launch.expression import parse
from kernelforge_engine.launch.header import SourceRejected
from kernelforge_engine.launch.resolve import resolve
from kernelforge_engine.library.match import channels_last, dense
from kernelforge_engine.plans import LaunchPlan

Sizes = frozenset[tuple[int, int]]  # what a size was, and what it is here


def serves(plan: LaunchPlan, judged: Call, call: Call) -> bool:
    """Whether the kernel of a plan that was judged on one call may serve another."""
    return (
        _alike_outside(judged, call)
        and all(_lies_alike(a, b) for a, b in _tensors(judged, call))
        and _repeats_alike(judged, call)
        and _computes_alike(judged, call, frozenset(_named(plan)))
        and _resolves(plan, call)
    )


def _alike_outside(judged: Call, call: Call) -> bool:
    """The same backend and schema, and tensors of the same dtypes that are written the same way."""
    return (
        judged.backend == call.backend
        and (judged.region is None) == (call.region is None)
        and (judged.region is not None or judged.name == call.name)
        and [t.dtype for t in judged.inputs] == [t.dtype for t in call.inputs]
        and [(o.tensor.dtype, o.alias) for o in judged.outputs]
        == [(o.tensor.dtype, o.alias) for o in call.outputs]
        and judged.mutated == call.mutated
    )


def _tensors(judged: Call, call: Call) -> list[tuple[TensorSpec, TensorSpec]]:
    outputs = zip(judged.outputs, call.outputs, strict=True)
    inputs = zip(judged.inputs, call.inputs, strict=True)
    return [*inputs, *((a.tensor, b.tensor) for a, b in outputs)]


def _lies_alike(a: TensorSpec, b: TensorSpec) -> bool:
    """As many dimensions in the same order of memory, and an alignment that was there before."""
    if len(a.shape) != len(b.shape) or (a.aligned and not b.aligned):
        return False
    orders = (dense, channels_last)
    return any(lies(a) and lies(b) for lies in orders) or _steps(a) == _steps(b)


def _steps(spec: TensorSpec) -> list[tuple[int, str]]:
    """The dimensions from the nearest to the farthest, each with whether it repeats, leaves a gap
    or neither; a dimension of one element says nothing."""
    found, packed = [], 1
    for stride, (dim, size) in sorted(zip(spec.stride, enumerate(spec.shape), strict=True)):
        if size > 1:
            kind = "repeats" if stride == 0 else "packed" if stride == packed else "gap"
            found.append((dim, kind))
            packed = stride * size if stride else packed
    return found


def _repeats_alike(judged: Call, call: Call) -> bool:
    """A dimension of one element has more here, or the reverse, only where the result's has too:
    an operand that is repeated along it is another matter."""
    if not call.outputs:
        return True
    before, now = judged.outputs[0].tensor.shape, call.outputs[0].tensor.shape
    for a, b in _tensors(judged, call):
        for place in range(-len(a.shape), 0):
            if (a.shape[place] == 1) != (b.shape[place] == 1) and not (
                -place <= min(len(before), len(now))
                and (a.shape[place], b.shape[place]) == (before[place], now[place])
            ):
                return False
    return True


def _computes_alike(judged: Call, call: Call, named: frozenset[str]) -> bool:
    """The same arguments, but for sizes and for what the plan takes by name; of a region the same
    operators in the same order, whatever it is called."""
    sizes = frozenset(
        pair for a, b in _tensors(judged, call) for pair in zip(a.shape, b.shape, strict=True)
    )
    if judged.region is not None and call.region is not None:
        return _programs_alike(judged.region, call.region, sizes)
    return _arguments_alike(judged.arguments, call.arguments, sizes, named)


def _programs_alike(a: Region, b: Region, sizes: Sizes) -> bool:
    return ((a.returns, a.form, len(a.steps)) == (b.returns, b.form, len(b.steps))) and all(
        _step_alike(x, y, sizes) for x, y in zip(a.steps, b.steps, strict=True)
    )


def _step_alike(a: Step, b: Step, sizes: Sizes) -> bool:
    same = (a.operator, a.overload, a.results) == (b.operator, b.overload, b.results)
    return same and _arguments_alike(a.arguments, b.arguments, sizes, frozenset())


def _arguments_alike(
    a: Sequence[Argument], b: Sequence[Argument], sizes: Sizes, named: frozenset[str]
) -> bool:
    if [x.name for x in a] != [x.name for x in b]:
        return False
    return all(
        _alike(x.value, y.value, None if x.name in named else sizes)
        for x, y in zip(a, b, strict=True)
    )


def _alike(a: Json, b: Json, sizes: Sizes | None) -> bool:
    """Equal, or a size that became another; any number for another where `sizes` is None."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_alike(x, y, sizes) for x, y in zip(a, b, strict=True))
    if sizes is None and _is_number(a) and _is_number(b):
        return True
    both = isinstance(a, int) and isinstance(b, int) and type(a) is type(b)
    return a == b or (both and sizes is not None and (a, b) in sizes)


def _is_number(value: Json) -> bool:
    if isinstance(value, dict):
        return "float" in value
    return isinstance(value, int | float) and not isinstance(value, bool)


def _resolves(plan: LaunchPlan, call: Call) -> bool:
    try:
        resolve(plan, call)
    except SourceRejected:
        return False
    return True


def _named(plan: LaunchPlan) -> Iterator[str]:
    """Every name that the expressions of a plan mention."""
    for text in _expressions(plan):
        yield from (n.id for n in ast.walk(parse(text)) if isinstance(n, ast.Name))


def _expressions(plan: LaunchPlan) -> Iterator[str]:
    yield from (text for _, text in plan.lets)
    yield from (workspace.bytes for workspace in plan.workspaces)
    for launch in plan.launches:
        yield from (a.split(":", 1)[1] for a in launch.args if ":" in a)
        yield from (*launch.grid, *launch.block, launch.shared, *(launch.cluster or ()))
