"""The transcript of one author: one JSON object on a line, appended, never changed.

A run that was killed goes on from it. Its last line may be torn then, and is cut off.
"""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kernelforge_agent.conversation import Json, Reply, ToolCall, ToolOutcome, Turn

Listener = Callable[[Json], None]
HIDDEN = "[secret]"


class Journal:
    """Writes what happens down and tells a listener; reads back what happened before."""

    def __init__(
        self,
        path: Path,
        clock: Callable[[], float],
        listener: Listener,
        secrets: Sequence[str] = (),
    ) -> None:
        self.path = path
        self._clock, self._listener, self._secrets = clock, listener, secrets
        path.parent.mkdir(parents=True, exist_ok=True)
        self.records = read(path)
        _cut_off_torn(path)
        self._file = path.open("ab")

    def write(self, kind: str, **fields: Any) -> None:
        """Append a record; it is on the disk when this returns."""
        record = {"type": kind, "wall_s": round(self._clock(), 3), **fields}
        line, record = scrubbed(record, self._secrets)
        self._file.write(line.encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self.records.append(record)
        self.tell(kind, **fields)

    def tell(self, kind: str, **fields: Any) -> None:
        """Tell the listener of something that is not worth keeping."""
        event = {"type": kind, "author": self.path.stem, **fields}
        self._listener(scrubbed(event, self._secrets)[1])

    def close(self) -> None:
        """Write no more."""
        self._file.close()

    @property
    def name(self) -> str:
        """The session and the author; what a run tells a server to tell its calls apart."""
        return f"{self.path.parent.name}.{self.path.stem}"

    @property
    def own(self) -> list[Json]:
        """The records of this session, without those that it took over from another."""
        return own(self.records)

    def of(self, kind: str) -> list[Json]:
        """The records of a kind."""
        return of(self.records, kind)

    def talk(self) -> list[Turn | Reply]:
        """The conversation so far, up to the last turn that came in whole; a model that declined
        is asked again."""
        said: list[Turn | Reply] = []
        for record in self.records:
            if record["type"] == "message" and record["stop"] != "declined":
                said.append(_turn(record))
            if record["type"] == "reply":
                found = outcomes(self.records, record["to"])
                said.append(Reply(outcomes=found, text=record["text"]))
        return said


def of(records: Sequence[Json], kind: str) -> list[Json]:
    """The records of a kind."""
    return [record for record in records if record["type"] == kind]


def own(records: Sequence[Json]) -> list[Json]:
    """The records after the last fork: those before it belong to another session."""
    forks = [number for number, record in enumerate(records) if record["type"] == "fork"]
    return list(records[forks[-1] + 1 :]) if forks else list(records)


def scrubbed(document: Json, secrets: Sequence[str]) -> tuple[str, Json]:
    """A document without secrets, as a line and as it is read back."""
    line = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    for secret in secrets:
        line = line.replace(secret, HIDDEN)
    return line, json.loads(line)


def outcomes(records: Sequence[Json], turn: int) -> tuple[ToolOutcome, ...]:
    """What came of the calls of a turn, as far as is known."""
    return tuple(tool_outcome(r) for r in of(records, "tool_result") if r["turn"] == turn)


def tool_outcome(record: Json) -> ToolOutcome:
    """What came of a call, from its record."""
    return ToolOutcome(
        id=record["id"],
        tool=record["tool"],
        answer=record["answer"],
        error=record["error"],
        brief=record["brief"],
    )


def _turn(record: Json) -> Turn:
    return Turn(
        text=record["text"],
        calls=tuple(ToolCall(**call) for call in record["calls"]),
        stop=record["stop"],
        tokens=record["tokens"],
        raw=record["raw"],
        request_id=record["request_id"],
    )


def read(path: Path) -> list[Json]:
    """The records of a transcript, none where there is none; a torn last line is left out."""
    if not path.exists():
        return []
    whole, _newline, _torn = path.read_bytes().rpartition(b"\n")
    return [json.loads(line) for line in whole.splitlines()]


def _cut_off_torn(path: Path) -> None:
    if path.exists():
        whole, newline, _torn = path.read_bytes().rpartition(b"\n")
        with path.open("r+b") as file:
            file.truncate(len(whole) + len(newline))
