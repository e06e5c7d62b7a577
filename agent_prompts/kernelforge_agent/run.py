"""A run: authors at work on one server, from their transcripts on, until each has ended."""

import fcntl
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, aclosing, asynccontextmanager, closing, contextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

import anyio
from pydantic import TypeAdapter

from kernelforge_agent.accounts import Accounts, device_seconds
from kernelforge_agent.briefing import hardware
from kernelforge_agent.budget import Budget, Meter
from kernelforge_agent.conversation import Json, Model
from kernelforge_agent.errors import AgentError, NotPossible
from kernelforge_agent.forge import Forge, connected
from kernelforge_agent.job import Around, Job, writer
from kernelforge_agent.journal import Journal, scrubbed
from kernelforge_agent.loop import Author, offered
from kernelforge_agent.prompts import prompt
from kernelforge_agent.result import AtWork, Result, summed_up

CHARACTERS_PER_TOKEN = 4
JOBS = TypeAdapter(Job)


async def run(job: Job, around: Around) -> Result:
    """Begin a run, or go on with the one whose transcripts are there.

    Raises:
        AgentError: it could not begin.
    """
    # A key or a script that is missing is said before all else.
    async with aclosing(writer(job, around.key)) as model, _server(job, around, model) as forge:
        with _alone(around.folder):
            return await _worked(job, around, model, forge)


def recorded(folder: Path, budget: Budget | None = None) -> Job:
    """The job of an earlier run, with another budget where one is given.

    Raises:
        NotPossible: there is none.
    """
    first = folder / "1.jsonl"
    line, whole, _ = first.read_bytes().partition(b"\n") if first.exists() else (b"", b"", b"")
    if not whole:
        raise NotPossible(why=f"{folder} holds no transcript", step="name a session that was run")
    record = TypeAdapter(Json).validate_json(line)
    job = JOBS.validate_python(record["job"])
    given = {k: v for k, v in asdict(budget).items() if v is not None} if budget else {}
    merged = Budget(**{**asdict(job.budget), **given})
    return JOBS.validate_python({**JOBS.dump_python(job), "budget": asdict(merged)})


async def planned(job: Job, around: Around) -> Json:
    """What a run would begin with; no model is asked and nothing is captured.

    Raises:
        AgentError: it could not begin.
    """
    async with aclosing(writer(job, around.key)) as model, _server(job, around, model) as forge:
        system = prompt("system", instructions=forge.instructions)
        tools = offered(forge)
        read = len(system) + sum(len(str(asdict(tool))) for tool in tools)
        words = [job.first_words(number + 1) for number in range(job.authors)]
        estimate = (read + len(words[0])) // CHARACTERS_PER_TOKEN
        cost = job.price.dollars({"input": estimate}) if job.price else None
        return {
            "job": JOBS.dump_python(job, mode="json"),
            "system": system,
            "first_words": words,
            "tools": [tool.name for tool in tools],
            "first_input_tokens_estimated": estimate,
            "first_input_dollars": "unknown" if cost is None else cost,
        }


@asynccontextmanager
async def _server(job: Job, around: Around, model: Model) -> AsyncIterator[Forge]:
    """The server; an error inside is carried out of the client's task group as it is."""
    failed: AgentError | None = None
    place = job.server or around.child
    try:
        async with connected(place, around.token, f"kernelforge-agent {model.name}") as forge:
            try:
                yield forge
            except AgentError as error:
                failed = error
    except BaseExceptionGroup:
        if failed is None:
            raise
    if failed is not None:
        raise failed


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold a session's folder: two processes would write one transcript."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            step = "wait for it, or end it"
            raise NotPossible(why=f"session {folder.name} runs already", step=step) from error
        yield


async def _worked(job: Job, around: Around, model: Model, forge: Forge) -> Result:
    started = time.monotonic()
    spent_before = 0.0

    def clock() -> float:
        return spent_before + time.monotonic() - started

    secrets = (*model.secrets, *([around.token] if around.token else []))
    paths = [around.folder / f"{number + 1}.jsonl" for number in range(job.authors)]
    with ExitStack() as stack:
        journals = [
            stack.enter_context(closing(Journal(path, clock, around.listener, secrets)))
            for path in paths
        ]
        spent_before = max((r["wall_s"] for j in journals for r in j.records), default=0.0)
        accounts = Accounts(Meter(budget=job.budget), forge, model.name, job.price, clock)
        await _opened(job, journals, model, forge)
        accounts.begin(journals[0].of("init")[0]["device_s_before"])
        for journal in journals:
            accounts.recall(journal)
        authors = [AtWork(journal=journal) for journal in journals]
        signalled = await _together(authors, model, forge, accounts)
        result = await summed_up(authors, accounts, signalled, clock())
    result.document = scrubbed(result.document, secrets)[1]
    around.listener({"type": "result", **result.document})
    return result


async def _opened(job: Job, journals: list[Journal], model: Model, forge: Forge) -> None:
    """Write the first lines of journals that are new."""
    status = await forge.status()
    for number, journal in enumerate(journals, 1):
        if journal.of("init"):
            journal.write("resume", turns=len(journal.of("message")))
            continue
        journal.write(
            "init",
            session=journal.path.parent.name,
            version=version("kernelforge-mcp"),
            model=model.name,
            job=JOBS.dump_python(job, mode="json"),
            tools=[tool.name for tool in offered(forge)],
            hardware=hardware(status),
            device_s_before=device_seconds(status),
            system=prompt("system", instructions=forge.instructions),
        )
        journal.write("reply", to=0, text=job.first_words(number), nearly=None)


async def _together(
    authors: list[AtWork], model: Model, forge: Forge, accounts: Accounts
) -> int | None:
    """Let all authors work to their end; the signal that ended them before it, if one did."""
    signalled: int | None = None

    async def work(author: AtWork) -> None:
        at_work = Author(model, forge, author.journal, accounts)
        author.findings = at_work.findings
        try:
            author.end = await at_work.run()
        except AgentError as error:
            author.error = error
            author.journal.write("error", text=str(error))

    async with anyio.create_task_group() as watching:

        async def watch() -> None:
            nonlocal signalled
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                async for number in signals:
                    signalled = int(number)
                    watching.cancel_scope.cancel()

        watching.start_soon(watch)
        async with anyio.create_task_group() as group:
            for author in authors:
                group.start_soon(work, author)
        watching.cancel_scope.cancel()
    return signalled
