"""Models from files: TorchScript and torch.export. A pickled model is code nobody reads, so no."""

import warnings
import zipfile
from typing import Any

import torch
from torch.export import passes

from kernelforge_engine.errors import FileMissing, InputsUnusable, ModelUnusable
from kernelforge_engine.worker.ways.ready import Ready, described, is_file

EXPORTED = ".pt2"
SCRIPTED = (".pt", ".pth", ".ts", ".jit")
SAVE_AGAIN = (
    "save it with torch.jit.save or torch.export.save, or write FILE.py with a make_model() that "
    "builds the model and reads its weights"
)


def saved_model(path: str, device: torch.device) -> Ready:
    """The model in a file, on the device.

    Raises:
        FileMissing, ModelUnusable
    """
    if not is_file(path):
        raise FileMissing(path=path)
    return _exported(path, device) if path.endswith(EXPORTED) else _scripted(path, device)


def _scripted(path: str, device: torch.device) -> Ready:
    if not _is_script(path):
        why = "it is no TorchScript file, and pickled models and weights are never read"
        raise ModelUnusable(model=path, why=why, step=SAVE_AGAIN)
    try:
        with warnings.catch_warnings():  # torch would rather have another kind of file
            warnings.simplefilter("ignore", DeprecationWarning)
            model = torch.jit.load(path, map_location=device).eval()
    except Exception as error:
        raise _unusable(path, error) from error
    return Ready(model=model, default=lambda: _no_inputs(path))


def _exported(path: str, device: torch.device) -> Ready:
    if not zipfile.is_zipfile(path):
        raise ModelUnusable(model=path, why="it is no torch.export file", step=SAVE_AGAIN)
    try:
        program = torch.export.load(path)
        if device.type != "cpu":
            program = passes.move_to_device_pass(program, device)
        model = program.module()
    except Exception as error:
        raise _unusable(path, error) from error
    example = program.example_inputs

    def default() -> Any:
        return _no_inputs(path) if example is None else _merged(*example)

    return Ready(model=model, default=default)


def _merged(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Example inputs as a factory would return them: by position, or by name if any has one."""
    return args if not kwargs else {**{str(i): value for i, value in enumerate(args)}, **kwargs}


def _is_script(path: str) -> bool:
    """Whether the archive holds code, which a pickled model does not."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any("/code/" in name for name in archive.namelist())


def _no_inputs(path: str) -> Any:
    raise InputsUnusable(
        entry=f"for {path}",
        why="none were given, and the file holds none",
        step="give FILE.safetensors with a tensor for every argument, or FILE.py:function",
    )


def _unusable(path: str, error: Exception) -> ModelUnusable:
    step = "load it with this version of torch by itself, or save it again with this version"
    return ModelUnusable(model=path, why=described(error), step=step)
