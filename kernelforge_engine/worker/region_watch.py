"""When a module's forward, or a function of the model's own code, begins and ends.

Modules are followed by global hooks (hooks on modules would change fast paths), functions as a
profiler follows them: nothing in the model is replaced, and nothing of it runs twice.
"""

import inspect
import sys
import sysconfig
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.modules import module as nn_module

import kernelforge_engine
from kernelforge_engine.dispatch.instance import (
    PLAIN,
    attributes_of,
    bound,
    source_of,
    spread,
    tensors_of,
)
from kernelforge_engine.dispatch.recording import flattened
from kernelforge_engine.worker.region_calls import Calls

MISSES = 8  # calls after which a function that takes other things is not looked at again
NOT_PLAIN = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
TORCH = str(Path(torch.__file__).parent)
PACKAGES = tuple(f"{sysconfig.get_path(name)}/" for name in ("purelib", "platlib"))
LIBRARIES = tuple(f"{sysconfig.get_path(name)}/" for name in ("stdlib", "platstdlib"))
OURS = f"{Path(kernelforge_engine.__file__).parent}/"


@dataclass(kw_only=True, eq=False)
class Site:
    """One module instance or one function: what can be entered. `target` keeps it alive.

    What a tracer knows of it is kept here: `places` by arguments, `settled` once one place stands
    for all calls, and `misses`, calls with something else than tensors and plain values.
    """

    kind: Literal["module", "function"]
    name: str
    owner: str
    label: str
    target: Any
    places: dict[Any, Any] = field(default_factory=dict)
    settled: Any = None
    misses: int = 0
    _names: tuple[int, tuple[str, ...]] = (-1, ())

    @cached_property
    def own(self) -> frozenset[int]:
        """The ids of its parameters and buffers."""
        return frozenset(map(id, self.tensors().values()))

    @property
    def source(self) -> str:
        """The text of the forward or function, empty where it cannot be read."""
        if self.kind == "function":
            return known_source(self.target)
        return known_source(getattr(type(self.target), "forward", None))

    def attributes(self) -> dict[str, bool | int | float]:
        """The plain public attributes of a module, which may decide what it computes."""
        held = vars(self.target) if self.kind == "module" else {}
        if self._names[0] != len(held):
            self._names = len(held), tuple(attributes_of(self.target) if held else ())
        return {name: held[name] for name in self._names[1] if type(held[name]) in PLAIN}

    def plain(self) -> Hashable:
        """What tells its attributes from others: 1, 1.0 and True are equal and are not the same."""
        found = self.attributes()
        return (*found.values(), *map(type, found.values()))

    def tensors(self) -> dict[str, Tensor]:
        """The parameters and buffers of a module, those of its parts included."""
        return {} if self.kind == "function" else tensors_of(self.target)

    def owned(self) -> tuple[dict[str, bool | int | float], dict[str, Tensor]]:
        """Its attributes and tensors."""
        return self.attributes(), self.tensors()


Values = Callable[[], Mapping[str, Any]]
known_source = cache(source_of)


class Watch:
    """Tells `begins(token, site, values)` and `ends(token, output)` with the same token.

    `values` gives the bound arguments by name and must be called at once, if at all.
    """

    def __init__(self, model: object) -> None:
        named = model.named_modules() if isinstance(model, torch.nn.Module) else ()
        self._names = {id(module): name for name, module in named}
        self._modules: dict[int, Site] = {}
        self._functions: dict[int, tuple[CodeType, Site | None]] = {}
        self._thread = 0
        self._frames: list[FrameType] = []
        self._calls = Calls(self._called, self._returned)
        self._begins: Callable[[object, Site, Values], None]
        self._ends: Callable[[object, Any], None]

    @contextmanager
    def watching(
        self,
        begins: Callable[[object, Site, Values], None],
        ends: Callable[[object, Any], None],
        *,
        pausing: bool,
    ) -> Iterator[None]:
        """Follow this thread inside; `pausing` where resume() is called after every operator."""
        self._thread, self._frames = threading.get_ident(), []
        self._begins, self._ends = begins, ends
        enter = nn_module.register_module_forward_pre_hook(self._enter)
        leave = nn_module.register_module_forward_hook(self._leave, always_call=True)
        try:
            with self._calls.followed(pausing=pausing):
                yield
        finally:
            enter.remove()
            leave.remove()
            self._frames.clear()

    def resume(self) -> None:
        """An operator has run, whose own Python code was not followed."""
        self._calls.resume()

    def _enter(self, module: torch.nn.Module, args: tuple[Any, ...]) -> None:
        if threading.get_ident() != self._thread:
            return
        # Global hooks are not given keywords; the frame that calls them has both.
        kwargs = sys._getframe(1).f_locals.get("kwargs")
        values = partial(bound, module, args, kwargs)
        self._calls.aside(self._begins, module, self._site(module), values)

    def _leave(self, module: torch.nn.Module, _args: tuple[Any, ...], output: Any) -> None:
        if threading.get_ident() == self._thread:
            self._calls.aside(self._ends, module, output)

    def _site(self, module: torch.nn.Module) -> Site:
        site = self._modules.get(id(module))
        if site is None:
            kind = type(module)
            path = self._names.get(id(module), "")
            site = self._modules[id(module)] = Site(
                kind="module",
                name=kind.__name__,
                owner=f"{kind.__module__}.{kind.__qualname__}",
                label=f"{path} ({kind.__name__})".strip(),
                target=module,
            )
        return site

    def _called(self, frame: FrameType) -> bool:
        site = (self._functions.get(id(frame.f_code)) or self._learn(frame))[1]
        if site is None or site.misses >= MISSES:
            return False
        given = arguments_in(frame)
        if any(isinstance(value, Tensor) for value in flattened(list(given.values()))):
            self._frames.append(frame)
            self._begins(frame, site, lambda: given)
        return True

    def _returned(self, frame: FrameType, value: Any) -> None:
        if frame in self._frames:
            del self._frames[self._frames.index(frame) :]  # an exception has left those above
            self._ends(frame, value)

    def _learn(self, frame: FrameType) -> tuple[CodeType, Site | None]:
        code = frame.f_code
        site = None
        if is_own(code) and (function := named_function(frame)) is not None:
            site = Site(
                kind="function",
                name=function.__name__,
                owner=f"{function.__module__}.{function.__qualname__}",
                label="",
                target=function,
            )
        self._functions[id(code)] = code, site
        return code, site


def arguments_in(frame: FrameType) -> dict[str, Any]:
    """The arguments of a function that has just been called."""
    code, found = frame.f_code, frame.f_locals
    count = code.co_argcount + code.co_kwonlyargcount
    has_positional = bool(code.co_flags & inspect.CO_VARARGS)
    has_keywords = bool(code.co_flags & inspect.CO_VARKEYWORDS)
    names = code.co_varnames[: count + has_positional + has_keywords]
    return spread({n: found[n] for n in names}, names[-1] if has_keywords else None)


def is_own(code: CodeType) -> bool:
    """Whether code belongs to the model: not to torch, the standard library or this engine."""
    file = code.co_filename
    if code.co_flags & NOT_PLAIN or file.startswith(("<", OURS, TORCH)):
        return False
    if file.startswith(PACKAGES):
        return not file.startswith(tuple(f"{folder}torch" for folder in PACKAGES))
    return not file.startswith(LIBRARIES)


def named_function(frame: FrameType) -> FunctionType | None:
    """The function that runs in a frame, if its module finds it by its name."""
    function = frame.f_globals.get(frame.f_code.co_name)
    try:
        plain = inspect.unwrap(function) if callable(function) else None
    except ValueError:  # it wraps itself
        return None
    is_running = isinstance(plain, FunctionType) and plain.__code__ is frame.f_code
    return plain if is_running else None
