"""What tells the calls of a replayed model apart: its arguments, tensors by their metadata and the
rest by value, and the settings of torch that decide what runs."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch._C import _dispatch_keys
from torch.autograd import forward_ad
from torch.nn import Parameter
from torch.overrides import _get_current_function_mode_stack
from torch.utils._device import DeviceContext

from kernelforge_engine.dispatch.encode import PLAIN
from kernelforge_engine.dispatch.facts import AS_THEY_ARE

BY_VALUE = (*AS_THEY_ARE, torch.device)
KEY_SET, UNSUPPORTED = "key_set", "unsupported_argument"


def signed(value: Any, tensors: list[Tensor], facts: list[object]) -> str:
    """Sort an argument into tensors, each once, and facts; why that cannot be done, in a word.

    Only lists, tuples and dictionaries of torch's and Python's plain values are taken: anything
    else may keep what its model does to it, as a cache does.
    """
    kind = type(value)
    if kind is Tensor or kind is Parameter:
        return _signed_tensor(value, tensors, facts)
    if value is None:
        facts.append(None)
    elif kind in BY_VALUE:
        facts += [kind, value]
    elif kind is float:  # 0.0 and -0.0 are equal
        facts += [kind, value.hex()]
    elif kind is list or kind is tuple:
        facts += [kind, len(value)]
        return _first(signed(item, tensors, facts) for item in value)
    elif kind is dict and all(type(key) in (str, int) for key in value):
        facts += [kind, tuple(value)]
        return _first(signed(item, tensors, facts) for item in value.values())
    else:
        return KEY_SET if isinstance(value, Tensor) else UNSUPPORTED
    return ""


def _first(reasons: Any) -> str:
    return next(filter(None, reasons), "")


def _signed_tensor(value: Tensor, tensors: list[Tensor], facts: list[object]) -> str:
    if not is_plain(value):
        return KEY_SET
    for number, known in enumerate(tensors):
        if known is value:
            facts += [Tensor, number]
            return ""
    tensors.append(value)
    facts += [Tensor, value.dtype, value.shape, value.stride(), value.device]
    return ""


def is_plain(tensor: Tensor) -> bool:
    """Whether a tensor is no more than the bytes of its memory."""
    kind = type(tensor)
    return (
        (kind is Tensor or kind is Parameter)
        and tensor.layout is torch.strided
        and not _dispatch_keys(tensor).raw_repr() & ~PLAIN
    )


def rebuilt(value: Any, by: Mapping[int, Tensor]) -> Any:
    """An argument with other tensors in it, given by the ids of its own."""
    if isinstance(value, Tensor):
        return by[id(value)]
    if isinstance(value, dict):
        return {key: rebuilt(item, by) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(rebuilt(item, by) for item in value)
    return value


def is_observed() -> bool:
    """Whether somebody sees the operators of this thread: a mode, a transform, a tracer."""
    return bool(
        torch._C._len_torch_dispatch_stack()
        or torch._C._get_tracing_state() is not None
        or torch._C._functorch.peek_interpreter_stack() is not None
        or forward_ad._current_level >= 0
        or not all(isinstance(mode, DeviceContext) for mode in _function_modes())
    )


def _function_modes() -> list[Any]:
    if not torch._C._is_torch_function_mode_enabled():
        return []
    return list(_get_current_function_mode_stack())


def settings(device: str) -> tuple[object, ...]:
    """What decides beside the arguments which operators and which of torch's kernels run."""
    return (
        torch.is_inference_mode_enabled(),
        torch.is_grad_enabled(),
        torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None,
        torch.get_default_dtype(),
        torch.get_float32_matmul_precision(),
        torch.are_deterministic_algorithms_enabled(),
        torch._C._get_flash_sdp_enabled(),
        torch._C._get_mem_efficient_sdp_enabled(),
        torch._C._get_math_sdp_enabled(),
        torch._C._get_cudnn_sdp_enabled(),
        *(mode.device for mode in _function_modes()),
    )
