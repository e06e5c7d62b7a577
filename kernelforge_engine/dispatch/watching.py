"""One run of a model that is watched operator by operator, to see whether it may be replayed: a
replay repeats what the device did, and nothing that Python, the processor or a second call did."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from kernelforge_engine.dispatch.encode import parameters, schema

WRITES, SYNC, HOST = "writes", "sync", "host"
LIFTED = torch.ops.aten.lift_fresh.default
COPIES = (torch.ops.aten.copy_.default, torch.ops.aten._to_copy.default)
MASKED = ("aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_")


class Watch(TorchDispatchMode):
    """Runs every operator as it is; `why` is the first reason against a replay, in a word.

    `held` has the memory that was read, was there before, and is neither an argument's nor the
    model's: it is not freed while a replay may read it.
    """

    def __init__(self, given: Iterable[Tensor], device: torch.device) -> None:
        super().__init__()
        self.why = ""
        self.held: dict[int, torch.UntypedStorage] = {}
        self._device = device
        self._known = {place for t in given if (place := place_of(t))}
        self._made: set[int] = set()

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Compiled parts of a model stay compiled while they are watched."""
        return True

    def __torch_dispatch__(
        self,
        op: Any,
        _types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = kwargs or {}
        read = _tensors((args, named))
        output = op(*args, **named)
        if isinstance(op, OpOverload) and not self.why:
            self._hold(read)
            made = _tensors(output)
            self.why = self._reason(op, args, named, read, made)
            self._made |= {p for t in made if (p := place_of(t)) and not self._is_older(p)}
        return output

    def is_given(self, tensor: Tensor) -> bool:
        """Whether a tensor lies in memory that was there before the run."""
        return self._is_older(place_of(tensor))

    def _is_older(self, place: int) -> bool:
        return place in self._known or place in self.held

    def _hold(self, read: Sequence[Tensor]) -> None:
        for tensor in read:
            place = place_of(tensor)
            if place and place not in self._made and place not in self._known:
                self.held.setdefault(place, tensor.untyped_storage())

    def _reason(
        self,
        op: OpOverload,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        read: Sequence[Tensor],
        made: Sequence[Tensor],
    ) -> str:
        if any(map(self.is_given, _written(op, args, kwargs))):
            return WRITES
        if _waits(op, read, self._device):
            return SYNC
        return HOST if _uses_host(op, read, made, self._device) else ""


def place_of(tensor: Tensor) -> int:
    """Where the memory of a tensor begins, 0 for none."""
    return tensor.untyped_storage().data_ptr()


def _tensors(value: Any) -> list[Tensor]:
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, Tensor)]


def _written(op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Tensor]:
    """The tensors that an operator writes to."""
    named = dict(zip((p.name for p in parameters(op)), args, strict=False)) | dict(kwargs)
    names = [p.name for p in parameters(op) if p.alias is not None]
    if "batch_norm" in schema(op).name and (named.get("training") or named.get("train")):
        names += ["running_mean", "running_var"]  # not all of their schemas say so
    return _tensors([named.get(name) for name in names])


def _waits(op: OpOverload, read: Sequence[Tensor], device: torch.device) -> bool:
    """Whether the processor has to wait for a value or a size that the device computes."""
    if not any(tensor.device == device for tensor in read):
        return False
    if schema(op).name in MASKED:
        return any(t.dtype in (torch.bool, torch.uint8) for t in read[1:])
    tags = op.tags
    return torch.Tag.data_dependent_output in tags or torch.Tag.dynamic_output_shape in tags


def _uses_host(
    op: OpOverload, read: Sequence[Tensor], made: Sequence[Tensor], device: torch.device
) -> bool:
    """Whether values pass between the device and host memory, or chance comes from the host."""
    if op is LIFTED:  # Python has just put its value there
        return any(tensor.device == device for tensor in made)
    there = [tensor for tensor in (*read, *made) if tensor.device != device]
    if not there:
        return False
    if torch.Tag.nondeterministic_seeded in op.tags:
        return True
    is_mixed = any(tensor.device == device for tensor in (*read, *made))
    return is_mixed and (op in COPIES or any(tensor.ndim for tensor in there))
