"""Loading a user's model: plain Python run in this child only, with its own folder importable."""

import importlib.util
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernelforge_engine.errors import (
    FactoryFailed,
    FactoryMissing,
    FileMissing,
    ImportFailed,
    InputsRejected,
    KernelForgeError,
    ModelRaised,
    NoDevice,
)
from kernelforge_engine.pool.orders import ModelOrder

Inputs = tuple[tuple[Any, ...], dict[str, Any]]

MODULE_NAME = "kernelforge_user_model"


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A model in eval mode with its input sets, all on `device`.

    `requires`: what to import where operators of the model's own are to be called, or None.
    """

    model: Callable[..., Any]
    sets: tuple[Inputs, ...]
    device: torch.device
    requires: str | None = None

    def fresh(self) -> tuple[Inputs, ...]:
        """The inputs as they were made: a model may write into what it is given."""
        copies: tuple[Inputs, ...] = pytree.tree_map_only(torch.Tensor, torch.clone, self.sets)
        return copies

    def run(self, inputs: Sequence[Inputs] | None = None) -> list[Any]:
        """One forward for every input set, from the same random state each time; the outputs.

        What records operators passes `inputs`, so that the copying is not recorded.

        Raises:
            ModelRaised: whatever the model raised, in our words.
            KernelForgeError: what a recording of this run could not do.
        """
        torch.manual_seed(0)
        try:
            with torch.no_grad():
                result = [self.model(*args, **kwargs) for args, kwargs in inputs or self.fresh()]
        except KernelForgeError:
            raise
        except (Exception, SystemExit) as error:
            raise ModelRaised(error=described(error)) from error
        self.wait()
        return result

    def wait(self) -> None:
        """Wait until the device has finished what was launched."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def described(error: BaseException) -> str:
    """An exception of the user's code as `Type: first line`."""
    lines = str(error).strip().splitlines()
    name = type(error).__name__
    return f"{name}: {lines[0].rstrip('.')}" if lines else name


def load(order: ModelOrder) -> Loaded:
    """Run a user's file and its two factories.

    A tensor that make_inputs() leaves on the CPU is moved to the device; the model is moved too.

    Raises:
        FileMissing, ImportFailed, FactoryMissing, FactoryFailed, InputsRejected, NoDevice
    """
    chosen = _device(order.device)
    file, _, factory = order.model.rpartition(":")
    module = _module(Path(file))
    model = _made(module, file, factory, chosen)
    if isinstance(model, torch.nn.Module):
        model = _settled(model, file, factory, chosen)
    if not callable(model):
        what = f"returned {type(model).__name__}, which cannot be called"
        raise FactoryFailed(name=factory, file=file, what=what)
    names = order.inputs or ("make_inputs",)
    sets = tuple(_arguments(_made(module, file, name, chosen)) for name in names)
    return Loaded(model=model, sets=_placed(sets, "inputs", chosen), device=chosen, requires=file)


def _device(text: str) -> torch.device:
    try:
        device = torch.device(text)
    except RuntimeError as error:
        raise NoDevice(device=text, why="torch knows no such device") from error
    if device.type not in ("cpu", "cuda"):
        raise NoDevice(device=text, why="only cpu and cuda are supported")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise NoDevice(device=text, why="torch finds no usable CUDA device")
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return device


def _module(path: Path) -> ModuleType:
    path = path.resolve()
    if not path.is_file():
        raise FileMissing(path=path)
    sys.path.insert(0, str(path.parent))
    specification = importlib.util.spec_from_file_location(MODULE_NAME, path)
    if specification is None or specification.loader is None:
        raise ImportFailed(file=path, error="it is no Python file")
    module = importlib.util.module_from_spec(specification)
    sys.modules[MODULE_NAME] = module
    try:
        specification.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise ImportFailed(file=path, error=described(error)) from error
    return module


def _made(module: ModuleType, file: str, name: str, device: torch.device) -> Any:
    factory = getattr(module, name, None)
    if not callable(factory):
        raise FactoryMissing(file=file, name=name)
    try:
        takes_device = "device" in inspect.signature(factory).parameters
        return factory(device=str(device)) if takes_device else factory()
    except (Exception, SystemExit) as error:
        raise FactoryFailed(name=name, file=file, what=f"raised {described(error)}") from error


def _settled(
    model: torch.nn.Module, file: str, factory: str, device: torch.device
) -> torch.nn.Module:
    try:
        return model.to(device).eval()
    except Exception as error:
        what = f"returned a model that cannot be moved to {device}: {described(error)}"
        raise FactoryFailed(name=factory, file=file, what=what) from error


def _arguments(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(inputs, dict) or hasattr(inputs, "keys"):
        return (), dict(inputs)
    if isinstance(inputs, tuple | list):
        return tuple(inputs), {}
    return (inputs,), {}


def _placed(value: Any, field: str, device: torch.device) -> Any:
    leaves, tree = pytree.tree_flatten(value)
    return pytree.tree_unflatten([_moved(leaf, field, device) for leaf in leaves], tree)


def _moved(leaf: Any, field: str, device: torch.device) -> Any:
    if not isinstance(leaf, torch.Tensor) or leaf.device == device:
        return leaf
    if leaf.device.type != "cpu":
        raise InputsRejected(
            field=field,
            why=f"it is on {leaf.device} and the model runs on {device}",
            step="let make_inputs() create it on the CPU; it is moved from there",
        )
    return leaf.to(device)
