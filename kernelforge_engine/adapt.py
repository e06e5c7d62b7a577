"""A cast for this machine from one made elsewhere: what held here, and on what evidence."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kernelforge_engine import __version__
from kernelforge_engine.cast.contents import Binary, CastFile, Entry, Header
from kernelforge_engine.cast.publish import Draft, save, texts
from kernelforge_engine.cast.summary import summarize
from kernelforge_engine.codec import sha256
from kernelforge_engine.evidence import Machine, Origin
from kernelforge_engine.exchanges import CastSummary
from kernelforge_engine.pool.orders import Probed
from kernelforge_engine.records import Artifact, Outcome, Verdict
from kernelforge_engine.rerun import Rerun, Trial, captured, parameters


@dataclass(frozen=True, kw_only=True)
class Adapted:
    """What became of every entry of a cast here, and the cast of those that were kept; None where
    none was."""

    rows: tuple[Rerun, ...]
    cast: CastSummary | None


def is_kept(row: Rerun) -> bool:
    """Whether a kernel is valid and faster than eager here: a cast holds no other."""
    return row.holds and row.now is not None and row.now.outcome == Outcome.FASTER


def adapted(
    cast: CastFile, trials: Sequence[Trial], machine: Probed, output: Path, at: float
) -> Adapted:
    """Write what held into a cast with the code and the evidence of this machine only.

    Raises:
        NotWritten, CastRejected
    """
    images: dict[str, bytes] = {}
    entries = [made for trial in trials if (made := _entry(trial, machine, images))]
    rows = tuple(trial.row for trial in trials)
    if not entries:
        return Adapted(rows=rows, cast=None)
    names = dict.fromkeys(o.machine.device_name for e in entries for o in e.origins)
    header = Header(
        created_at=at,
        kernelforge=__version__,
        torch=machine.torch_version,
        device_name=", ".join(names),
        made_by="adapt",
        made_from=(cast.sha256,),
    )
    draft = Draft(header=header, entries=entries, sources=texts(cast), binaries=images)
    save(output, draft)
    return Adapted(rows=rows, cast=summarize(output))


def _entry(trial: Trial, machine: Probed, images: dict[str, bytes]) -> Entry | None:
    row, artifact = trial.row, trial.artifact
    if not is_kept(row) or artifact is None or row.verdict is None:
        return None
    entry = trial.entry
    names = {d.backend: d.name for d in machine.devices}
    return replace(
        entry,
        binaries=_binaries(artifact, trial.image, images),
        verdict=_said(row.verdict, row),
        timing=row.now,
        origin=Origin(
            artifact_digest=artifact.digest,
            compiler=artifact.made_by or artifact.compiler,
            machine=Machine(
                device_name=names[entry.backend],
                arch=artifact.arch,
                torch=machine.torch_version,
                kernelforge=__version__,
            ),
            samples=captured(entry),
            parameters=parameters(entry),
        ),
        elsewhere=(),
    )


def _said(verdict: Verdict, row: Rerun) -> Verdict:
    """The verdict, which says so where its inputs resembled none that were captured."""
    if row.inputs == "captured":
        return verdict
    return replace(verdict, evidence={**verdict.evidence, "inputs": "normal, none was captured"})


def _binaries(
    artifact: Artifact, image: bytes | None, images: dict[str, bytes]
) -> tuple[Binary, ...]:
    if image is None:
        return ()
    digest = sha256(image)
    images[digest] = image
    return (
        Binary(
            arch=artifact.arch,
            digest=digest,
            symbols=dict(artifact.symbols),
            compiler=artifact.compiler,
        ),
    )
