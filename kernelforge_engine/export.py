"""From the best nodes of a project to a cast."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from anyio import to_thread

from kernelforge_engine import __version__
from kernelforge_engine.cast.manifest import Binary, Entry, Header, write
from kernelforge_engine.cast.summary import summarize
from kernelforge_engine.codec import sha256
from kernelforge_engine.errors import BadOption, NothingToExport, NotWritten
from kernelforge_engine.exchanges import CastSummary, OptimizeReport
from kernelforge_engine.pool.orders import Probed
from kernelforge_engine.records import Node, Outcome, Variant, Verdict
from kernelforge_engine.store.trees import is_valid
from kernelforge_engine.submission import Candidate, Submitter


class Forge(Protocol):
    """What an export needs of an engine."""

    async def report(self, capture_id: str | None = None) -> OptimizeReport: ...
    async def node(self, node_id: str) -> Node: ...
    async def variant(self, variant_id: str) -> Variant: ...


@dataclass(frozen=True, kw_only=True)
class _Chosen:
    node: Node
    variant: Variant
    candidate: Candidate
    verdict: Verdict


class Exporter:
    """Writes casts of one project; `at` is the time that goes into the header."""

    def __init__(self, forge: Forge, submitter: Submitter, machine: Probed, at: float) -> None:
        self._forge, self._submitter, self._machine, self._at = forge, submitter, machine, at

    async def export(self, path: Path, node_ids: tuple[str, ...], overwrite: bool) -> CastSummary:
        """Write the named nodes, or the fastest node of every variant of the newest capture.

        Raises:
            NothingToExport: no node is faster than eager.
            BadOption: the path exists, a named node was not found to be valid and faster than
                eager, or two of them belong to one variant.
            NotWritten: the path cannot be written.
        """
        _may_write(path, overwrite)
        chosen = [await self._chosen(node_id) for node_id in node_ids or await self._fastest()]
        _one_per_variant(chosen)
        await to_thread.run_sync(self._write, path, chosen)
        return await to_thread.run_sync(summarize, path)

    async def _fastest(self) -> tuple[str, ...]:
        report = await self._forge.report()
        found = [r.node_id for r in report.rows if r.outcome == Outcome.FASTER]
        if not found:
            raise NothingToExport
        return tuple(node_id for node_id in found if node_id)

    async def _chosen(self, node_id: str) -> _Chosen:
        node = await self._forge.node(node_id)
        verdict = _worth_shipping(node)
        variant = await self._forge.variant(node.variant_id)
        candidate = await self._submitter.rebuilt(node, variant, self._machine.archs)
        return _Chosen(node=node, variant=variant, candidate=candidate, verdict=verdict)

    def _write(self, path: Path, chosen: list[_Chosen]) -> None:
        binaries: dict[str, bytes] = {}
        entries = [self._entry(choice, binaries) for choice in chosen]
        backend = chosen[0].variant.call.backend
        names = {d.backend: d.name for d in self._machine.devices}
        header = Header(
            created_at=self._at,
            kernelforge=__version__,
            torch=self._machine.torch_version,
            device_name=names[backend],
        )
        sources = {c.candidate.source.digest: c.candidate.source.text for c in chosen}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write(path, header, entries, sources=sources, binaries=binaries)
        except OSError as error:
            step = "free space there, or choose another path"
            raise NotWritten(what="The cast", path=path, why=error.strerror, step=step) from error

    def _entry(self, choice: _Chosen, binaries: dict[str, bytes]) -> Entry:
        variant, candidate = choice.variant, choice.candidate
        return Entry(
            node_id=choice.node.id,
            call=variant.call,
            backend=variant.call.backend,
            source_digest=candidate.source.digest,
            plan=candidate.source.plan,
            resolved=candidate.plan,
            binaries=_binaries(candidate, binaries),
            verdict=choice.verdict,
            timing=choice.node.timing,
            label=choice.node.label,
            share=variant.share,
            calls=variant.calls,
        )


def _worth_shipping(node: Node) -> Verdict:
    """The verdict of a node that is valid and faster than eager; a cast holds no other."""
    if node.verdict is None:
        why, accepted = "it is eager itself", "a node with a source that is faster than eager"
    elif not is_valid(node):
        why = f"it is not valid any more ({node.verdict.reason})"
        accepted = "another node, or revise this one under a new lease"
    elif node.timing is None:
        why, accepted = "it has not been benchmarked", f"it after benchmarking {node.id}"
    elif node.timing.outcome != Outcome.FASTER:
        why = f"its benchmark found it {node.timing.outcome}"
        accepted = "a node that a benchmark found faster; its calls are best left to eager"
    else:
        return node.verdict
    raise BadOption(field="node", value=node.id, why=why, accepted=accepted)


def _binaries(candidate: Candidate, found: dict[str, bytes]) -> tuple[Binary, ...]:
    """The cubin of a CUDA candidate; native host code is never packaged."""
    artifact = candidate.artifact
    if artifact.backend == "cpu":
        return ()
    image = Path(artifact.path).read_bytes()
    digest = sha256(image)
    found[digest] = image
    symbols: Mapping[str, str] = artifact.symbols
    return (
        Binary(
            arch=artifact.arch, digest=digest, symbols=dict(symbols), compiler=artifact.compiler
        ),
    )


def _may_write(path: Path, overwrite: bool) -> None:
    # Unlike Path.exists(), this answers for a name that no file can have: writing it will say so.
    if os.path.lexists(path) and not overwrite:
        raise BadOption(
            field="path",
            value=str(path),
            why="it exists",
            accepted="another path, or allow overwrite",
        )


def _one_per_variant(chosen: list[_Chosen]) -> None:
    seen: dict[str, str] = {}
    for choice in chosen:
        other = seen.setdefault(choice.variant.id, choice.node.id)
        if other != choice.node.id:
            raise BadOption(
                field="node",
                value=choice.node.id,
                why=f"{other} serves variant {choice.variant.id} already",
                accepted="one node per variant",
            )
