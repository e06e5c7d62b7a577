"""Group norm of dense tensors, and batch norm with running statistics in both layouts."""

from collections.abc import Callable, Iterator

from kernelforge_engine.calls import ITEM_BYTES
from kernelforge_engine.library.match import (
    MAX_INDEX,
    SMALL,
    Offer,
    Site,
    affine_flags,
    affine_types,
    channels_last,
    dense,
    fitting,
)
from kernelforge_engine.library.render import render

BLOCK_VALUES = 32  # of a group in the registers of one thread
TEAM_BYTES = 256 * 65536  # 256 blocks with 64 KiB of registers each
SPLIT = "many blocks take exact moments of chunks; a second launch joins them and normalises"
BLOCK = "a block for each group, which stays in its registers: one read, one write"
TEAM = "teams of blocks hold whole groups in registers and meet at a barrier: one read, one write"
FLAT = "one run of 16-byte vectors that may straddle two channels"
PLANE = "a block within one plane, one channel's parameters, 16-byte vectors"
LAST = "channels last: a thread keeps the parameters of its channels and walks down the pixels"


def group_norm(site: Site) -> Iterator[Offer]:
    """Group norm; what is best depends on how large a group is."""
    x, groups = site.call.inputs[0], site.value("num_groups")
    types = affine_types(site, ("weight", "bias"))
    if types is None or len(x.shape) < 2 or not isinstance(groups, int):
        return
    if not (dense(x) and dense(site.out)):
        return
    flags = affine_flags(site)
    fields = {"weight": site.buffer("weight"), "bias": site.buffer("bias")}
    if not site.cuda:
        idea = "groups over the threads, corrected two-pass moments, doubles across blocks"
        yield Offer("group_norm", "cpu", idea, render("cpu", "group_norm", types, fields, flags))
        return
    size = x.numel // (x.shape[0] * groups)
    if size >= MAX_INDEX:
        return
    plane = x.numel // (x.shape[0] * x.shape[1])
    for kernel, idea, sizes in _group_kernels(size, fitting(site, plane, x.dtype), x.dtype):
        text = render("cuda", kernel, types, {**fields, **sizes}, flags)
        yield Offer(kernel, "cuda", idea, text)


def _group_kernels(size: int, lanes: int, dtype: str) -> Iterator[tuple[str, str, dict[str, int]]]:
    deep = 32 // lanes if lanes > 1 else 16
    split = {"vec": lanes, "deep": deep, "tile": 256 * lanes * deep}
    items = next((i for i in (1, 2, 4, 8, 16, 32) if size <= 512 * lanes * i), 33)
    block = {"vec": lanes, "items": items, "step": lanes * items}
    vectors = lanes * ITEM_BYTES[dtype] == 16
    if items * lanes <= BLOCK_VALUES:
        yield "group_norm_block", BLOCK, block
    yield "group_norm_split", SPLIT, split
    if items * lanes > BLOCK_VALUES and vectors and size * ITEM_BYTES[dtype] <= TEAM_BYTES:
        yield "group_norm_team", TEAM, {"vec": lanes}


def batch_norm(site: Site) -> Iterator[Offer]:
    """Batch norm with its running statistics, as in a model that is evaluated."""
    x = site.call.inputs[0]
    types = affine_types(site, ("weight", "bias", "running_mean", "running_var"))
    statistics = [site.spec(n) for n in ("running_mean", "running_var")]
    if site.value("training") is not False or types is None or None in statistics:
        return
    flat = dense(x) and dense(site.out)
    last = channels_last(x) and channels_last(site.out)
    if len(x.shape) < 2 or x.numel >= MAX_INDEX or not (flat or last):
        return
    fields = {
        "weight": site.buffer("weight"),
        "bias": site.buffer("bias"),
        "mean": site.buffer("running_mean"),
        "var": site.buffer("running_var"),
    }
    for kernel, idea, sizes in _batch_kernels(site, flat=flat):
        text = render(site.backend, kernel, types, {**fields, **sizes}, affine_flags(site))
        yield Offer(kernel, site.backend, idea, text)


def _batch_kernels(site: Site, *, flat: bool) -> Iterator[tuple[str, str, dict[str, int]]]:
    x = site.call.inputs[0]
    channels = x.shape[1]
    plane = x.numel // (x.shape[0] * channels)
    if not site.cuda:
        yield ("batch_norm", PLANE, {}) if flat else ("batch_norm_last", LAST, {})
        return
    if not flat:
        yield "batch_norm_last", LAST, {"vec": fitting(site, channels, x.dtype), "deep": 8}
        return
    lanes, whole = site.lanes(x.dtype), fitting(site, plane, x.dtype)
    straddling = lanes if plane >= lanes else 1
    kernels = [("batch_norm_flat", FLAT, _tiles(straddling, 2 if x.numel >= SMALL else 1))]
    if plane >= 256:
        by_plane = ("batch_norm_plane", PLANE, _tiles(whole, 2 if plane >= 4096 else 1))
        kernels.insert(0 if whole == lanes and plane >= 2048 else 1, by_plane)
    yield from kernels


def _tiles(lanes: int, deep: int) -> dict[str, int]:
    return {"vec": lanes, "deep": deep, "tile": 256 * lanes * deep}


FAMILIES: dict[str, Callable[[Site], Iterator[Offer]]] = {
    "aten::group_norm": group_norm,
    "aten::batch_norm": batch_norm,
}
