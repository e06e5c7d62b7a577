"""What a run is to do, and with what; all of it is kept, so that a run can go on."""

from dataclasses import dataclass
from pathlib import Path

from mcp import StdioServerParameters
from pydantic import TypeAdapter

from kernelforge_agent.budget import Budget, Price
from kernelforge_agent.conversation import Model
from kernelforge_agent.errors import KeyMissing, NotPossible
from kernelforge_agent.journal import Listener
from kernelforge_agent.models.library import library
from kernelforge_agent.models.player import Player
from kernelforge_agent.models.scripted import script
from kernelforge_agent.prompts import prompt

OPENAI = "https://api.openai.com/v1"
ACCEPTED = "a model of Anthropic by its name, openai:NAME, library, or scripted:FILE"


@dataclass(frozen=True, kw_only=True)
class Task:
    """What is to be made faster.

    Attributes:
        model: the model as capture_model takes it.
        cards: those to work on, none for all.
        cast: the file that winners are exported to.
    """

    model: str
    device: str
    goal: str
    cards: tuple[str, ...] = ()
    cast: str


@dataclass(frozen=True, kw_only=True)
class Job:
    """A task, who works on it, and what that may take.

    Attributes:
        model: who writes; see ACCEPTED.
        authors: how many work at once.
        arm: what its spending is labelled with, where it is part of an experiment.
        server: the URL of a tool server, empty for a child of our own.
    """

    task: Task
    model: str
    base_url: str | None = None
    effort: str | None = None
    budget: Budget
    price: Price | None = None
    authors: int = 1
    server: str = ""
    arm: str | None = None

    def first_words(self, number: int) -> str:
        """What author `number` is told."""
        task = self.task
        others = self.authors > 1
        return prompt(
            "task",
            model=task.model,
            device=task.device,
            goal=task.goal,
            cards=", ".join(task.cards) or "all, those with the most to gain first",
            cast=task.cast,
            place=prompt("author", number=number, authors=self.authors) if others else "",
        )


JOBS = TypeAdapter(Job)


@dataclass(frozen=True, kw_only=True)
class Around:
    """What a run is given by the process it runs in.

    Attributes:
        folder: the session's transcripts.
        child: how a server of our own is started.
        token: what a server at a URL asks for.
        key: for endpoints that speak chat completions.
        listener: is told of everything that happens.
    """

    folder: Path
    child: StdioServerParameters
    token: str
    key: str
    listener: Listener


def writer(job: Job, key: str) -> Model:
    """Whoever writes the turns of a job.

    Raises:
        NotPossible: there is no such model, or its package, script or key is missing.
    """
    kind, _, name = job.model.partition(":")
    task = job.task
    if job.model == "library":
        return Player(job.model, library(task.model, task.device, task.cards, task.cast))
    if kind == "scripted" and name:
        return Player("scripted", script(Path(name)))
    if kind == "openai" and name:
        from kernelforge_agent.models.chat_completions import KEY, ChatModel

        if not key and job.base_url is None:
            raise KeyMissing(model=name, variable=KEY)
        return ChatModel(name, base_url=job.base_url or OPENAI, key=key)
    if job.model.startswith("claude-"):
        from kernelforge_agent.models.anthropic_messages import AnthropicModel

        return AnthropicModel(job.model, base_url=job.base_url, effort=job.effort)
    raise NotPossible(why=f"there is no model {job.model!r}", step=f"name {ACCEPTED}")
