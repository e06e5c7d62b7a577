"""From a live operator call to its guard words and its Call record, and back to a live call."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._C import _dispatch_has_kernel_for_dispatch_key
from torch._ops import OpOverload

from kernelforge_engine.calls import Argument, Call, OutputSpec, TensorSpec
from kernelforge_engine.cast.words import tensor_indexes, words_of
from kernelforge_engine.dispatch.encode import (
    Unguardable,
    calls_others,
    checked,
    decode,
    encode,
    name_of,
    overload_of,
    parameters,
    schema,
    schema_values,
    spec_of,
    written,
)

__all__ = ["Unguardable", "arguments_of", "describe", "operator_of", "schema_values", "words"]


def words(values: Sequence[Any]) -> tuple[tuple[int, ...], list[Tensor]]:
    """The guard words of schema values, as the shim computes them, and the tensors among them.

    Tensors are in schema order, None skipped and lists flattened; a Python number that stands where
    the schema has a tensor is keyed by its value.

    Raises:
        Unguardable: a value that no guard can cover.
    """
    encoded, tensors = encode(values)
    return words_of(encoded, [spec_of(t) for t in tensors]), tensors


def describe(op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], outputs: Any) -> Call:
    """The record of one call; `args`, `kwargs` and `outputs` are the live objects of that call.

    Raises:
        Unguardable: the call has no tensor in or out, returns a view, writes where another argument
            lies, or holds a value that no guard can cover.
    """
    encoded, tensors = encode(schema_values(op, args, kwargs))
    if not tensors:
        raise Unguardable(why="no tensor goes in")
    _refuse_context(op, tensors[0].device.type)
    specs = tuple(spec_of(t) for t in tensors)
    aliases = {
        p.alias: tensor_indexes(v) for p, v in zip(parameters(op), encoded, strict=True) if p.alias
    }
    mutated = tuple(i for slot in aliases.values() for i in slot)
    _refuse_overlap(tensors, specs, mutated)
    return Call(
        operator=schema(op).name,
        overload=schema(op).overload_name,
        words=words_of(encoded, specs),
        arguments=tuple(
            Argument(name=p.name, value=v) for p, v in zip(parameters(op), encoded, strict=True)
        ),
        inputs=specs,
        outputs=_outputs(op, outputs, tensors, aliases),
        mutated=mutated,
    )


def operator_of(call: Call) -> OpOverload:
    """The operator overload a call names.

    Raises:
        Unguardable: it is not registered in this process.
    """
    try:
        return overload_of(call.operator, call.overload)
    except AttributeError as error:
        raise Unguardable(why=f"{call.name} is not registered in this process") from error


def arguments_of(
    call: Call, tensors: Sequence[Tensor]
) -> tuple[OpOverload, list[Any], dict[str, Any]]:
    """The operator with the positional and keyword-only arguments that repeat a call on `tensors`,
    which are given in the order of `call.inputs`.

    Raises:
        Unguardable: the operator is not registered here or has other arguments.
    """
    op = operator_of(call)
    names = [p.name for p in parameters(op)]
    if names != [a.name for a in call.arguments]:
        raise Unguardable(why=f"{call.name} takes {', '.join(names)} in this version of torch")
    values = [decode(a.value, tensors) for a in call.arguments]
    paired = list(zip(parameters(op), values, strict=True))
    return (
        op,
        [v for p, v in paired if not p.keyword_only],
        {p.name: v for p, v in paired if p.keyword_only},
    )


def _refuse_context(op: OpOverload, device: str) -> None:
    if torch.Tag.inplace_view in op.tags:
        raise Unguardable(why="it changes the metadata of its argument")
    # Autocast would reach the operators inside this one; a kernel in its place would not.
    # With a rule of its own (linear, conv2d, softmax) an operator comes here with its inputs cast.
    if (
        autocast_depth() > 0
        and calls_others(name_of(op))
        and not _dispatch_has_kernel_for_dispatch_key(name_of(op), f"Autocast{device.upper()}")
    ):
        raise Unguardable(why="autocast acts on the operators inside this composite operator")


def autocast_depth() -> int:
    """How many autocast regions surround this thread; a dispatch mode hides whether they are on."""
    depth = torch.autocast_increment_nesting() - 1
    torch.autocast_decrement_nesting()
    return depth


def _refuse_overlap(
    tensors: Sequence[Tensor], specs: Sequence[TensorSpec], mutated: Sequence[int]
) -> None:
    spans = [
        (t.data_ptr(), t.data_ptr() + s.extent_bytes) for t, s in zip(tensors, specs, strict=True)
    ]
    for i in mutated:
        if not _distinct(specs[i]):
            raise Unguardable(why="it writes a tensor whose elements share memory")
        for j, (start, end) in enumerate(spans):
            if j != i and max(start, spans[i][0]) < min(end, spans[i][1]):
                raise Unguardable(why="a tensor it writes overlaps another argument")


def _distinct(spec: TensorSpec) -> bool:
    """Whether no two elements can share memory: each stride steps over all that lies below it."""
    steps = sorted((s, n) for n, s in zip(spec.shape, spec.stride, strict=True) if n > 1)
    ends = [0, *(s * (n - 1) for s, n in steps)]
    return 0 in spec.shape or all(step > sum(ends[: i + 1]) for i, (step, _) in enumerate(steps))


def _outputs(
    op: OpOverload, outputs: Any, tensors: Sequence[Tensor], aliases: Mapping[Any, list[int]]
) -> tuple[OutputSpec, ...]:
    returns = schema(op).returns
    found = (outputs,) if len(returns) == 1 else tuple(outputs or ())
    if not returns or len(found) != len(returns):
        raise Unguardable(why="no tensor comes out")
    if sum(isinstance(item, list | tuple) for item in found) > 1:
        raise Unguardable(why="it returns more than one list")
    flat = [
        (tensor, written(entry))
        for item, entry in zip(found, returns, strict=True)
        for tensor in (item if isinstance(item, list | tuple) else [item])
    ]
    if not flat or not all(isinstance(tensor, Tensor) for tensor, _ in flat):
        raise Unguardable(why="it returns something else than tensors")
    refuse_views([tensor for tensor, alias in flat if not alias], tensors)
    return tuple(
        OutputSpec(
            tensor=spec_of(checked(tensor)),
            alias=_single(aliases.get(alias, [])) if alias else None,
        )
        for tensor, alias in flat
    )


def _single(slot: list[int]) -> int:
    if len(slot) != 1:
        raise Unguardable(why="it returns an argument that is not one tensor")
    return slot[0]


def refuse_views(fresh: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
    """Refuse outputs that a kernel cannot allocate and fill.

    Raises:
        Unguardable: one shares memory, within itself or with another tensor, or lies elsewhere.
    """
    taken = {_storage(t) for t in inputs if t.numel()}
    for tensor in map(checked, fresh):
        if tensor.device != inputs[0].device:
            raise Unguardable(why="an output lies on another device")
        if not _distinct(spec_of(tensor)):
            raise Unguardable(why="elements of an output share memory")
        if tensor.numel() and _storage(tensor) in taken:
            raise Unguardable(why="an output is a view")
        taken.add(_storage(tensor))


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
