"""Families of values that have a structure: each makes one tensor in float32 or float64.

`rows` gives every row a size of its own between 2^-12 and 2^12, so that an error in small rows does
not hide behind large ones; `mixed` is small in front and large in the last part, against whoever
judges a tensor by its beginning; `large` reaches 100 in both directions, where exp and its like
meet their whole range; `far` lies 300 root mean squares from zero, where a variance from squares
fails. `grid` has multiples of one half; `edges` is small in front, with subnormal numbers, zeros of
both signs and large finite ones scattered over it. `masked` has minus infinity at many places, and
in whole rows.

For operators that select: `ties` has few distinct values, `sorted` and `reversed` are in order
along rows, `level` has equal elements in a row, `clustered` its largest, some of them equal, side
by side, and `negative` no value above zero.
"""

from collections.abc import Callable

import torch

FAR = 300.0
NEAR = 10.0  # how far 16-bit values can lie from zero and still differ
LARGE = 100.0
OCTAVES = 12
SMALL, TALL = 1e-2, 30.0  # the front and the back of `mixed`, in root mean squares
BACK = 16  # one part in this many is the back
LEVELS = 5
GRID = 8.0
EDGE_SHARE = 0.02
FEWEST_EDGES = 16
MASKED, MASKED_ROWS = 0.25, 0.125
HUGE = (3e4, 1e15, 1e30)  # the first is all that float16 holds
CLUSTER = 6


class Source:
    """Where the random numbers of one tensor of `kind` come from, in a `dtype` at least as wide."""

    def __init__(
        self,
        shape: torch.Size,
        generator: torch.Generator,
        dtype: torch.dtype,
        kind: torch.dtype,
    ) -> None:
        self.shape, self._generator, self._dtype, self.kind = shape, generator, dtype, kind
        self.device = generator.device

    def normal(self, *shape: int) -> torch.Tensor:
        """Normal values, of the tensor's shape unless another one is given."""
        made = shape or tuple(self.shape)
        return torch.randn(made, generator=self._generator, device=self.device, dtype=self._dtype)

    def uniform(self, shape: tuple[int, ...] | torch.Size) -> torch.Tensor:
        """Values between 0 and 1."""
        return torch.rand(shape, generator=self._generator, device=self.device, dtype=self._dtype)

    def below(self, end: int) -> int:
        """One random integer."""
        return int(torch.randint(end, (1,), generator=self._generator, device=self.device))


def _rows(source: Source, scale: float) -> torch.Tensor:
    heads = (*source.shape[:-1], 1) if source.shape else ()
    octaves = (2 * source.uniform(heads) - 1) * OCTAVES
    return source.normal() * scale * torch.exp2(octaves)


def _mixed(source: Source, scale: float) -> torch.Tensor:
    drawn = source.normal() * scale * SMALL
    flat = drawn.view(-1)
    back = -(-flat.numel() // BACK)
    flat[-back:] *= TALL / SMALL
    return drawn


def _large(source: Source, _scale: float) -> torch.Tensor:
    return (2 * source.uniform(source.shape) - 1) * LARGE


def _ties(source: Source, scale: float) -> torch.Tensor:
    levels = torch.linspace(-1, 1, LEVELS, device=source.device) * scale
    places = (source.uniform(source.shape) * LEVELS).long().clamp(max=LEVELS - 1)
    return levels[places]


def _sorted(source: Source, scale: float) -> torch.Tensor:
    drawn = source.normal() * scale
    return drawn.sort(-1).values if drawn.dim() else drawn


def _reversed(source: Source, scale: float) -> torch.Tensor:
    drawn = source.normal() * scale
    return drawn.sort(-1, descending=True).values if drawn.dim() else drawn


def _level(source: Source, scale: float) -> torch.Tensor:
    heads = (*source.shape[:-1], 1) if source.shape else ()
    return (source.normal(*heads) * scale).expand(source.shape).clone()


def _clustered(source: Source, scale: float) -> torch.Tensor:
    drawn = source.normal() * scale
    if not drawn.dim():
        return drawn
    start = source.below(max(1, drawn.shape[-1] - CLUSTER))
    peak = drawn[..., start : start + CLUSTER]
    steps = torch.arange(peak.shape[-1], device=drawn.device) // 2
    peak.copy_(((10 + steps) * scale).expand(peak.shape))
    return drawn


def _grid(source: Source, _scale: float) -> torch.Tensor:
    return ((2 * source.uniform(source.shape) - 1) * GRID * 2).round() / 2


def _edges(source: Source, scale: float) -> torch.Tensor:
    drawn = source.normal() * scale
    flat = drawn.view(-1)
    flat[: flat.numel() // 2] *= SMALL
    least = torch.finfo(source.kind).smallest_normal
    huge = HUGE[:1] if source.kind == torch.float16 else HUGE
    levels = torch.tensor([0.0, least, least / 4, least * 0.375, *huge], dtype=drawn.dtype)
    levels = torch.cat([levels, -levels]).to(drawn.device)
    count = min(flat.numel(), max(FEWEST_EDGES, int(flat.numel() * EDGE_SHARE)))
    places = (source.uniform((count,)) * flat.numel()).long().clamp(max=flat.numel() - 1)
    flat[places] = levels[torch.arange(count, device=drawn.device) % len(levels)]
    return drawn


def _masked(source: Source, scale: float) -> torch.Tensor:
    drawn = source.normal() * scale
    heads = (*source.shape[:-1], 1) if source.shape else ()
    out = (source.uniform(source.shape) < MASKED) | (source.uniform(heads) < MASKED_ROWS)
    return drawn.masked_fill(out, -torch.inf)


def _negative(source: Source, scale: float) -> torch.Tensor:
    return -(source.normal() * scale).abs() - scale * 1e-3


PATTERNS: dict[str, Callable[[Source, float], torch.Tensor]] = {
    "rows": _rows,
    "mixed": _mixed,
    "large": _large,
    "grid": _grid,
    "edges": _edges,
    "masked": _masked,
    "ties": _ties,
    "sorted": _sorted,
    "reversed": _reversed,
    "level": _level,
    "clustered": _clustered,
    "negative": _negative,
}
