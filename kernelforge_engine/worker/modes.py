"""The ways of running a model that are compared: eager, compiled, and a CUDA graph of it.

Each side of a compiled mode has a backend of its own, made while the cast was on or off, since
Dynamo would otherwise take the code that it made for the other side.
"""

import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from kernelforge_engine.errors import ModelRaised
from kernelforge_engine.measurements import Mode
from kernelforge_engine.worker.quartets import Run, Side
from kernelforge_engine.worker.ways.ready import Inputs, described

WARM_UPS = 3  # a second compilation, for sizes that turned out to vary, and the graph's recording
INDUCTOR: dict[Mode, str] = {"compile": "default", "reduce-overhead": "reduce-overhead"}
ON_CUDA: tuple[Mode, ...] = ("reduce-overhead", "cuda_graph")

Model = Callable[..., Any]


class NoSuchMode(Exception):
    """Why a model cannot be run in a mode."""

    def __init__(self, *, why: str) -> None:
        super().__init__(why)


@contextmanager
def prepared(
    mode: Mode,
    model: Model,
    sets: Sequence[Inputs],
    enters: Sequence[Callable[[], None]],
    device: torch.device,
) -> Iterator[tuple[Side, ...]]:
    """The sides of a mode, one for each way to enter, warmed up; what was compiled goes again.

    Raises:
        NoSuchMode: with what the compiler or the capture said.
    """
    if mode in ON_CUDA and device.type != "cuda":
        raise NoSuchMode(why="it is for CUDA devices only")
    try:
        yield tuple(_side(mode, model, sets, enter) for enter in enters)
    finally:
        if mode in INDUCTOR:
            torch.compiler.reset()


def _side(mode: Mode, model: Model, sets: Sequence[Inputs], enter: Callable[[], None]) -> Side:
    enter()
    forwards = _forwards(model, sets)
    try:
        forwards()
    except Exception as error:
        raise ModelRaised(error=described(error)) from error
    if mode == "eager":
        return Side(enter=enter, run=forwards, forwards=forwards)
    try:
        if mode == "cuda_graph":
            return Side(enter=enter, run=_graphed(forwards), forwards=forwards)
        run = _compiled(mode, model, sets)
    except NoSuchMode:
        raise
    except Exception as error:
        raise NoSuchMode(why=described(error)) from error
    return Side(enter=enter, run=run, forwards=run)


def _forwards(model: Model, sets: Sequence[Inputs]) -> Run:
    return lambda: [model(*args, **kwargs) for args, kwargs in sets]


def _compiled(mode: Mode, model: Model, sets: Sequence[Inputs]) -> Run:
    seen: list[int] = []
    compiled = torch.compile(_traceable(model), backend=_backend(INDUCTOR[mode], seen))
    forwards = _forwards(compiled, sets)

    def run() -> Any:
        if mode == "reduce-overhead":
            torch.compiler.cudagraph_mark_step_begin()
        return forwards()

    for _ in range(WARM_UPS):
        run()
    if not seen:
        raise NoSuchMode(why="torch.compile found nothing in it to compile")
    return run


def _backend(inductor: str, seen: list[int]) -> Callable[..., Any]:
    """Inductor as a function of its own; it notes the size of every graph it is given."""
    from torch._inductor import list_mode_options
    from torch._inductor.compile_fx import compile_fx

    options = list_mode_options(inductor) if inductor != "default" else {}

    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        seen.append(len(graph.graph.nodes))
        return compile_fx(graph, inputs, config_patches=options)

    return backend


def _traceable(model: Model) -> Model:
    """What torch.compile takes: a module, a function, or a function around anything else."""
    if isinstance(model, torch.nn.Module | types.FunctionType):
        return model

    def call(*args: Any, **kwargs: Any) -> Any:
        return model(*args, **kwargs)

    return call


def _graphed(forwards: Run) -> Run:
    """One run, recorded once and replayed. It is run before on another stream, as recording asks
    for; what it counts while it is recorded is what every replay runs."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UPS):
            forwards()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = forwards()

    def replay() -> Any:
        graph.replay()
        return output

    return replay
