"""Whether an operator call can be a target: four tests, no list of operators."""

import logging
from collections.abc import Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree

from kernelforge_engine.worker.tensors import copied

JUDGED = {
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.bool,
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
}  # fmt: skip
DYNAMIC = (torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output)

log = logging.getLogger(__name__)


def tensors_in(value: Any) -> list[torch.Tensor]:
    """The tensors of an argument list or result, in order."""
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def refusal(op: Any, args: Sequence[Any], kwargs: dict[str, Any], output: Any) -> str | None:
    """Why a call cannot be a target, or None; `args` hold the values from before the call."""
    return (
        _structure(op, args, kwargs, output)
        or _shape_from_data(op, args, kwargs, output)
        or _repeated(op, args, kwargs)
    )


def _structure(op: Any, args: Sequence[Any], kwargs: dict[str, Any], output: Any) -> str | None:
    inputs, outputs = tensors_in((args, kwargs)), tensors_in(output)
    leaves = pytree.tree_leaves(output)
    if op.namespace != "aten":
        return "it is a custom operator, which only the model's own process can call"
    if not inputs:
        return "it takes no tensor"
    if not outputs or len(outputs) != len(leaves):
        return "it returns something else than tensors"
    if _is_view(op, inputs, outputs):
        return "it is a view"
    return _memory([*inputs, *outputs])


def _memory(tensors: Sequence[torch.Tensor]) -> str | None:
    if any(not t.numel() for t in tensors):
        return "it has an empty tensor"
    if len({t.device for t in tensors}) > 1:
        return "it spans several devices"
    if unjudged := {t.dtype for t in tensors} - JUDGED:
        return f"there are no rules yet for {str(unjudged.pop()).removeprefix('torch.')}"
    if any(_awkward(t) for t in tensors):
        return "it has a tensor that is not plain, dense and non-overlapping"
    return None


def _written(op: Any) -> set[str]:
    """The arguments that the schema says are written."""
    arguments = op._schema.arguments
    return {a.name for a in arguments if a.alias_info is not None and a.alias_info.is_write}


def _is_view(op: Any, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> bool:
    if _written(op):
        return False
    storages = {t.untyped_storage().data_ptr() for t in inputs}
    return any(t.untyped_storage().data_ptr() in storages for t in outputs)


def _awkward(tensor: torch.Tensor) -> bool:
    if tensor.layout != torch.strided or tensor.is_conj() or tensor.is_neg() or tensor.is_complex():
        return True
    expanded = [(n, s) for n, s in zip(tensor.shape, tensor.stride(), strict=True) if s]
    return torch._debug_has_internal_overlap(_kept(tensor, expanded)) == 1


def _kept(tensor: torch.Tensor, dims: Sequence[tuple[int, int]]) -> torch.Tensor:
    """The tensor without its expanded dimensions, whose overlap is harmless to read."""
    return tensor.as_strided([n for n, _ in dims], [s for _, s in dims])


def _shape_from_data(
    op: Any, args: Sequence[Any], kwargs: dict[str, Any], output: Any
) -> str | None:
    try:
        with FakeTensorMode(allow_non_fake_inputs=False) as mode:
            fake_args, fake_kwargs = pytree.tree_map_only(
                torch.Tensor, mode.from_tensor, (tuple(args), dict(kwargs))
            )
            fake = tensors_in(op(*fake_args, **fake_kwargs))
    except Exception as error:  # noqa: BLE001  no meta kernel: the operator's own tags decide
        log.info("%s under fake tensors: %s", op, error)
        return "its output shape depends on data" if _tagged(op) else None
    real = tensors_in(output)
    same = [(tuple(f.shape), f.dtype) for f in fake] == [(tuple(r.shape), r.dtype) for r in real]
    return None if same else "its output shape depends on data"


def _tagged(op: Any) -> bool:
    return any(tag in op.tags for tag in DYNAMIC)


def _repeated(op: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> str | None:
    """Run the operator twice: the same must come out, and only declared arguments may change."""
    runs = []
    for _ in range(2):
        fresh_args, fresh_kwargs = _fresh(args, kwargs)
        runs.append(tensors_in(op(*fresh_args, **fresh_kwargs)))
        if _undeclared(op, (args, kwargs), (fresh_args, fresh_kwargs)):
            return "it writes an argument that its schema does not declare"
    return None if all(map(_same, *runs)) else "it is random"


def _undeclared(op: Any, before: tuple[Any, Any], after: tuple[Any, Any]) -> bool:
    names = [a.name for a in op._schema.arguments]
    written = _written(op)
    pairs = [*zip(names, before[0], after[0], strict=False)]
    pairs += [(name, value, after[1][name]) for name, value in before[1].items()]
    kept = [(b, a) for name, b, a in pairs if name not in written]
    old, new = (tensors_in([pair[side] for pair in kept]) for side in (0, 1))
    return not all(map(_same, old, new))


def _same(first: torch.Tensor, second: torch.Tensor) -> bool:
    return torch.equal(_bits(first), _bits(second))


def _fresh(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    fresh_args, fresh_kwargs = pytree.tree_map_only(
        torch.Tensor, copied, (tuple(args), dict(kwargs))
    )
    return fresh_args, fresh_kwargs


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)
