"""Tensors with an exact layout: kept in content-addressed files, made again elsewhere.

Of a tensor that is too large to keep, a sample of its values is kept; what is made of it has the
layout of the tensor and values like its own, in no order.
"""

from collections.abc import Hashable
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from kernelforge_engine.calls import TensorSpec
from kernelforge_engine.errors import ExampleLost
from kernelforge_engine.store.blobs import blob_path

SAMPLED = "s"  # how the name of a sample begins
SAMPLE_VALUES = 1 << 16
SAMPLE_SEED = 0
CHUNK = 1 << 24  # values drawn at a time: the places they are taken from are larger than they


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


def sample(tensor: torch.Tensor) -> torch.Tensor:
    """Values drawn from a whole tensor, the same ones each time; gaps between strides have none."""
    generator = torch.Generator().manual_seed(SAMPLE_SEED)
    places = torch.randint(tensor.numel(), (SAMPLE_VALUES,), generator=generator)
    indices = torch.unravel_index(places.to(tensor.device), tensor.shape)
    return tensor[tuple(indices)]


def is_sample(name: str) -> bool:
    """Whether a blob holds a sample instead of the whole tensor."""
    return name.startswith(SAMPLED)


def fetch(name: str, spec: TensorSpec, folder: Path, device: torch.device) -> torch.Tensor:
    """A stored tensor with the layout it was captured with; from a sample, always the same one.

    Raises:
        ExampleLost: its file is missing or damaged.
    """
    path = blob_path(folder, name)
    tensor = empty(spec, device)
    try:
        memory = load_file(path)["data"]
    except (OSError, SafetensorError) as error:
        raise ExampleLost(path=path, why=str(error)) from error
    if is_sample(name):
        _fill(flat(tensor), memory.to(device), int(name.removeprefix(SAMPLED)[:12], 16))
    else:
        flat(tensor).copy_(memory)
    return tensor


def _fill(target: torch.Tensor, values: torch.Tensor, seed: int) -> None:
    generator = torch.Generator(target.device).manual_seed(seed)
    for part in target.split(CHUNK):
        places = torch.randint(
            len(values), part.shape, generator=generator, device=target.device, dtype=torch.int32
        )
        torch.index_select(values, 0, places, out=part)


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


def memory_of(tensor: torch.Tensor) -> Hashable:
    """What tells a parameter or buffer, as it is now, from every other one."""
    version = 0 if tensor.is_inference() else tensor._version
    layout = (tensor.dtype, tuple(tensor.shape), tensor.stride())
    return tensor.device, tensor.data_ptr(), version, layout
