"""The corpus: what corpus.toml says about the sources in `bad` and `honest`, and what became of it.

A source lies at KIND/TARGET/NAME.cpp for the cpu backend, and .cu for CUDA.
"""

import fcntl
import json
import tomllib
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
SUFFIXES = {"cpu": ".cpp", "cuda": ".cu"}
KINDS = ("bad", "honest")
CAUGHT_LATE = "while timed: "
# The catalogue's rows by what is wrong; the last number of each class.
CLASSES = {
    18: "does not compute",
    30: "numbers",
    45: "memory and threads",
    57: "state and phases",
    77: "time",
    93: "build and process",
}


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One source; `expected` are the statuses that are right for it, and one that is `timed` may
    get past validation but not past a benchmark. `known` says why it is accepted all the same."""

    file: str
    kind: str
    backend: str
    target: str
    rows: tuple[int, ...] = ()
    expected: frozenset[str] = frozenset({"valid"})
    timed: bool = False
    known: str = ""

    @property
    def text(self) -> str:
        """The source."""
        return (FOLDER / self.file).read_text("utf-8")

    @property
    def fault(self) -> str:
        """The class of its first row."""
        return next(name for last, name in CLASSES.items() if self.rows[0] <= last)

    def is_right(self, result: str) -> bool:
        """Whether a result is one that it must get."""
        return result.removeprefix(CAUGHT_LATE) in self.expected


def manifest() -> dict:
    """corpus.toml."""
    return tomllib.loads((FOLDER / "corpus.toml").read_text("utf-8"))


def candidates(backend: str) -> list[Candidate]:
    """Every source of a backend, those of one target together."""
    bad = manifest()["bad"]
    found = []
    for path in sorted(FOLDER.glob(f"*/*/*{SUFFIXES[backend]}")):
        kind, target, _ = path.relative_to(FOLDER).parts
        entry = bad[f"{target}/{path.stem}"] if kind == "bad" else {}
        expected = entry.get(backend, entry.get("expect", ["valid"]))
        candidate = Candidate(
            file=str(path.relative_to(FOLDER)),
            kind=kind,
            backend=backend,
            target=target,
            rows=tuple(entry.get("rows", ())),
            expected=frozenset(expected),
            timed=entry.get("timed", False),
            known=entry.get("known", ""),
        )
        found.append(candidate)
    return sorted(found, key=lambda c: (c.target, c.kind, c.file))


def results(backend: str) -> dict[str, str]:
    """What the last run stored, by file."""
    path = _results(backend)
    text = path.read_text("utf-8") if path.is_file() else ""
    return json.loads(text) if text else {}


def store(backend: str, found: dict[str, str]) -> None:
    """Keep the results of a run, with what is known of the sources that it left out; several
    processes may each run a part."""
    known = {c.file for c in candidates(backend)}
    _results(backend).parent.mkdir(exist_ok=True)
    with _results(backend).open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        merged = {f: r for f, r in {**results(backend), **found}.items() if f in known}
        text = json.dumps(dict(sorted(merged.items())), indent=0) + "\n"
        _results(backend).write_text(text, "utf-8")


def _results(backend: str) -> Path:
    return FOLDER / "results" / f"{backend}.json"
