"""Where a run of a model is: the module that runs, and which tensors are the model's own."""

import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn.modules import module as nn_module


class ModuleTrail:
    """Which module is running, through global hooks (hooks on modules would change fast paths).

    Parameters and buffers are found at the latest when a module that holds them first runs, so that
    a model may be any callable. Other threads run these hooks too; what they do is not followed.
    """

    def __init__(self, model: object) -> None:
        self._names: dict[int, str] = {}
        self._own: dict[int, weakref.ref[torch.Tensor]] = {}
        self._stack: list[str] = []
        self._thread = threading.get_ident()
        for module in _modules_of(model):
            self._learn(module)

    @property
    def here(self) -> str:
        """Path and class of the innermost running module."""
        return self._stack[-1] if self._stack else ""

    def parameters(self, tensors: Sequence[torch.Tensor]) -> tuple[int, ...]:
        """Which of these tensors lie in the memory of a parameter or buffer."""
        return tuple(i for i, tensor in enumerate(tensors) if self._is_own(tensor))

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Follow every module forward of this thread inside."""
        self._thread = threading.get_ident()
        enter = nn_module.register_module_forward_pre_hook(self._enter)
        leave = nn_module.register_module_forward_hook(self._leave, always_call=True)
        try:
            yield
        finally:
            enter.remove()
            leave.remove()
            self._stack.clear()

    def _learn(self, module: torch.nn.Module) -> None:
        for name, part in module.named_modules():
            self._names.setdefault(id(part), name)
        self._remember(module.parameters())
        self._remember(module.buffers())

    def _remember(self, tensors: Iterable[torch.Tensor]) -> None:
        for tensor in tensors:
            if _has_memory(tensor):
                self._own[tensor.untyped_storage().data_ptr()] = weakref.ref(tensor)

    def _is_own(self, tensor: torch.Tensor) -> bool:
        """A buffer may have been replaced since and its memory given to an activation."""
        memory = tensor.untyped_storage().data_ptr()
        known = self._own.get(memory)
        own = known() if known is not None else None
        return own is not None and own.untyped_storage().data_ptr() == memory != 0

    def _enter(self, module: torch.nn.Module, _args: Any) -> None:
        if threading.get_ident() != self._thread:
            return
        if id(module) not in self._names:
            self._learn(module)
        name = self._names[id(module)]
        self._stack.append(f"{name} ({type(module).__name__})".strip())

    def _leave(self, _module: torch.nn.Module, _args: Any, _output: Any) -> None:
        if threading.get_ident() == self._thread and self._stack:
            self._stack.pop()


def _modules_of(model: object) -> list[torch.nn.Module]:
    """The model, or the modules that a pipeline or another callable holds, where one can see."""
    owner = getattr(model, "__self__", model)
    if isinstance(owner, torch.nn.Module):
        return [owner]
    held = [*vars(owner).values()] if hasattr(owner, "__dict__") else []
    return [value for value in held if isinstance(value, torch.nn.Module)]


def _has_memory(tensor: torch.Tensor) -> bool:
    return tensor.layout == torch.strided and not torch.nn.parameter.is_lazy(tensor)
