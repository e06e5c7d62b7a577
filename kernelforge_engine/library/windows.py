"""Pooling windows in both layouts, and rows looked up in a table."""

from collections.abc import Callable, Iterator

from kernelforge_engine.calls import ITEM_BYTES, TensorSpec
from kernelforge_engine.library.match import (
    MAX_INDEX,
    Offer,
    Site,
    channels_last,
    dense,
    fitting,
    floating,
)
from kernelforge_engine.library.render import render

# As torch does: the first of equal values is kept, and a NaN takes over.
MAXIMUM = {"start": "-infinity()", "step": "(v > a) | (v != v) ? v : a", "finish": "a"}
AVERAGE = {
    "start": "0.0f",
    "step": "a + v",
    "finish": "a / cells(oh, ow, height, width)",
}
PLANES = "rows of the window one after the other, vectors along the outputs of a row"
PIXELS = "one output for each thread, inputs shared through the L1 cache"
LAST = "channels last: vectors of channels, one output pixel at a time"
INDEXES = {"int64": "long long", "int32": "int"}
LOOKUPS = {
    "embedding": "a thread for each word of 16 bytes, or of what divides a row",
    "embedding_warp": "a warp for each row: the index is read once",
}
WORDS = {16: "uint4", 8: "unsigned long long", 4: "unsigned", 2: "unsigned short"}


def max_pool(site: Site) -> Iterator[Offer]:
    """Max pooling with any window, stride, padding and dilation."""
    window = {
        **_pair(site, "kernel_size", "K"),
        **_pair(site, "stride", "S"),
        **_pair(site, "padding", "P"),
        **_pair(site, "dilation", "D"),
    }
    yield from _pool(site, "max_pool", MAXIMUM, window)


def average_pool(site: Site) -> Iterator[Offer]:
    """Average pooling with any window, stride, padding and divisor."""
    divisor, padded = site.value("divisor_override"), site.value("count_include_pad")
    window = {
        **_pair(site, "kernel_size", "K"),
        **_pair(site, "stride", "S"),
        **_pair(site, "padding", "P"),
        "DH": 1,
        "DW": 1,
        "DIVISOR": divisor if isinstance(divisor, int) else 0,
        "PADDED": padded is True,
    }
    yield from _pool(site, "avg_pool", AVERAGE, window)


def _pair(site: Site, name: str, letter: str) -> dict[str, int]:
    """Both values of an argument as constants; an empty stride is the size of the window."""
    value = site.value(name)
    if value == []:
        value = site.value("kernel_size")
    values = value if isinstance(value, list) else [value]
    h, w = values[0], values[-1]
    return {f"{letter}H": h, f"{letter}W": w} if isinstance(h, int) and isinstance(w, int) else {}


def _pool(
    site: Site, name: str, formulas: dict[str, str], window: dict[str, int]
) -> Iterator[Offer]:
    x = site.call.inputs[0]
    if not floating(x, site.out) or x.dtype != site.out.dtype or len(x.shape) not in (3, 4):
        return
    if x.numel >= MAX_INDEX or site.out.numel >= MAX_INDEX:
        return
    types = {"T": x.dtype}
    if dense(x) and dense(site.out):
        text = render(site.backend, "pool_planes", types, formulas, window)
        idea = PIXELS if site.cuda else PLANES
        yield Offer(f"{name}_planes", site.backend, idea, text)
    elif channels_last(x) and channels_last(site.out):
        fields = {**formulas, "vec": fitting(site, x.shape[1], x.dtype)}
        text = render(site.backend, "pool_last", types, fields, window)
        yield Offer(f"{name}_last", site.backend, LAST, text)


def embedding(site: Site) -> Iterator[Offer]:
    """Rows of a dense table by an index of any shape."""
    table, at = site.spec("weight"), site.spec("indices")
    if table is None or at is None or at.dtype not in INDEXES or len(table.shape) != 2:
        return
    if not (floating(table) and dense(table) and dense(site.out) and table.dtype == site.out.dtype):
        return
    if not dense(at) and len(at.shape) != 2:
        return
    item = ITEM_BYTES[table.dtype]
    fields: dict[str, object] = {"item": item, "index": INDEXES[at.dtype], **_walk(at)}
    if not site.cuda:
        idea = "rows over the threads, each copied whole"
        yield Offer("embedding", "cpu", idea, render("cpu", "embedding", {}, fields))
        return
    aligned = site.lanes(table.dtype) > 1
    size = next(b for b in WORDS if item * table.shape[1] % b == 0 and (aligned or b == item))
    fields |= {"bytes": size, "word": WORDS[size]}
    for kernel, idea in LOOKUPS.items():
        yield Offer(kernel, "cuda", idea, render("cuda", kernel, {}, fields))


def _walk(at: TensorSpec) -> dict[str, str]:
    """A dense index is one row of itself; one of two dimensions may have any strides."""
    if dense(at):
        return {"outer": "1", "inner": "in1.numel", "outer_step": "0", "inner_step": "1"}
    return {
        "outer": "in1.shape[0]",
        "inner": "in1.shape[1]",
        "outer_step": "in1.stride[0]",
        "inner_step": "in1.stride[1]",
    }


FAMILIES: dict[str, Callable[[Site], Iterator[Offer]]] = {
    "aten::max_pool2d": max_pool,
    "aten::avg_pool2d": average_pool,
    "aten::embedding": embedding,
}
