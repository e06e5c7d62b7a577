"""How one operand of a binary operator repeats along the other."""

from dataclasses import dataclass
from itertools import groupby

from kernelforge_engine.calls import TensorSpec
from kernelforge_engine.library.match import Site, dense


@dataclass(frozen=True)
class Broadcast:
    """The output as outer x middle x inner, and along which of them the small operand has data."""

    sizes: tuple[str, str, str]
    present: tuple[bool, bool, bool]
    swapped: bool  # the second operand is the big one

    @property
    def pattern(self) -> str:
        words = ["all" if on else "one" for on in self.present]
        return f"it has {words[0]} of the outer, {words[1]} of the middle, {words[2]} of the inner"


def collapse(site: Site) -> Broadcast | None:
    """The broadcast of a call, or None where it is of another kind."""
    a, b = site.call.inputs[:2]
    for swapped, (big, small) in enumerate(((a, b), (b, a))):
        whole = big.shape == site.out.shape and dense(big)
        if whole and len(small.shape) <= len(big.shape):
            runs = _runs(small, site.out)
            if len(runs) <= 3 and _data(small):
                return _padded(runs, bool(swapped))
    return None


def _runs(small: TensorSpec, out: TensorSpec) -> list[tuple[bool, list[int]]]:
    """The dimensions of the output in runs along which the operand has data, or has not."""
    missing = len(out.shape) - len(small.shape)
    shape, stride = (1,) * missing + small.shape, (0,) * missing + small.stride
    moves = [n > 1 and s != 0 for n, s in zip(shape, stride, strict=True)]
    # A dimension of one element joins the run before it, or the first run.
    last = next((on for on, size in zip(moves, out.shape, strict=True) if size > 1), False)
    present = [last := on if size > 1 else last for on, size in zip(moves, out.shape, strict=True)]
    return [(on, list(dims)) for on, dims in groupby(range(len(shape)), key=present.__getitem__)]


def _data(small: TensorSpec) -> bool:
    """Whether what is not repeated lies densely, so that a place in it counts only those axes."""
    moving = [(n, s) for n, s in zip(small.shape, small.stride, strict=True) if n > 1 and s]
    spec = TensorSpec(
        dtype=small.dtype,
        shape=tuple(n for n, _ in moving),
        stride=tuple(s for _, s in moving),
        device=small.device,
    )
    return dense(spec)


def _padded(runs: list[tuple[bool, list[int]]], swapped: bool) -> Broadcast:
    nothing: list[int] = []
    filled = [(False, nothing)] * (3 - len(runs)) + runs
    sizes = [" * ".join(f"out0.shape[{d}]" for d in dims) or "1" for _, dims in filled]
    present = [on for on, _ in filled]
    return Broadcast(
        sizes=(sizes[0], sizes[1], sizes[2]),
        present=(present[0], present[1], present[2]),
        swapped=swapped,
    )
