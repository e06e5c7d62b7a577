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

from kernelforge_agent.accounts import Accounts, device_seconds
from kernelforge_agent.briefing import hardware
from kernelforge_agent.conversation import Json, Model
from kernelforge_agent.errors import AgentError, NotPossible
from kernelforge_agent.forge import Forge, connected
from kernelforge_agent.job import JOBS, Around, Job, writer
from kernelforge_agent.journal import Journal, scrubbed
from kernelforge_agent.loop import Author, offered
from kernelforge_agent.prompts import prompt
from kernelforge_agent.result import AtWork, Result, summed_up

CHARACTERS_PER_TOKEN = 4


async def run(job: Job, around: Around) -> Result:
    """Begin a run, or go on with the one whose transcripts are there.

    Raises:
        AgentError: it could not begin.
    """
    # A key or a script that is missing is said before all else.
    async with aclosing(writer(job, around.key)) as model, _server(job, around, model) as forge:
        with _alone(around.folder):
            return await _worked(job, around, model, forge)


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
        spent_before = max((r["wall_s"] for j in journals for r in j.own), default=0.0)
        accounts = Accounts(job, forge, model.name, clock)
        await _opened(job, journals, model, forge)
        accounts.begin(_device_s_before(journals[0]) or 0.0)
        for journal in journals:
            accounts.recall(journal)
        authors = [AtWork(journal=journal) for journal in journals]
        signalled = await _together(authors, model, forge, accounts)
        result = await summed_up(authors, accounts, signalled, clock())
    result.document = scrubbed(result.document, secrets)[1]
    around.listener({"type": "result", **result.document})
    return result


async def _opened(job: Job, journals: list[Journal], model: Model, forge: Forge) -> None:
    """Write the first lines of journals that are new, as far as they are missing."""
    status = await forge.status()
    for number, journal in enumerate(journals, 1):
        if journal.of("init"):
            begun = _device_s_before(journal) is not None
            device = {} if begun else {"device_s_before": device_seconds(status)}
            journal.write("resume", turns=len(journal.of("message")), **device)
        else:
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
        if not journal.of("reply"):
            journal.write("reply", to=0, text=job.first_words(number), nearly=None)


def _device_s_before(journal: Journal) -> float | None:
    """The seconds that devices had worked when a session began, None where it is yet to begin."""
    return next((r["device_s_before"] for r in journal.own if "device_s_before" in r), None)


async def _together(
    authors: list[AtWork], model: Model, forge: Forge, accounts: Accounts
) -> int | None:
    """Let all authors work to their end; the signal that ended them before it, if one did."""
    signalled: int | None = None

    # All know what was found before one of them goes on: they keep to one budget.
    at_work = [Author(model, forge, author.journal, accounts) for author in authors]

    async def work(author: AtWork, one: Author) -> None:
        author.findings = one.findings
        try:
            author.end = await one.run()
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
            for author, one in zip(authors, at_work, strict=True):
                group.start_soon(work, author, one)
        watching.cancel_scope.cancel()
    return signalled
