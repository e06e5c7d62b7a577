"""Greedy generation by a language model, with and without a cast."""

from collections.abc import Callable
from typing import Any

import torch

from kernelforge_engine.measurements import GenerationDrift
from kernelforge_engine.worker.ways.generation import Generation
from kernelforge_engine.worker.ways.ready import Inputs, described

MOST_TOKENS = 128
FEWEST_TOKENS = 8
PROMPTS = ("input_ids", "inputs")
TEACHER = ("labels", "decoder_input_ids")  # what says to a forward what was generated


def generator(model: Callable[..., Any]) -> Any | None:
    """The language model that generates, or None."""
    inner = model.model if isinstance(model, Generation) else model
    can = getattr(inner, "can_generate", None)
    return inner if callable(can) and can() else None


def generation_drift(
    model: Any, inputs: Inputs, tokens: int, enter: tuple[Callable[[], None], Callable[[], None]]
) -> GenerationDrift:
    """Generate on both sides from the same inputs and compare the new tokens place by place."""
    tokens = min(tokens, _room(model, inputs))
    if tokens < FEWEST_TOKENS:
        return GenerationDrift(same_token=None, tokens=0, failed="there is no time or room for it")
    try:
        original, patched = (_generated(model, inputs, tokens, side) for side in enter)
    except Exception as error:  # noqa: BLE001  the user's model; a forward may take other inputs
        failed = f"generate() raised {described(error)}"
        return GenerationDrift(same_token=None, tokens=0, failed=failed)
    if original.shape != patched.shape:
        failed = "the two generations have different lengths"
        return GenerationDrift(same_token=None, tokens=0, failed=failed)
    return GenerationDrift(
        same_token=float((original == patched).double().mean()), tokens=original.shape[-1]
    )


def _generated(model: Any, inputs: Inputs, tokens: int, enter: Callable[[], None]) -> torch.Tensor:
    args, kwargs = inputs
    enter()
    found = model.generate(
        *args,
        **{name: value for name, value in kwargs.items() if name not in TEACHER},
        max_new_tokens=tokens,
        min_new_tokens=tokens,  # an end token does not stop it, so that both are as long
        do_sample=False,
        num_beams=1,
    )
    sequences: torch.Tensor = getattr(found, "sequences", found)
    return sequences[..., -tokens:]


def _room(model: Any, inputs: Inputs) -> int:
    """The tokens that fit behind a prompt."""
    config = getattr(model, "config", None)
    longest = getattr(config, "max_position_embeddings", None)
    if not isinstance(longest, int):
        return MOST_TOKENS
    if getattr(config, "is_encoder_decoder", False):
        return min(MOST_TOKENS, longest - 2)
    args, kwargs = inputs
    prompts = [*args[:1], *(kwargs[name] for name in PROMPTS if name in kwargs)]
    lengths = [p.shape[1] for p in prompts if isinstance(p, torch.Tensor) and p.dim() > 1]
    return min(MOST_TOKENS, longest - max(lengths, default=0) - 1)
