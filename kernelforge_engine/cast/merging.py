"""Several casts as one: the entries of all of them, each call served by one kernel."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kernelforge_engine import __version__
from kernelforge_engine.calls import Call
from kernelforge_engine.cast.contents import CastFile, Entry, Header
from kernelforge_engine.cast.publish import Draft, images, texts
from kernelforge_engine.errors import BadOption, CastsConflict
from kernelforge_engine.evidence import Evidence
from kernelforge_engine.launch.describe import variant_text
from kernelforge_engine.records import Timing

SHORTEST = 8  # characters of a source's digest that tell two nodes of the same name apart


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Two kernels for one call, of which the first was kept."""

    operator: str
    variant: str
    kept: str
    kept_of: str
    dropped: str
    dropped_of: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Merged:
    """What became of several casts."""

    draft: Draft
    choices: tuple[Choice, ...]


@dataclass(frozen=True, kw_only=True)
class _Claim:
    """An entry and the cast it is of; its evidence has the machine that it was found on."""

    cast: CastFile
    entry: Entry

    @property
    def timings(self) -> dict[tuple[str, str], Timing]:
        """What it came to, by device and torch: only on the same two can kernels be compared."""
        found = self.cast.evidence(self.entry)
        machines = [(e.origin.machine, e.timing) for e in found]
        return {(m.device_name, m.torch): timing for m, timing in machines if timing}


def merge(casts: Sequence[CastFile], *, prefer: Path | None = None, samples: bool = True) -> Merged:
    """Put the entries of casts into one, in their order.

    The same kernel for the same call becomes one entry with the binaries and the evidence of all.
    Of two kernels for one call, that of `prefer` is kept; without it the one with the larger lower
    bound, if both were timed on the same devices with the same torch and it is larger on each.
    `samples` is whether values of the inputs, and the text of regions, are kept.

    Raises:
        CastsConflict: two kernels for one call that nothing decides between.
        BadOption: `prefer` is none of the casts.
    """
    if prefer is not None and prefer not in [cast.path for cast in casts]:
        accepted = " or ".join(str(cast.path) for cast in casts)
        why = "it is none of the casts that are merged"
        raise BadOption(field="prefer", value=str(prefer), why=why, accepted=accepted)
    kept: dict[object, _Claim] = {}
    choices: list[Choice] = []
    for cast in casts:
        for entry in cast.entries:
            claim = _Claim(cast=cast, entry=_complete(cast, entry))
            kept[entry.serves] = _settled(kept.get(entry.serves), claim, prefer, choices)
    entries = list(_renamed(claim.entry for claim in kept.values()))
    if not samples:
        entries = [without_samples(entry) for entry in entries]
    return Merged(draft=_draft(casts, entries), choices=tuple(choices))


def without_samples(entry: Entry) -> Entry:
    """An entry that carries no values of its inputs, and no text of the model's own code."""
    bare = [replace(e, origin=replace(e.origin, samples=())) for e in entry.elsewhere]
    own = replace(entry.origin, samples=()) if entry.origin else None
    return replace(entry, call=_textless(entry.call), origin=own, elsewhere=tuple(bare))


def _textless(call: Call) -> Call:
    """A call without what is there for people only."""
    return replace(call, region=replace(call.region, source="")) if call.region else call


def _complete(cast: CastFile, entry: Entry) -> Entry:
    """An entry that knows its machine by itself: the header will be another one."""
    own, *_ = cast.evidence(entry)
    return replace(entry, origin=own.origin)


def _settled(
    one: _Claim | None, other: _Claim, prefer: Path | None, choices: list[Choice]
) -> _Claim:
    if one is None:
        return other
    same = one.entry.source_digest == other.entry.source_digest
    if same and _textless(one.entry.call) == _textless(other.entry.call):
        return replace(one, entry=_joined(one, other))
    kept, why = _preferred(one, other, prefer)
    dropped = other if kept is one else one
    choices.append(
        Choice(
            operator=kept.entry.call.name,
            variant=variant_text(kept.entry.call),
            kept=kept.entry.node_id,
            kept_of=str(kept.cast.path),
            dropped=dropped.entry.node_id,
            dropped_of=str(dropped.cast.path),
            why=why,
        )
    )
    return kept


def _joined(one: _Claim, other: _Claim) -> Entry:
    """One kernel found twice: what speaks for it on the machines of both, each of them once."""
    own = {binary.arch: binary for binary in one.entry.binaries}
    theirs = {binary.arch: binary for binary in other.entry.binaries}
    found = list(one.cast.evidence(one.entry))
    known = {_place(evidence) for evidence in found}
    for evidence in other.cast.evidence(other.entry):
        arch = evidence.origin.machine.arch
        alike = own.get(arch) in (None, theirs.get(arch))  # else it speaks for other code
        if alike and _place(evidence) not in known:
            found.append(evidence)
    judged = {evidence.origin.machine.arch for evidence in found}
    added = [b for arch, b in theirs.items() if arch not in own and arch in judged]
    return replace(one.entry, binaries=(*one.entry.binaries, *added), elsewhere=tuple(found[1:]))


def _place(evidence: Evidence) -> tuple[str, str]:
    return evidence.origin.machine.device_name, evidence.origin.machine.arch


def _preferred(one: _Claim, other: _Claim, prefer: Path | None) -> tuple[_Claim, str]:
    """The kernel to keep of two for one call, and why.

    Raises:
        CastsConflict
    """
    for claim in (one, other):
        if prefer is not None and claim.cast.path == prefer:
            return claim, "preferred"
    here, there = one.timings, other.timings
    if not here or set(here) != set(there):
        raise _conflict(one, other, "they were not timed on the same device with the same torch")
    if all(here[place].low >= there[place].low for place in here):
        return one, _figures(here, there)
    if all(there[place].low >= here[place].low for place in here):
        return other, _figures(there, here)
    raise _conflict(one, other, "each is faster on another device")


def _figures(
    kept: Mapping[tuple[str, str], Timing], dropped: Mapping[tuple[str, str], Timing]
) -> str:
    return "; ".join(
        f"at least {kept[place].low:.2f}x against {dropped[place].low:.2f}x on {place[0]}"
        for place in kept
    )


def _conflict(one: _Claim, other: _Claim, why: str) -> CastsConflict:
    call = f"{one.entry.call.name} ({variant_text(one.entry.call)})"
    return CastsConflict(first=one.cast.path, second=other.cast.path, call=call, why=why)


def _renamed(entries: Iterable[Entry]) -> Iterable[Entry]:
    """Node ids are of one project: in another the same id is another kernel's."""
    taken: dict[str, str] = {}
    for entry in entries:
        digest, length, name = entry.source_digest, SHORTEST, entry.node_id
        while taken.setdefault(name, digest) != digest:
            name, length = f"{entry.node_id}-{digest[:length]}", length + 1
        yield replace(entry, node_id=name)


def _draft(casts: Sequence[CastFile], entries: Sequence[Entry]) -> Draft:
    headers = [cast.header for cast in casts]
    header = Header(
        created_at=max(header.created_at for header in headers),
        kernelforge=__version__,
        torch=_listed(header.torch for header in headers),
        device_name=_listed(header.device_name for header in headers),
        made_by="merge",
        made_from=tuple(cast.sha256 for cast in casts),
    )
    sources: dict[str, str] = {}
    binaries: dict[str, bytes] = {}
    for cast in casts:
        sources |= texts(cast)
        binaries |= images(cast)
    return Draft(header=header, entries=entries, sources=sources, binaries=binaries)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))
