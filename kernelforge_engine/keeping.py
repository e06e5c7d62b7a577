"""What a project gives to the user's library of accepted kernels, and what that offers it."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from anyio import to_thread

from kernelforge_engine import evidence
from kernelforge_engine.calls import Backend, Call
from kernelforge_engine.cast.contents import CastFile, Entry
from kernelforge_engine.codec import sha256
from kernelforge_engine.errors import (
    BadOption,
    KernelForgeError,
    LibraryUnusable,
    NoDevice,
    NoLibrary,
    NothingToKeep,
)
from kernelforge_engine.exchanges import Kept, Settings
from kernelforge_engine.export import worth_shipping
from kernelforge_engine.launch.describe import variant_text
from kernelforge_engine.library import catalog
from kernelforge_engine.library.accepted import Accepted, bare, best_first, kin
from kernelforge_engine.library.catalog import Offer
from kernelforge_engine.library.folder import SHOWN, LibraryFolder
from kernelforge_engine.library.likeness import serves
from kernelforge_engine.machine import Machine
from kernelforge_engine.members import all_sizes, at_size
from kernelforge_engine.origins import here
from kernelforge_engine.records import Capture, Outcome, Variant
from kernelforge_engine.store.stores import Stores

MOST_OFFERED = 4
log = logging.getLogger(__name__)


class Keeper:
    """Keeps kernels of one project for others, and finds those of others for it."""

    def __init__(
        self,
        settings: Settings,
        stores: Stores,
        machine: Machine,
        clock: Callable[[], float],
        redact: Callable[[str], str],
    ) -> None:
        self._machine = machine
        self._folder = LibraryFolder(settings.library) if settings.library else None
        self._project = redact(str(settings.project))
        self._captures, self._trees, self._clock = stores.captures, stores.trees, clock

    async def offers(self, variant_id: str) -> tuple[Offer, ...]:
        """Sources that match a variant: the best of the user's own that are not in its tree yet,
        then the built-in library's."""
        variant = await self._captures.variant(variant_id)
        if not variant.target:
            return ()
        built_in = catalog.offers(variant.call)
        known = {sha256(offer.text) for offer in built_in}
        known |= {node.source_digest or "" for node in await self._trees.nodes(variant_id)}
        known |= {attempt.source_digest for attempt in await self._trees.attempts(variant_id)}
        own = [k for k in await self._matching(variant) if sha256(k.text) not in known]
        return (*map(_offer, own[:MOST_OFFERED]), *built_in)

    async def add(self, node_id: str) -> Accepted:
        """Keep a node.

        Raises:
            NoLibrary, LibraryFull, LibraryUnusable, UnknownId
            NoDevice: this machine has no device of its kind.
            BadOption: it was not found to be valid and faster than eager, its model was captured on
                another device, or the built-in library has the same kernel for the same call.
        """
        if self._folder is None:
            raise NoLibrary
        kernel = await self._accepted(node_id)
        if _is_built_in(kernel):
            raise BadOption(
                field="node",
                value=node_id,
                why="it is a kernel of the built-in library, which offers it everywhere",
                accepted="a node that an agent or you wrote",
            )
        await to_thread.run_sync(self._folder.add, kernel)
        return kernel

    async def exported(self, node_ids: Sequence[str]) -> Kept | None:
        """Keep what went into a cast; an export does not fail because that cannot be done."""
        if self._folder is None:
            return None
        ids, refused = [], ""
        for node_id in dict.fromkeys(node_ids):
            try:
                kernel = await self._accepted(node_id)
                if not _is_built_in(kernel):
                    await to_thread.run_sync(self._folder.add, kernel)
                    ids.append(kernel.id)
            except KernelForgeError as error:
                refused = str(error)
        return Kept(ids=tuple(ids), refused=refused)

    async def _accepted(self, node_id: str) -> Accepted:
        node = await self._trees.node(node_id)
        verdict, timing = worth_shipping(node)
        variant = await self._captures.variant(node.variant_id)
        machine = await self._here(variant.call.backend)
        capture = await self._captured(variant)
        if capture.device_name != machine.device_name:
            raise BadOption(
                field="node",
                value=node_id,
                why=f"its model was captured on {capture.device_name}, not on this "
                f"{machine.device_name}",
                accepted="one of a model that was captured here, or a cast that was made there",
            )
        return Accepted(
            text=await self._trees.text(node.source_digest or ""),
            call=bare(variant.call),
            verdict=verdict,
            timing=timing,
            machine=replace(machine, torch=capture.torch_version),
            project=self._project,
            node_id=node.id,
            author=node.author,
            note=node.note,
            sizes=max(1, len(all_sizes(variant))),
            accepted_at=self._clock(),
        )

    async def _here(self, backend: Backend) -> evidence.Machine:
        """The machine on which this project judges its candidates."""
        machine = await self._machine.probed()
        if backend not in machine.archs:
            raise NoDevice(device=backend, why="and the kernel was judged on one")
        return here(machine, backend, machine.archs[backend])

    async def _captured(self, variant: Variant) -> Capture:
        card = await self._captures.card(variant.card_id)
        return await self._captures.get(card.capture_id)

    async def _matching(self, variant: Variant) -> list[Accepted]:
        """Kernels of the user's that may serve a variant at all its sizes, best first: those that
        were judged on this very call, on this device, and with the most certain gain."""
        if self._folder is None:
            return []
        try:
            found = await to_thread.run_sync(self._folder.of, kin(variant.call))
        except LibraryUnusable as error:
            log.warning("%s", error)
            return []
        for damaged in found.damaged:
            log.warning("%s is left out: %s", damaged.path, damaged.why)
        capture = await self._captured(variant)
        calls = [variant.call, *(at_size(variant, v).call for v in all_sizes(variant))]
        fitting = await to_thread.run_sync(lambda: [k for k in found.kernels if _serves(k, calls)])
        return best_first(fitting, variant.call, capture.device_name)


def of_cast(cast: CastFile) -> tuple[Accepted, ...]:
    """The kernels of a cast that were found faster, once each, as its exporter found them.

    Raises:
        NothingToKeep: it holds none that the built-in library does not have too.
    """
    found = [kernel for entry in cast.entries for kernel in _of_entry(cast, entry)]
    kept = [kernel for kernel in found if not _is_built_in(kernel)]
    if not kept:
        raise NothingToKeep(path=cast.path)
    return tuple(kept)


def _of_entry(cast: CastFile, entry: Entry) -> Iterator[Accepted]:
    for found in cast.evidence(entry):
        timing = found.timing
        if timing is not None and timing.outcome == Outcome.FASTER:
            yield Accepted(
                text=cast.source(entry).text,
                call=bare(entry.call),
                verdict=found.verdict,
                timing=timing,
                machine=found.origin.machine,
                project=cast.path.name,
                node_id=found.node_id,
                author="cast",
                accepted_at=cast.header.created_at,
            )


def _serves(kernel: Accepted, calls: Sequence[Call]) -> bool:
    plan = kernel.plan()
    return all(serves(plan, kernel.call, call) for call in calls)


def _is_built_in(kernel: Accepted) -> bool:
    return sha256(kernel.text) in {sha256(offer.text) for offer in catalog.offers(kernel.call)}


def _offer(kernel: Accepted) -> Offer:
    return Offer(
        name=f"own_{kernel.id[:SHOWN]}",
        backend=kernel.backend,
        idea=kernel.note or "accepted before",
        text=kernel.text,
        origin=origin_text(kernel),
    )


def origin_text(kernel: Accepted) -> str:
    """Where a kernel of the user's library comes from and what was found of it there."""
    timing, machine = kernel.timing, kernel.machine
    day = datetime.fromtimestamp(kernel.accepted_at, UTC).date().isoformat()
    return (
        f"your library: {kernel.node_id} of {kernel.project}, {timing.speedup:.2f}x "
        f"({timing.low:.2f} to {timing.high:.2f}) for {variant_text(kernel.call)} on "
        f"{machine.device_name}, torch {machine.torch}, {kernel.tier} tier, {day}"
    )
