"""Live argument values as plain data, and back: the two directions of records.Argument.

What no guard can cover is refused here, with the same rules as `native/words.h`: only dense strided
tensors without lazy bits, modes or wrappers, on one device, and plain numbers, texts and lists.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch._C import (
    DispatchKey,
    DispatchKeySet,
    _dispatch_has_kernel_for_dispatch_key,
    _dispatch_keys,
)
from torch._ops import OpOverload

from kernelforge_engine.calls import Json, TensorSpec
from kernelforge_engine.cast.words import DEVICES, DTYPES, LAYOUTS, MEMORY_FORMATS

INT64 = range(-(1 << 63), 1 << 63)
ENUMS = {"ScalarType": DTYPES, "MemoryFormat": MEMORY_FORMATS, "Layout": LAYOUTS}
# With kernels of their own, and yet like a composite operator; the same in native/hook.h.
CALLING = frozenset({
    "aten::_transformer_encoder_layer_fwd", "aten::_native_multi_head_attention",
    "aten::_triton_multi_head_attention",
})  # fmt: skip
PLAIN_KEYS = ("CPU", "CUDA", "AutogradCPU", "AutogradCUDA", "ADInplaceOrView", "AutocastCPU",
              "AutocastCUDA")  # fmt: skip


class Unguardable(ValueError):
    """A call that no guard can cover; the text says why."""

    def __init__(self, *, why: str) -> None:
        super().__init__(why)


def _plain_keys() -> int:
    keys = DispatchKeySet(DispatchKey.CPU)
    for name in PLAIN_KEYS:
        keys = keys.add(getattr(DispatchKey, name))
    bits: int = keys.raw_repr()
    return bits


PLAIN = _plain_keys()


@dataclass(frozen=True)
class Parameter:
    """One argument of an operator's schema; `alias` holds its alias set when it is written to."""

    name: str
    kind: str
    count: int | None
    default: Any
    required: bool
    keyword_only: bool
    alias: frozenset[str] | None


def overload_of(operator: str, overload: str) -> OpOverload:
    """An operator by its names: aten::add and Tensor.

    Raises:
        AttributeError: it is not registered in this process.
    """
    namespace, _, name = operator.partition("::")
    packet = getattr(getattr(torch.ops, namespace), name)
    found: OpOverload = getattr(packet, overload or "default")
    return found


def schema(op: OpOverload) -> Any:
    """The schema object of an operator overload."""
    return op._schema


@cache
def parameters(op: OpOverload) -> tuple[Parameter, ...]:
    """The arguments of an operator in schema order."""
    return tuple(
        Parameter(
            name=a.name,
            kind=str(a.real_type),
            count=a.N,
            default=a.default_value,
            required=not a.has_default_value(),
            keyword_only=a.kwarg_only,
            alias=written(a),
        )
        for a in schema(op).arguments
    )


def name_of(op: OpOverload) -> str:
    """The full name of an operator overload, such as aten::softmax.int."""
    return f"{schema(op).name}.{schema(op).overload_name}".rstrip(".")


def calls_others(name: str) -> bool:
    """Whether an operator computes by calling others, which autocast would change."""
    composite = ("CompositeImplicitAutograd", "CompositeExplicitAutograd")
    return name in CALLING or any(
        _dispatch_has_kernel_for_dispatch_key(name, key) for key in composite
    )


def written(entry: Any) -> frozenset[str] | None:
    """The alias set of a schema argument or return that is written to, or None."""
    info = entry.alias_info
    return frozenset(info.before_set) if info is not None and info.is_write else None


def schema_values(op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """Every argument in schema order, defaults filled, in the form a boxed kernel sees it.

    Raises:
        Unguardable: a required argument is missing.
    """
    values = []
    for position, parameter in enumerate(parameters(op)):
        if position < len(args):
            value = args[position]
        elif parameter.name in kwargs:
            value = kwargs[parameter.name]
        elif parameter.required:
            raise Unguardable(why=f"argument {parameter.name} of {op} is missing")
        else:
            value = parameter.default
        values.append(_canonical(value, parameter.kind, parameter.count))
    return values


def _canonical(value: Any, kind: str, count: int | None) -> Any:
    """The value as the schema's type holds it: `float` of 1 is 1.0, `int[2]` of 3 is [3, 3]."""
    if kind.startswith("Optional["):
        return None if value is None else _canonical(value, kind[9:-1], count)
    if kind.startswith("List["):
        items = value if isinstance(value, list | tuple) else [value] * (count or 1)
        return [_canonical(item, kind[5:-1], None) for item in items]
    if kind == "float" and type(value) is int:
        return float(value)
    if kind == "int" and type(value) is bool:
        return int(value)
    if kind in ENUMS and type(value) is int:
        names = [name for name, code in ENUMS[kind].items() if code == value]
        return getattr(torch, names[0]) if names else value
    return value


def encode(values: Iterable[Any]) -> tuple[list[Json], list[Tensor]]:
    """Argument values in the form of records.Argument, and their tensors in the order met.

    Raises:
        Unguardable: a value that no guard can cover, or tensors on more than one device.
    """
    tensors: list[Tensor] = []

    def named(tensor: Tensor) -> Json:
        tensors.append(checked(tensor))
        return {"tensor": len(tensors) - 1}

    encoded = [encode_value(value, named) for value in values]
    refuse_devices(tensors)
    return encoded, tensors


def refuse_devices(tensors: Iterable[Tensor]) -> None:
    """Refuse tensors on more than one device.

    Raises:
        Unguardable: they are.
    """
    if len({tensor.device for tensor in tensors}) > 1:
        raise Unguardable(why="its tensors are on more than one device")


def encode_value(value: Any, named: Callable[[Tensor], Json]) -> Json:
    """One argument value in the form of records.Argument; `named` says what stands for a tensor.

    Raises:
        Unguardable: a value that no guard can cover.
    """
    if isinstance(value, Tensor):
        return named(value)
    if isinstance(value, list | tuple):
        return [encode_value(item, named) for item in value]
    if value is None or type(value) in (bool, str):
        plain: Json = value
        return plain
    return _encode_number(value)


def _encode_number(value: Any) -> Json:
    if type(value) is int and value in INT64:
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": str(value)}
    for kind, enum, names in (
        ("dtype", torch.dtype, DTYPES),
        ("memory_format", torch.memory_format, MEMORY_FORMATS),
        ("layout", torch.layout, LAYOUTS),
    ):
        if isinstance(value, enum) and _name(value) in names:
            return {kind: _name(value)}
    raise Unguardable(why=f"a {type(value).__name__} argument has no guard")


def checked(tensor: Tensor) -> Tensor:
    """The tensor itself, if it is plain.

    Raises:
        Unguardable: it is a subclass, lazy, wrapped, not dense and strided, or on another device.
    """
    if type(tensor) not in (Tensor, torch.nn.Parameter):
        raise Unguardable(why=f"a {type(tensor).__name__} is not a plain tensor")
    if _dispatch_keys(tensor).raw_repr() & ~PLAIN or tensor.layout != torch.strided:
        raise Unguardable(
            why=f"its tensor has more than plain dispatch keys: {_dispatch_keys(tensor)}"
        )
    if _name(tensor.dtype) not in DTYPES or tensor.device.type not in DEVICES:
        raise Unguardable(why=f"a {_name(tensor.dtype)} tensor on {tensor.device} has no guard")
    if tensor.dtype.is_complex:
        raise Unguardable(why="complex tensors have no guard")
    return tensor


def spec_of(tensor: Tensor) -> TensorSpec:
    """The metadata of a plain tensor."""
    return TensorSpec(
        dtype=_name(tensor.dtype),
        shape=tuple(tensor.shape),
        stride=tensor.stride(),
        device=tensor.device.type,
        aligned=tensor.data_ptr() % 16 == 0,
    )


def decode(value: Json, tensors: Sequence[Tensor]) -> Any:
    """The live value of a records.Argument value; a CUDA device is that of the first tensor."""
    if isinstance(value, list):
        return [decode(item, tensors) for item in value]
    if not isinstance(value, dict):
        return value
    [(kind, held)] = value.items()
    if kind == "tensor" and isinstance(held, int):
        return tensors[held]
    if kind == "device":
        return torch.device("cpu") if held == "cpu" else tensors[0].device
    return float(str(held)) if kind == "float" else getattr(torch, str(held))


def _name(value: object) -> str:
    return str(value).removeprefix("torch.")
