"""Running the call of an operator or of a region on live tensors, as eager would."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from kernelforge_engine.calls import Call
from kernelforge_engine.dispatch.guard import arguments_of
from kernelforge_engine.dispatch.program import Program
from kernelforge_engine.worker.below import below_autograd


def bound(call: Call, tensors: Sequence[Tensor]) -> Callable[[], list[Tensor]]:
    """What runs a call on these tensors, below autograd; the tensors it returns.

    Raises:
        Unguardable: an operator is not registered here or has other arguments.
    """
    bare = repeated(call, tensors)

    def run() -> list[Tensor]:
        with torch.no_grad(), below_autograd():
            output = bare()
        return [leaf for leaf in pytree.tree_leaves(output) if isinstance(leaf, Tensor)]

    return run


def invoke(call: Call, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Run a call once; in-place operators write into these tensors."""
    return bound(call, tensors)()


def repeated(call: Call, tensors: Sequence[Tensor]) -> Callable[[], Any]:
    """The bare call, to be timed: whoever calls it enters no_grad himself."""
    if call.region is not None:
        program, inputs = Program(call.region, len(tensors)), list(tensors)
        return lambda: program.run(inputs)
    op, args, kwargs = arguments_of(call, tensors)
    return lambda: op(*args, **kwargs)
