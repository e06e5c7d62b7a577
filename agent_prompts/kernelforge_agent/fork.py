"""A session that goes on from another, which stays as it is."""

import json
from dataclasses import replace
from pathlib import Path

from kernelforge_agent.budget import Budget
from kernelforge_agent.conversation import Json
from kernelforge_agent.job import JOBS, Job
from kernelforge_agent.journal import of, read
from kernelforge_agent.prompts import prompt
from kernelforge_agent.sessions import Sessions


def forked(sessions: Sessions, session: str, job: Job, into: Path) -> None:
    """Begin a session in the folder `into` with the conversation of another, up to the last turn
    that was answered or the last words of a run that ended; one that is under way is left to the
    other session, which reports it.

    Raises:
        NoSessions, UnknownSession
    """
    source = sessions.folder(session)
    for author in range(1, job.authors + 1):
        kept = _answered(read(source / f"{author}.jsonl"))
        if kept:
            records = _as_own(kept, source.name, job, into.name)
            into.mkdir(parents=True, exist_ok=True)
            lines = (json.dumps(r, ensure_ascii=False, separators=(",", ":")) for r in records)
            (into / f"{author}.jsonl").write_text("".join(f"{line}\n" for line in lines), "utf-8")


def _answered(records: list[Json]) -> list[Json]:
    """The records up to the end of what was said by both sides."""
    ends = [number for number, record in enumerate(records) if _settled(record)]
    return records[: ends[-1] + 1] if ends else []


def _settled(record: Json) -> bool:
    ended: bool = record["type"] == "message" and record["stop"] == "done"
    answered: bool = record["type"] == "reply"
    return ended or answered


def _as_own(kept: list[Json], source: str, job: Job, session: str) -> list[Json]:
    """A copy of records with the words that the new session begins with."""
    words = prompt("fork", of=source, goal=job.task.goal)
    first = {**kept[0], "session": session, "job": JOBS.dump_python(job, mode="json")}
    fork: Json = {"type": "fork", "wall_s": 0.0, "of": source}
    *middle, last = kept[1:]
    if last["type"] == "reply":
        told = {**last, "text": f"{last['text']}\n\n{words}".strip()}
        return [first, *middle, told, fork]
    turns = len(of(kept, "message"))
    told = {"type": "reply", "wall_s": 0.0, "to": turns, "text": words, "nearly": None}
    return [first, *middle, last, fork, told]


def changed(job: Job, goal: str | None, arm: str | None, budget: Budget) -> Job:
    """A job with another goal and another arm, where they are given, and with the speed-up that
    ends it as it is given: what the other run wanted, it may have found already."""
    task = replace(job.task, goal=goal or job.task.goal)
    return replace(
        job, task=task, arm=arm or job.arm, budget=replace(job.budget, enough=budget.enough)
    )
