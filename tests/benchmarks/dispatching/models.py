"""Two small models, and every call of a run that a guard can cover."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  the name torch code uses
from torch.utils._python_dispatch import TorchDispatchMode

from kernelforge_engine.calls import Call
from kernelforge_engine.dispatch.guard import Unguardable, describe

Inputs = Callable[[int], Tensor]


class Block(nn.Module):
    """A layer of a transformer, in ten operators that compute."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(64) for _ in range(2))
        self.qkv, self.out = nn.Linear(64, 192), nn.Linear(64, 64)
        self.up, self.down = nn.Linear(64, 128), nn.Linear(128, 64)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.qkv(self.norms[0](x)).chunk(3, -1)
        q, k, v = (part.unflatten(-1, (4, 16)).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(q, k, v)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norms[1](x))))


def _convolutions() -> nn.Module:
    sizes = [3, *[32] * 6]
    return nn.Sequential(
        *(
            nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(4, b), nn.SiLU())
            for a, b in pairwise(sizes)
        )
    )


def models() -> dict[str, tuple[nn.Module, Inputs]]:
    """One that waits for the host all the time, one of a usual size, and one that computes."""
    return {
        "transformer of 32 tokens": (
            nn.Sequential(*(Block() for _ in range(4))), lambda n: torch.randn(n, 16, 64)
        ),
        "transformer of 512 tokens": (
            nn.Sequential(*(Block() for _ in range(4))), lambda n: torch.randn(n, 256, 64)
        ),
        "convolutions": (_convolutions(), lambda n: torch.randn(n, 3, 64, 64)),
    }  # fmt: skip


class Seen(TorchDispatchMode):
    """Records what a guard can cover."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[tuple[str, tuple[int, ...]], Call] = {}

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = op(*args, **(kwargs or {}))
        try:
            call = describe(op, args, kwargs or {}, out)
        except Unguardable:
            return out
        self.calls[call.name, call.words] = call
        return out


def seen(model: nn.Module, inputs: Tensor) -> list[Call]:
    """The calls of one run, above decomposition and below autograd."""
    below = torch._C._AutoDispatchBelowAutograd()
    try:
        with Seen() as mode:
            model(inputs)
    finally:
        del below
    return list(mode.calls.values())
