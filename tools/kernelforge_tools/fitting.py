"""Keeping an answer below what every client shows in full."""

from typing import TypeVar

from kernelforge_tools.answer import View

MAX_CHARS = 15_500

V = TypeVar("V", bound=View)


def fitted(view: V, spare: tuple[str, ...]) -> V:
    """The view without those of its `spare` fields that do not fit; `left_out` names them."""
    dropped: list[str] = []
    for name in spare:
        if _size(view) <= MAX_CHARS:
            break
        if getattr(view, name) is not None:
            dropped.append(f"{name} did not fit: ask for it alone")
            view = view.model_copy(update={name: None})
    if not dropped:
        return view
    said: list[str] = getattr(view, "left_out", None) or []
    return view.model_copy(update={"left_out": [*said, *dropped]})


def _size(view: View) -> int:
    return len(view.model_dump_json(exclude_none=True))
