"""The sessions of a project: what earlier runs left, read without changing it."""

import fcntl
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from kernelforge_agent.budget import Budget, Meter
from kernelforge_agent.conversation import Json
from kernelforge_agent.errors import NoSessions, UnknownSession
from kernelforge_agent.findings import Findings
from kernelforge_agent.job import JOBS, Job
from kernelforge_agent.journal import of, own, read, tool_outcome

NAMED = 5


@dataclass(frozen=True, kw_only=True)
class Overview:
    """A session in short.

    Attributes:
        state: running; finished, budget, or enough, as it ended; failed; or stopped before its end.
        forked_from: the session that it goes on from, empty for none.
        dollars: None where nobody knew what a turn cost.
    """

    session: str
    state: str
    job: Job
    forked_from: str
    turns: int
    candidates: int
    valid: int
    faster: dict[str, Json]
    casts: tuple[str, ...]
    tokens: dict[str, int]
    dollars: float | None
    wall_s: float
    report: str
    transcripts: Path


class Sessions:
    """The sessions in a folder, one folder each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def names(self) -> tuple[str, ...]:
        """Those that have begun, the newest first: names sort by time."""
        begun = (path.parent.name for path in self._folder.glob("*/1.jsonl") if _has_begun(path))
        return tuple(sorted(begun, reverse=True))

    def folder(self, session: str = "") -> Path:
        """Where a session is kept, the newest where none is named.

        Raises:
            NoSessions, UnknownSession
        """
        names = self.names
        if not names:
            raise NoSessions
        if session and session not in names:
            older = len(names) - NAMED
            more = f" and {older} older" if older > 0 else ""
            raise UnknownSession(session=session, known=", ".join(names[:NAMED]) + more)
        return self._folder / (session or names[0])

    def job(self, session: str = "", budget: Budget | None = None) -> Job:
        """The job of a session, with what is given of another budget in place of its own.

        Raises:
            NoSessions, UnknownSession
        """
        job = _job(self.folder(session))
        given = {k: v for k, v in asdict(budget).items() if v is not None} if budget else {}
        return replace(job, budget=replace(job.budget, **given))

    def transcripts(self, session: str = "") -> dict[str, list[Json]]:
        """The records of every author of a session, by the author's number.

        Raises:
            NoSessions, UnknownSession
        """
        return _transcripts(self.folder(session))

    def overview(self, session: str = "") -> Overview:
        """A session in short.

        Raises:
            NoSessions, UnknownSession
        """
        folder = self.folder(session)
        authors = list(_transcripts(folder).values())
        ours = [record for records in authors for record in own(records)]
        found, meter = _found(authors), _spent(ours)
        ends = [records[-1]["text"] for records in authors if records[-1]["type"] == "end"]
        return Overview(
            session=folder.name,
            state="running" if _runs(folder) else _state(authors),
            job=_job(folder),
            forked_from=next((r["of"] for r in reversed(authors[0]) if r["type"] == "fork"), ""),
            turns=meter.turns,
            candidates=found.candidates,
            valid=found.valid,
            faster=found.faster,
            casts=tuple(dict.fromkeys(found.casts)),
            tokens=meter.tokens,
            dollars=None if meter.unpriced else round(meter.dollars, 6),
            wall_s=max((record["wall_s"] for record in ours), default=0.0),
            report="\n\n".join(dict.fromkeys(ends)),
            transcripts=folder,
        )


def _has_begun(transcript: Path) -> bool:
    """Whether its first record was written to its end."""
    with transcript.open("rb") as file:
        return file.readline().endswith(b"\n")


def _job(folder: Path) -> Job:
    with (folder / "1.jsonl").open(encoding="utf-8") as file:
        return JOBS.validate_python(json.loads(file.readline())["job"])


def _transcripts(folder: Path) -> dict[str, list[Json]]:
    """The records of every author who has begun."""
    paths = sorted(folder.glob("*.jsonl"), key=lambda path: int(path.stem))
    found = {path.stem: read(path) for path in paths}
    return {author: records for author, records in found.items() if records}


def _runs(folder: Path) -> bool:
    """Whether a process holds a session's folder."""
    lock = folder / "lock"
    if not lock.exists():
        return False
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _state(authors: list[list[Json]]) -> str:
    last = [records[-1] for records in authors]
    if any(record["type"] == "error" for record in last):
        return "failed"
    if any(record["type"] != "end" for record in last):
        return "stopped"
    ends = {record["how"] for record in last}
    return next(how for how in ("enough", "budget", "finished") if how in ends)


def _found(authors: list[list[Json]]) -> Findings:
    """What all authors found together; counts leave out what another session did."""
    whole = Findings()
    for records in authors:
        for record in _results(records):
            whole.learn(tool_outcome(record))
    counted = Findings()
    for records in authors:
        for record in _results(own(records)):
            counted.learn(tool_outcome(record))
    return replace(counted, faster=whole.faster)


def _results(records: list[Json]) -> Iterator[Json]:
    return (record for record in records if record["type"] == "tool_result")


def _spent(ours: list[Json]) -> Meter:
    meter = Meter(budget=Budget())
    for record in of(ours, "message"):
        meter.took(record["tokens"])
    for record in of(ours, "cost"):
        meter.cost(record["dollars"])
    return meter
