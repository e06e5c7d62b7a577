"""Operators along the rows of a dense tensor: softmax, layer norm, rms norm, mean."""

from collections.abc import Callable, Iterator
from math import prod

from kernelforge_engine.calls import ITEM_BYTES, TensorSpec
from kernelforge_engine.library.match import (
    Offer,
    Site,
    affine_flags,
    affine_types,
    channels_last,
    dense,
    fitting,
    floating,
)
from kernelforge_engine.library.render import render

# Values of a row that a lane or a thread may keep: softmax keeps them as floats, a norm as read.
WARP_VALUES = {"softmax": 32, "row_norm": 64}
BLOCK_VALUES = 32
FLOAT_EPSILON = "1.1920928955078125e-07"  # what torch takes where rms_norm is given none

WARP = "a warp for each row, which stays in its registers"
BLOCK = "a block for each row, which stays in its registers"
STREAM = "a block for each row; maximum and sum in one pass, read again to write"
CPU_SOFTMAX = "rows over the threads, vectorised exp, numerators kept in the output"
CPU_NORM = "rows over the threads, two passes in the cache with four accumulators"


def softmax(site: Site) -> Iterator[Offer]:
    """Softmax of the last dimension, into the input's dtype or into float32."""
    x, dim = site.call.inputs[0], site.value("dim")
    last = len(x.shape) > 0 and dim in (-1, len(x.shape) - 1)
    if not (last and floating(x, site.out) and dense(x) and dense(site.out)):
        return
    if site.out.dtype not in (x.dtype, "float32"):
        return
    types = {"T": x.dtype, "U": site.out.dtype}
    if not site.cuda:
        yield Offer("softmax", "cpu", CPU_SOFTMAX, render("cpu", "softmax", types))
        return
    lanes = fitting(site, x.shape[-1], *types.values())
    flags = {"FAST": site.out.dtype != "float32"}
    for kernel, idea, sizes in _kernels("softmax", x.shape[-1], lanes):
        yield Offer(kernel, "cuda", idea, render("cuda", kernel, types, sizes, flags))
    text = render("cuda", "softmax_stream", types, {"vec": lanes}, flags)
    yield Offer("softmax_stream", "cuda", STREAM, text)


def layer_norm(site: Site) -> Iterator[Offer]:
    """Layer norm, with or without weight and bias."""
    yield from _row_norm(site, "layer_norm", center=True, eps="eps")


def rms_norm(site: Site) -> Iterator[Offer]:
    """Rms norm, with or without weight."""
    eps = "eps" if site.real("eps") else FLOAT_EPSILON
    yield from _row_norm(site, "rms_norm", center=False, eps=eps)


def _row_norm(site: Site, name: str, *, center: bool, eps: str) -> Iterator[Offer]:
    x, shape = site.call.inputs[0], site.value("normalized_shape")
    types = affine_types(site, ("weight", "bias"))
    if types is None or not (dense(x) and dense(site.out)):
        return
    if not isinstance(shape, list) or list(x.shape[-len(shape) :]) != shape:
        return
    fields = {
        "cols": " * ".join(f"in0.shape[-{d}]" for d in range(len(shape), 0, -1)),
        "weight": site.buffer("weight"),
        "bias": site.buffer("bias"),
        "eps": eps,
    }
    flags = {"CENTER": center, **affine_flags(site)}
    if not site.cuda:
        yield Offer(name, "cpu", CPU_NORM, render("cpu", "row_norm", types, fields, flags))
        return
    cols = prod(x.shape[-len(shape) :])
    for kernel, idea, sizes in _kernels("row_norm", cols, fitting(site, cols, *types.values())):
        text = render("cuda", kernel, types, {**fields, **sizes}, flags)
        yield Offer(kernel.replace("row_norm", name), "cuda", idea, text)


def _kernels(base: str, cols: int, lanes: int) -> Iterator[tuple[str, str, dict[str, int]]]:
    """The kernels that keep a row of `cols` in registers, with their constants, best first."""
    items = -(-cols // (32 * lanes))
    if items * lanes <= WARP_VALUES[base]:
        limit = 32 * lanes * items
        yield f"{base}_warp", WARP, {"vec": lanes, "items": items, "limit": limit}
    # Few values for each thread, but no more than 512 threads, as long as there is a choice.
    choices = [2**i for i in range(6) if lanes * 2**i <= BLOCK_VALUES]
    threads = {items: -(-cols // (lanes * items)) for items in choices}
    usable = [n for n in choices if threads[n] <= 512] + [n for n in choices if threads[n] <= 1024]
    if usable:
        sizes = {"vec": lanes, "items": usable[0], "step": lanes * usable[0]}
        yield f"{base}_block", BLOCK, sizes


def _power(n: int) -> int:
    return 1 << max(0, n - 1).bit_length()


def mean(site: Site) -> Iterator[Offer]:
    """The mean over the last dimensions of a dense tensor."""
    x, dims = site.call.inputs[0], site.value("dim")
    count = len(x.shape)
    if isinstance(dims, list) and dims and site.value("dtype") is None:
        taken = {d % count for d in dims if isinstance(d, int)}
        if taken == set(range(count - len(dims), count)) and dense(x):
            yield from _row_mean(site, x)


def global_average(site: Site) -> Iterator[Offer]:
    """Adaptive average pooling to one pixel."""
    x, size = site.call.inputs[0], site.value("output_size")
    if size not in ([1, 1], [1]) or len(x.shape) not in (3, 4):
        return
    if dense(x):
        yield from _row_mean(site, x)
    elif channels_last(x) and floating(x) and dense(site.out) and x.dtype == site.out.dtype:
        text = render(site.backend, "column_mean", {"T": x.dtype})
        idea = "channels side by side, each thread down the pixels of its channels"
        yield Offer("column_mean", site.backend, idea, text)


def _row_mean(site: Site, x: TensorSpec) -> Iterator[Offer]:
    if not (floating(x) and x.dtype == site.out.dtype and dense(site.out)):
        return
    types = {"T": x.dtype}
    if not site.cuda:
        idea = "rows over the threads, four accumulators, doubles across blocks of 4096"
        yield Offer("row_mean", "cpu", idea, render("cpu", "row_mean", types))
        return
    cols = x.numel // site.out.numel
    lanes = fitting(site, cols, x.dtype)
    width = min(32, _power(-(-cols // lanes)))
    sizes = {"vec": lanes, "lanes": width, "rows_per_block": 256 // width}
    warp = Offer(
        "row_mean_warp",
        "cuda",
        "a warp, or a part of one, for each row",
        render("cuda", "row_mean_warp", types, sizes),
    )
    idea = "a block for each row, four vectors in flight for each thread"
    text = render("cuda", "row_mean_block", types, {"vec": lanes})
    block = Offer("row_mean_block", "cuda", idea, text)
    long = cols * ITEM_BYTES[x.dtype] >= 4096
    yield from (block, warp) if long else (warp, block)


FAMILIES: dict[str, Callable[[Site], Iterator[Offer]]] = {
    "aten::softmax.int": softmax,
    "aten::_softmax": softmax,
    "aten::layer_norm": layer_norm,
    "aten::rms_norm": rms_norm,
    "aten::mean.dim": mean,
    "aten::adaptive_avg_pool2d": global_average,
}
