"""Models from Python: a file or a module, whose functions make the model and its inputs."""

import importlib
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from kernelforge_engine import codec
from kernelforge_engine.errors import (
    FactoryFailed,
    FactoryMissing,
    FileMissing,
    ImportFailed,
    ModuleFailed,
    ModuleMissing,
)
from kernelforge_engine.worker.ways.ready import Ready, described, is_file

MODULE_NAME = "kernelforge_user_model"


def python_model(name: str, device: torch.device) -> Ready:
    """FILE.py:factory or package.module:factory, called and put on the device.

    Raises:
        FileMissing, ImportFailed, ModuleMissing, ModuleFailed, FactoryMissing, FactoryFailed
    """
    place, _, factory = name.rpartition(":")
    module = module_at(place)
    model = made(module, place, factory, device)
    if isinstance(model, torch.nn.Module):
        model = _settled(model, place, factory, device)
    if not callable(model):
        what = f"returned {type(model).__name__}, which cannot be called"
        raise FactoryFailed(name=factory, file=place, what=what)
    return Ready(
        model=model,
        default=lambda: made(module, place, "make_inputs", device),
        requires=_requirement(place),
        module=module,
    )


def module_at(place: str) -> ModuleType:
    """The module of a file, of package.module, or of FOLDER:package.module.

    Raises:
        FileMissing, ImportFailed, ModuleMissing, ModuleFailed
    """
    if not is_module(place):
        return _file(Path(place))
    folder, _, name = place.rpartition(":")
    return _package(name, folder or str(Path.cwd()))


def is_module(place: str) -> bool:
    """Whether this names a module to import, and not a file."""
    name = place.rpartition(":")[2]
    return not name.endswith(".py") and all(part.isidentifier() for part in name.split("."))


def made(module: ModuleType, place: str, name: str, device: torch.device) -> Any:
    """What a function of a module returns; it gets the device if it takes one.

    Raises:
        FactoryMissing, FactoryFailed
    """
    factory = getattr(module, name, None)
    if not callable(factory):
        raise FactoryMissing(file=place, name=name)
    try:
        takes_device = "device" in inspect.signature(factory).parameters
        return factory(device=str(device)) if takes_device else factory()
    except (Exception, SystemExit) as error:
        raise FactoryFailed(name=name, file=place, what=f"raised {described(error)}") from error


def _requirement(place: str) -> str:
    """What imports the module again from any folder: one beside us is named with its folder."""
    if not is_module(place) or ":" in place:
        return place
    top = sys.modules[place.partition(".")[0]]
    if hasattr(top, "__path__"):
        folder = Path(next(iter(top.__path__))).parent
    else:
        folder = Path(str(top.__file__)).parent
    return f"{folder}:{place}" if folder.resolve() == Path.cwd().resolve() else place


def _file(path: Path) -> ModuleType:
    path = path.resolve()
    if not is_file(path):
        raise FileMissing(path=path)
    name = MODULE_NAME
    if name in sys.modules and sys.modules[name].__file__ != str(path):
        name = f"{MODULE_NAME}_{codec.sha256(str(path))[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None:
        raise ImportFailed(file=path, error="it is no Python file")
    module = sys.modules[name] = importlib.util.module_from_spec(specification)
    sys.path.insert(0, str(path.parent))
    try:
        specification.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise ImportFailed(file=path, error=described(error)) from error
    return module


def _package(name: str, folder: str) -> ModuleType:
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        lacking = error.name if isinstance(error, ModuleNotFoundError) else None
        if lacking and f"{name}.".startswith(f"{lacking}."):
            raise ModuleMissing(module=name) from error
        raise ModuleFailed(module=name, error=described(error)) from error


def _settled(
    model: torch.nn.Module, place: str, factory: str, device: torch.device
) -> torch.nn.Module:
    try:
        return model.to(device).eval()
    except Exception as error:
        what = f"returned a model that cannot be moved to {device}: {described(error)}"
        raise FactoryFailed(name=factory, file=place, what=what) from error
