"""Turns that are played instead of written: by a script, or by a rule."""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field

from kernelforge_agent.conversation import (
    Heard,
    Json,
    Reply,
    Stop,
    Talk,
    ToolCall,
    ToolOutcome,
    ToolSpec,
    Turn,
)


@dataclass(frozen=True, kw_only=True)
class Move:
    """What is said and called in one turn: names of tools with their arguments; and the tokens that
    it is said to have taken."""

    say: str = ""
    calls: tuple[tuple[str, Json], ...] = ()
    tokens: Mapping[str, int] = field(default_factory=dict)


# Yields moves, is sent what came of their calls, and returns its last words.
Outcomes = tuple[ToolOutcome, ...]
Play = Generator[Move, Outcomes, str]


class Player:
    """A model without a model. What it plays follows from the conversation alone, so one that goes
    on with a recorded conversation goes on as the first would have."""

    def __init__(self, name: str, begin: Callable[[], Play]) -> None:
        self.name = name
        self.secrets: tuple[str, ...] = ()
        self._begin = begin

    async def aclose(self) -> None:
        """Nothing is held."""

    async def turn(self, system: str, talk: Talk, tools: Sequence[ToolSpec], heard: Heard) -> Turn:  # noqa: ARG002  it is told nothing
        """The next turn."""
        replies = [said for said in talk if isinstance(said, Reply)]
        play = self._begin()
        try:
            move = next(play)
            for reply in replies[1:]:
                move = play.send(reply.outcomes)
        except StopIteration as end:
            heard(end.value)
            return Turn(text=end.value)
        heard(move.say)
        calls = tuple(
            ToolCall(id=f"t{len(replies)}.{number}", tool=tool, arguments=arguments)
            for number, (tool, arguments) in enumerate(move.calls)
        )
        stop: Stop = "calls" if calls else "done"
        return Turn(text=move.say, calls=calls, stop=stop, tokens=dict(move.tokens))
