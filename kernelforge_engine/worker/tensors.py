"""Tensors with an exact layout: kept in content-addressed files, made again elsewhere."""

import hashlib
import tempfile
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from kernelforge_engine.errors import StoreUnavailable
from kernelforge_engine.records import TensorSpec


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


def store(tensor: torch.Tensor, folder: Path) -> str:
    """Write the memory of a tensor once; the digest that names it.

    Raises:
        StoreUnavailable: the disk is full or read-only.
    """
    memory = flat(tensor.detach()).cpu().contiguous()
    digest = hashlib.sha256(str(memory.dtype).encode())
    digest.update(memory.view(torch.uint8).numpy().data)
    name = digest.hexdigest()
    target = blob_path(folder, name)
    if target.exists():
        return name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as file:
            scratch = Path(file.name)
        try:
            save_file({"data": memory}, scratch)
            scratch.rename(target)
        finally:
            scratch.unlink(missing_ok=True)
    except (OSError, SafetensorError) as error:
        raise StoreUnavailable(path=folder, why=str(error)) from error
    return name


def blob_path(folder: Path, name: str) -> Path:
    """Where a blob lies."""
    return folder / name[:2] / f"{name}.safetensors"


def fetch(name: str, spec: TensorSpec, folder: Path, device: torch.device) -> torch.Tensor:
    """A stored tensor with the layout it was captured with."""
    memory = load_file(blob_path(folder, name))["data"]
    tensor = empty(spec, device)
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
