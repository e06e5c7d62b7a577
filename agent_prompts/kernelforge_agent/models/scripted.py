"""`scripted:FILE`: a list of turns in JSON, for tests and demonstrations."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from kernelforge_agent.conversation import Json, ToolOutcome
from kernelforge_agent.errors import NotPossible
from kernelforge_agent.models.player import Move, Play


class ScriptedCall(BaseModel):
    """A call. An argument `{"result": NAME, "at": "/data/lease_id"}` is read from what came of the
    call that was given that name."""

    model_config = ConfigDict(extra="forbid")

    tool: str
    arguments: Json = Field(default_factory=dict)
    name: str = ""


class ScriptedTurn(BaseModel):
    """A turn; with `until` it is played again, `at_most` so often, until its last call has that
    status. The last turn has no calls. `tokens` is what it is said to have taken, by kind."""

    model_config = ConfigDict(extra="forbid")

    say: str = ""
    calls: list[ScriptedCall] = Field(default_factory=list)
    until: str | None = None
    at_most: int = Field(default=1, ge=1)
    tokens: dict[str, int] = Field(default_factory=dict)


def script(path: Path) -> Callable[[], Play]:
    """What a file says is to be played.

    Raises:
        NotPossible: it is no such file.
    """
    step = 'write a JSON list of {"say": ..., "calls": [{"tool": ..., "arguments": {}}]}'
    try:
        turns = TypeAdapter(list[ScriptedTurn]).validate_json(path.read_bytes())
    except OSError as error:
        raise NotPossible(why=f"{path} cannot be read: {error.strerror}", step=step) from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise NotPossible(why=f"{path} is no script: {where}: {first['msg']}", step=step) from error
    return lambda: _played(turns)


def _played(turns: list[ScriptedTurn]) -> Play:
    named: dict[str, Any] = {}
    said = ""
    for turn in turns:
        said = turn.say
        if not turn.calls:
            continue
        for _ in range(turn.at_most):
            calls = tuple((c.tool, _resolved(c.arguments, named)) for c in turn.calls)
            outcomes = yield Move(say=turn.say, calls=calls, tokens=turn.tokens)
            named |= _answers(turn, outcomes)
            if outcomes[-1].status == turn.until:
                break
    return said


def _answers(turn: ScriptedTurn, outcomes: tuple[ToolOutcome, ...]) -> Iterator[tuple[str, Any]]:
    pairs = zip(turn.calls, outcomes, strict=True)
    return ((call.name, outcome.answer) for call, outcome in pairs if call.name)


def _resolved(value: Any, named: Json) -> Any:
    if isinstance(value, list):
        return [_resolved(entry, named) for entry in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"result", "at"}:
        return _at(named.get(value["result"]), value["at"])
    return {key: _resolved(entry, named) for key, entry in value.items()}


def _at(found: Any, pointer: str) -> Any:
    """What a JSON pointer finds.

    Raises:
        NotPossible: there is no such thing.
    """
    place = found
    try:
        for step in pointer.split("/")[1:]:
            place = place[int(step)] if isinstance(place, list) else place[step]
    except (KeyError, IndexError, ValueError, TypeError) as error:
        why = f"the script asks for {pointer}, and the result is {json.dumps(found)[:200]}"
        raise NotPossible(why=why, step="mend the script, then `agent resume`") from error
    return place
