"""Small convolutions and recurrent cells on the cpu backend: dot products over contiguous rows.

They pay where a call is so small that the set-up of a library call costs more than its arithmetic.
"""

from collections.abc import Callable, Iterator

from kernelforge_engine.calls import TensorSpec
from kernelforge_engine.library.match import Offer, Site, dense
from kernelforge_engine.library.render import render

MOST_PRODUCTS = 1 << 24  # beyond this a blocked matrix product wins
WINDOWS = "gather the windows into rows, then one dot product per output; no set-up per call"
GATES = "all four gates of a unit from two dot products, then their nonlinearities in one pass"


def conv1d(site: Site) -> Iterator[Offer]:
    """A dense convolution over one dimension, without groups."""
    tensors = [*site.call.inputs, site.out]
    if site.cuda or site.value("groups") != 1 or not _plain(tensors) or len(site.out.shape) != 3:
        return
    weight = site.call.inputs[1]
    if site.out.numel * weight.shape[1] * weight.shape[2] > MOST_PRODUCTS:
        return
    flags = {"BIAS": site.index("bias") is not None}
    text = render("cpu", "conv1d", {"T": "float32"}, {"bias": site.buffer("bias")}, flags)
    yield Offer("conv1d_dots", "cpu", WINDOWS, text)


def lstm_cell(site: Site) -> Iterator[Offer]:
    """One step of an LSTM with both biases, over a batch of any size."""
    tensors = [*site.call.inputs, *(o.tensor for o in site.call.outputs)]
    if site.cuda or len(site.call.inputs) != 7 or not _plain(tensors):
        return
    yield Offer("lstm_cell_dots", "cpu", GATES, render("cpu", "lstm_cell", {"T": "float32"}))


def _plain(tensors: list[TensorSpec]) -> bool:
    return all(t.dtype == "float32" and dense(t) for t in tensors)


FAMILIES: dict[str, Callable[[Site], Iterator[Offer]]] = {
    "aten::conv1d": conv1d,
    "aten::lstm_cell": lstm_cell,
}
