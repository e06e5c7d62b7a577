"""The options of `kernelforge agent`."""

import re
from enum import StrEnum
from typing import Annotated

import typer

from kernelforge_engine.errors import BadOption

SECONDS = {"s": 1, "m": 60, "h": 3600, "": 1}


class Output(StrEnum):
    """Who reads standard output."""

    TEXT = "text"
    JSON = "json"
    STREAM_JSON = "stream-json"


GoalOption = Annotated[str, typer.Option(metavar="TEXT", help="What is wanted, in words.")]
ModelNameOption = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="NAME",
        help="claude-..., openai:NAME for any endpoint with chat completions, library (no model), "
        "or scripted:FILE.",
    ),
]
BaseUrlOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="The model's endpoint. Default: its maker's; for openai: also $OPENAI_BASE_URL.",
        show_default=False,
    ),
]
EffortOption = Annotated[
    str | None,
    typer.Option(
        metavar="low|medium|high|max", help="How hard a claude model thinks.", show_default=False
    ),
]
CardsOption = Annotated[
    list[str] | None,
    typer.Option("--card", metavar="ID", help="Work on this card alone; may be repeated."),
]
CastOption = Annotated[str, typer.Option("-o", metavar="X.cast", help="Where winners go.")]
ServerOption = Annotated[
    str,
    typer.Option(
        metavar="URL",
        help="A running `kernelforge serve`, with $KERNELFORGE_TOKEN. Default: a child of its own.",
        show_default=False,
    ),
]
AgentsOption = Annotated[int, typer.Option(min=1, max=16, help="Authors at work at once.")]
DollarsOption = Annotated[
    float | None, typer.Option("--max-cost-usd", min=0, help="Dollars.", show_default=False)
]
TurnsOption = Annotated[
    int | None, typer.Option("--max-turns", min=1, help="Requests of a model.", show_default=False)
]
TimeOption = Annotated[
    str | None, typer.Option("--max-time", metavar="2h|30m|90s", help="Time.", show_default=False)
]
CandidatesOption = Annotated[
    int | None,
    typer.Option("--max-candidates", min=1, help="Candidates judged.", show_default=False),
]
EnoughOption = Annotated[
    float | None,
    typer.Option(
        "--stop-at-speedup",
        metavar="X",
        min=0,
        help="Enough: a kernel so much faster than eager, by the whole of its interval.",
        show_default=False,
    ),
]
ArmOption = Annotated[
    str | None,
    typer.Option(
        "--arm", metavar="NAME", help="The arm of an experiment, for usage.", show_default=False
    ),
]
SessionArgument = Annotated[
    str, typer.Argument(metavar="SESSION", help="A session. Default: the newest.")
]
GpuTimeOption = Annotated[
    str | None,
    typer.Option(
        "--max-gpu-time",
        metavar="30m",
        help="Time that judging and timing hold the device.",
        show_default=False,
    ),
]
PriceOption = Annotated[
    str | None,
    typer.Option(
        metavar="input=5,output=25",
        help="Dollars for a million tokens by kind. Default: the server's table.",
        show_default=False,
    ),
]
OutputOption = Annotated[Output, typer.Option("--output-format", help="Who reads the output.")]


def seconds(option: str, text: str | None) -> float | None:
    """A time as people write it, in seconds.

    Raises:
        BadOption: it is no time.
    """
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text.strip())
    if found is None:
        accepted = "a time such as 90s, 30m or 2h"
        raise BadOption(field=option, value=text, why="it is no time", accepted=accepted)
    return float(found[1]) * SECONDS[found[2]]


def prices(text: str | None) -> dict[str, float] | None:
    """Dollars by kind of token.

    Raises:
        BadOption: they are no prices.
    """
    if text is None:
        return None
    pairs = re.findall(r"(?:^|,) *([a-z_]+) *= *(\d+(?:\.\d+)?)(?= *(?:,|$))", text)
    if not pairs or len(pairs) != text.count("=") or len(pairs) != text.count(",") + 1:
        accepted = "input=5,output=25,cache_read=0.5,cache_write=6.25"
        raise BadOption(field="price", value=text, why="it is no price", accepted=accepted)
    return {kind: float(dollars) for kind, dollars in pairs}
