"""How far the output of a model moved.

Every figure compares an original with a patched output of the same structure; tensors are compared
in double precision.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from kernelforge_engine.errors import MeasurementFailed
from kernelforge_engine.measurements import ImageDrift, LogitDrift

TINY = torch.finfo(torch.float32).tiny  # the scale of an output of zeros
LEAST_LOG = math.log(math.ulp(0.0))  # of a token that the patched model rules out
ROWS = 64  # positions whose softmax is taken at once
COLORS = 3
LEAST_SIDE = 16  # pixels; what is smaller is taken for no picture
LOGITS = "logits"


def drift(original: Any, patched: Any) -> tuple[float, float]:
    """The largest difference over all tensors of two output trees: as it is, and over the root mean
    square of the original tensor. Values that are equal, NaN included, do not differ.

    Raises:
        MeasurementFailed: the trees differ in structure, hold no tensor, or one is not finite where
            the other is.
    """
    left, right = tensors_of(original), tensors_of(patched)
    facts = [[(t.shape, t.dtype) for t in side] for side in (left, right)]
    if not left or facts[0] != facts[1]:
        why = "the two outputs do not hold the same tensors" if left else "they hold no tensor"
        raise MeasurementFailed(what="the outputs of the model", why=why)
    differences = [_difference(a, b) for a, b in zip(left, right, strict=True)]
    largest, relative = (max(side) for side in zip(*differences, strict=True))
    if not math.isfinite(largest):
        why = "with the cast they are not finite where the original is, or the reverse"
        raise MeasurementFailed(what="the outputs of the model", why=why)
    return largest, relative


def logit_drift(original: Any, patched: Any) -> LogitDrift | None:
    """The drift of everything named logits in two output trees, or None where nothing is."""
    pairs = [
        rows
        for a, b in zip(logits_of(original), logits_of(patched), strict=True)
        if len((rows := _comparable(a, b))[0])
    ]
    positions = sum(len(a) for a, _ in pairs)
    if not positions:
        return None
    return LogitDrift(
        kl_nats=sum(kl_divergence(a, b) * len(a) for a, b in pairs) / positions,
        same_token=sum(same_choice(a, b) * len(a) for a, b in pairs) / positions,
        positions=positions,
    )


def image_drift(original: Any, patched: Any) -> ImageDrift | None:
    """The drift of the pictures in two output trees, or None where there are none."""
    pairs = zip(tensors_of(original), tensors_of(patched), strict=True)
    found = [psnr(a, b) for a, b in pairs if _is_image(a)]
    worst = min((value for value in found if value is not None), default=None)
    if worst is None:
        return None
    return ImageDrift(psnr_db=None if math.isinf(worst) else worst)


def kl_divergence(original: Tensor, patched: Tensor) -> float:
    """The mean over rows of sum_i p_i (ln p_i - ln q_i), in nats, where p and q are the softmax of
    two tensors of logits, shape (rows, choices)."""
    total = 0.0
    pairs = zip(original.split(ROWS), patched.split(ROWS), strict=True)
    for a, b in pairs:
        p, q = (side.double().log_softmax(-1) for side in (a, b))
        terms = p.exp() * (p - q.clamp(min=LEAST_LOG))
        total += float(terms.where(p > LEAST_LOG, 0.0).sum())
    return max(0.0, total / len(original))


def same_choice(original: Tensor, patched: Tensor) -> float:
    """The part of rows with the same argmax, shape (rows, choices)."""
    return float((original.argmax(-1) == patched.argmax(-1)).double().mean())


def psnr(original: Tensor, patched: Tensor) -> float | None:
    """10 log10(range^2 / mean squared error) in dB, the range being max - min of the original.

    Infinite where no value differs; None where the original has no range, or is not finite.
    """
    a, b = original.double(), patched.double()
    peak = float(a.max() - a.min())
    error = float((a - b).square().mean())
    if not (peak > 0 and math.isfinite(peak) and math.isfinite(error)):
        return None
    return 10 * math.log10(peak * peak / error) if error else math.inf


def logits_of(tree: Any) -> list[Tensor]:
    """Every floating tensor named logits in an output tree, with a row of choices per position."""
    return [t for t in _named_logits(tree) if t.is_floating_point() and t.dim() > 1 and t.numel()]


def tensors_of(tree: Any) -> list[Tensor]:
    """Every tensor of an output tree, looking into dataclasses too."""
    found: list[Tensor] = []
    for leaf in pytree.tree_leaves(tree):
        if isinstance(leaf, Tensor):
            found.append(leaf)
        elif is_dataclass(leaf) and not isinstance(leaf, type):
            found += tensors_of([getattr(leaf, f.name) for f in fields(leaf)])
    return found


def _named_logits(tree: Any) -> Iterator[Tensor]:
    if isinstance(tree, Mapping):
        found = tree.get(LOGITS)
    else:
        found = None if isinstance(tree, Tensor) else getattr(tree, LOGITS, None)
    if isinstance(found, Tensor):
        yield found
    elif isinstance(tree, list | tuple):
        for part in tree:
            yield from _named_logits(part)


def _comparable(original: Tensor, patched: Tensor) -> Sequence[Tensor]:
    """Both as rows of choices, without positions that have no softmax."""
    a, b = (side.reshape(-1, side.shape[-1]) for side in (original, patched))
    usable = _has_softmax(a) & _has_softmax(b)
    return a[usable], b[usable]


def _has_softmax(rows: Tensor) -> Tensor:
    return (rows < math.inf).all(-1) & rows.isfinite().any(-1)


def _is_image(tensor: Tensor) -> bool:
    if tensor.dim() not in (3, 4) or not tensor.is_floating_point() or not tensor.numel():
        return False
    return tensor.shape[-3] == COLORS and min(tensor.shape[-2:]) >= LEAST_SIDE


def _difference(original: Tensor, patched: Tensor) -> tuple[float, float]:
    if not original.numel():
        return 0.0, 0.0
    wide = torch.complex128 if original.is_complex() else torch.float64
    a, b = original.to(wide), patched.to(wide)
    same = (a == b) | (a.isnan() & b.isnan())
    apart = torch.where(same, torch.zeros_like(a), a - b).abs()
    largest = float(apart.nan_to_num(nan=math.inf, posinf=math.inf).max())
    scale = float(a.abs().nan_to_num(0.0, 0.0, 0.0).square().mean().sqrt())
    return largest, largest / max(scale, TINY)
