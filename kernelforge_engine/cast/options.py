"""How a loaded cast is used, as its caller says it; needs no torch."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class CudaGraph:
    """How `enable(model, cuda_graph=CudaGraph(...))` replays a model; True means the defaults.

    Attributes:
        limit: how many signatures (shapes, dtypes, strides and values of the arguments) are tried;
            calls with further ones run as before.
        copies: whether each call returns tensors of its own. Without them it returns the memory of
            the graph, which the next call overwrites.
    """

    limit: int = 8
    copies: bool = True
