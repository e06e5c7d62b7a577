"""From the best nodes of a project to a cast."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from anyio import to_thread

from kernelforge_engine import __version__
from kernelforge_engine.cast.manifest import Binary, Entry, Header
from kernelforge_engine.cast.merging import without_samples
from kernelforge_engine.cast.publish import Draft, save
from kernelforge_engine.cast.summary import summarize
from kernelforge_engine.codec import sha256
from kernelforge_engine.errors import BadOption, NothingToExport
from kernelforge_engine.evidence import Origin
from kernelforge_engine.exchanges import CastSummary, OptimizeReport
from kernelforge_engine.measurements import WholeModel
from kernelforge_engine.origins import origin
from kernelforge_engine.pool.orders import Probed
from kernelforge_engine.records import Node, Outcome, Timing, Variant, Verdict
from kernelforge_engine.serving import Service, counted_once, services, without_rivals
from kernelforge_engine.store.trees import is_valid
from kernelforge_engine.submission import Candidate, Submitter


class Forge(Protocol):
    """What an export needs of an engine."""

    async def report(self, capture_id: str | None = None) -> OptimizeReport: ...
    async def node(self, node_id: str) -> Node: ...
    async def variant(self, variant_id: str) -> Variant: ...


class Exporter:
    """Writes casts of one project; `at` is the time that goes into the header. A cast has a few
    values of the inputs that lie in `blobs`, and the text of regions; neither where that is None.
    """

    def __init__(
        self, forge: Forge, submitter: Submitter, machine: Probed, blobs: Path | None, at: float
    ) -> None:
        self._forge, self._submitter, self._machine, self._at = forge, submitter, machine, at
        self._blobs = blobs
        self._variants: dict[str, Variant] = {}

    async def export(
        self,
        path: Path,
        node_ids: tuple[str, ...],
        overwrite: bool,
        whole_model: WholeModel | None = None,
    ) -> CastSummary:
        """Write the named nodes, or the fastest node of every variant of the newest capture, with
        what is known of the whole model with them.

        Raises:
            NothingToExport: no node is faster than eager.
            BadOption: the path exists, a named node was not found to be valid and faster than
                eager, or two of them belong to one variant.
            NotWritten: the path cannot be written.
        """
        _may_write(path, overwrite)
        nodes = [await self._node(node_id) for node_id in node_ids or await self._fastest()]
        _one_per_variant(nodes)
        found = [one for node in nodes for one in await self._served(node)]
        if not found:
            raise NothingToExport
        counted = counted_once(without_rivals(found))
        await to_thread.run_sync(self._write, path, counted, whole_model)
        return await to_thread.run_sync(summarize, path)

    async def _fastest(self) -> tuple[str, ...]:
        report = await self._forge.report()
        found = [r.node_id for r in report.rows if r.outcome == Outcome.FASTER]
        if not found:
            raise NothingToExport
        named = tuple(node_id for node_id in found if node_id)
        kept = [n for n in named if not _only_glanced_at(await self._forge.node(n))]
        if not kept:
            raise NothingToExport
        return tuple(kept)

    async def _node(self, node_id: str) -> Node:
        node = await self._forge.node(node_id)
        worth_shipping(node)
        return node

    async def _served(self, node: Node) -> tuple[Service, ...]:
        variant = await self._forge.variant(node.variant_id)
        self._variants[node.id] = variant
        candidate = await self._submitter.rebuilt(node, variant, self._machine.archs)
        return services(node, variant, candidate)

    def _write(self, path: Path, found: Sequence[Service], whole_model: WholeModel | None) -> None:
        binaries: dict[str, bytes] = {}
        entries = [replace(_entry(one, binaries), origin=self._origin(one)) for one in found]
        if self._blobs is None:
            entries = [without_samples(entry) for entry in entries]
        names = {d.backend: d.name for d in self._machine.devices}
        header = Header(
            created_at=self._at,
            kernelforge=__version__,
            torch=self._machine.torch_version,
            device_name=names[entries[0].backend],
            whole_model=whole_model,
        )
        sources = {s.candidate.source.digest: s.candidate.source.text for s in found}
        save(path, Draft(header=header, entries=entries, sources=sources, binaries=binaries))

    def _origin(self, one: Service) -> Origin:
        variant = self._variants[one.node.id]
        return origin(one.candidate, one.call, variant, self._machine, self._blobs)


def _only_glanced_at(node: Node) -> bool:
    return node.verdict is not None and node.verdict.evidence.get("policy") == "quick"


def _entry(one: Service, binaries: dict[str, bytes]) -> Entry:
    source = one.candidate.source
    return Entry(
        node_id=one.node.id,
        call=one.call,
        backend=one.call.backend,
        source_digest=source.digest,
        plan=source.plan,
        resolved=one.plan,
        binaries=_binaries(one.candidate, binaries),
        verdict=one.verdict,
        timing=one.timing,
        label=one.node.label,
        share=one.share,
        calls=one.calls,
    )


def worth_shipping(node: Node) -> tuple[Verdict, Timing]:
    """What speaks for a node that is both valid and faster than eager; a cast holds no other.

    Raises:
        BadOption
    """
    if node.verdict is None:
        why, accepted = "it is eager itself", "a node with a source that is faster than eager"
    elif not is_valid(node):
        why = f"it is not valid any more ({node.verdict.reason})"
        accepted = "another node, or revise this one under a new lease"
    elif _only_glanced_at(node):
        why = "it was judged on the quick tier only"
        accepted = f"{node.id} after its source was evaluated again on the full tier"
    elif node.timing is None:
        why, accepted = "it has not been benchmarked", f"it after benchmarking {node.id}"
    elif node.timing.outcome == Outcome.INCONCLUSIVE:
        said = node.timing.evidence.get("why")
        why = "its benchmark found it inconclusive" + (f": {said}" if said else "")
        accepted = f"it after another benchmark finds {node.id} faster, or another node"
    elif node.timing.outcome != Outcome.FASTER:
        why = f"its benchmark found it {node.timing.outcome}"
        accepted = "a node that a benchmark found faster; its calls are best left to eager"
    else:
        return node.verdict, node.timing
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


def _one_per_variant(nodes: Sequence[Node]) -> None:
    seen: dict[str, str] = {}
    for node in nodes:
        other = seen.setdefault(node.variant_id, node.id)
        if other != node.id:
            raise BadOption(
                field="node",
                value=node.id,
                why=f"{other} serves variant {node.variant_id} already",
                accepted="one node per variant",
            )
