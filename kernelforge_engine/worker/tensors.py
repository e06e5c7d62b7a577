"""Tensors with an exact layout: kept in content-addressed files, made again elsewhere."""

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from kernelforge_engine.calls import TensorSpec
from kernelforge_engine.errors import ExampleLost


def dtype_of(name: str) -> torch.dtype:
    """The torch dtype of a TensorSpec's name."""
    dtype: torch.dtype = getattr(torch, name)
    return dtype


def flat(tensor: torch.Tensor) -> torch.Tensor:
    """The memory a tensor spans, gaps included, as one dimension sharing its storage."""
    if tensor.numel() == 0:
        return tensor.new_empty(0)
    span = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.as_strided((span,), (1,))


def bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """A one-dimensional tensor's memory as bytes, sharing its storage."""
    return tensor.contiguous().view(torch.uint8)


def blob_path(folder: Path, name: str) -> Path:
    """Where a blob lies."""
    return folder / name[:2] / f"{name}.safetensors"


def fetch(name: str, spec: TensorSpec, folder: Path, device: torch.device) -> torch.Tensor:
    """A stored tensor with the layout it was captured with.

    Raises:
        ExampleLost: its file is missing or damaged.
    """
    path = blob_path(folder, name)
    tensor = empty(spec, device)
    try:
        memory = load_file(path)["data"]
    except (OSError, SafetensorError) as error:
        raise ExampleLost(path=path, why=str(error)) from error
    flat(tensor).copy_(memory)
    return tensor


def empty(spec: TensorSpec, device: torch.device) -> torch.Tensor:
    """An uninitialised tensor with a spec's strides and alignment."""
    step = 0 if spec.aligned else 1
    storage = torch.empty(spec.extent + step, dtype=dtype_of(spec.dtype), device=device)
    return storage.as_strided(spec.shape, spec.stride, step)


def copied(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with the same strides and alignment."""
    aligned = tensor.data_ptr() % 16 == 0
    name = str(tensor.dtype).removeprefix("torch.")
    spec = TensorSpec(
        dtype=name,
        shape=tuple(tensor.shape),
        stride=tensor.stride(),
        device=tensor.device.type,
        aligned=aligned,
    )
    copy = empty(spec, tensor.device)
    flat(copy).copy_(flat(tensor))
    return copy
