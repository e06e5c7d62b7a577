"""A generation loop as one call of a model."""

from collections.abc import Callable
from typing import Any

import torch

from kernelforge_engine.errors import ModelUnusable


class Generation(torch.nn.Module):
    """A language model whose forward is greedy generation of a fixed count of tokens."""

    def __init__(self, model: Any, tokens: int) -> None:
        super().__init__()
        self.model = model
        self._tokens = tokens

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The generated tokens; an end token does not stop it, so that every run is alike."""
        return self.model.generate(
            *args,
            **kwargs,
            max_new_tokens=self._tokens,
            min_new_tokens=self._tokens,
            do_sample=False,
            use_cache=True,
        )


def generating(model: Callable[..., Any], name: str, tokens: int) -> Callable[..., Any]:
    """The model, or its generation loop where tokens are wanted.

    Raises:
        ModelUnusable: it generates nothing.
    """
    if not tokens:
        return model
    if not hasattr(model, "generate"):
        why = f"{type(model).__name__} has no generate()"
        raise ModelUnusable(model=name, why=why, step="leave --generate out")
    return Generation(model, tokens)
