"""What makes a cast consistent: each of its entries follows from its source and its call."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kernelforge_engine import codec, limits
from kernelforge_engine.calls import Argument, Backend, Call
from kernelforge_engine.cast import archive
from kernelforge_engine.cast.contents import Entry, Header
from kernelforge_engine.cast.words import NotAnArgument, call_words
from kernelforge_engine.errors import CastRejected
from kernelforge_engine.launch.header import SourceRejected, parse_source
from kernelforge_engine.launch.resolve import resolve
from kernelforge_engine.records import Status

HEADER = archive.FIRST
MANIFEST = "manifest.json"
REGION = "region::"
OPERATOR = re.compile(r"[A-Za-z0-9_]+::[A-Za-z0-9_]+")
ARCH = re.compile(r"sm_[0-9]{2,3}[af]?")
MAX_KERNELS = 4096  # entries of a manifest: each takes time to check


class _Inconsistent(Exception):
    """Why a manifest is not believed."""

    def __init__(self, *, why: str) -> None:
        super().__init__(why)


def check(path: Path, header: Header, entries: Sequence[Entry], files: Mapping[str, bytes]) -> None:
    """Derive again what was stored, and compare; `files` are the archive entries but the signature.

    Raises:
        CastRejected: with what does not fit.
    """
    try:
        _check_names(header, entries)
        _check_claims(entries)
        for entry in entries:
            _check_entry(entry, files)
        _check_extra(entries, files)
    except _Inconsistent as error:
        raise CastRejected(path=path, why=str(error), step=archive.AGAIN) from error


def _check_names(header: Header, entries: Sequence[Entry]) -> None:
    """A name goes to terminals and logs: it holds no control character."""
    if not 0 <= header.created_at < limits.YEAR_9999:
        raise _Inconsistent(why="it was made at a time that no calendar has")
    if len(entries) > MAX_KERNELS:
        raise _Inconsistent(why=f"it has {len(entries)} entries; {MAX_KERNELS} are allowed")
    names = [header.kernelforge, header.torch, header.device_name, *header.made_from]
    for entry in entries:
        names += [entry.node_id, entry.call.overload, *(a.name for a in entry.call.arguments)]
        for origin in entry.origins:
            machine = origin.machine
            names += [machine.device_name, machine.arch, machine.torch, machine.kernelforge]
    if strange := [name for name in names if not name.isprintable()]:
        raise _Inconsistent(why=f"the name {strange[0]!r} in it is not allowed")


def _check_claims(entries: Sequence[Entry]) -> None:
    if len({entry.serves for entry in entries}) < len(entries):
        raise _Inconsistent(why="two of its entries claim the same call")
    if len({(e.node_id, e.source_digest) for e in entries}) > len({e.node_id for e in entries}):
        raise _Inconsistent(why="entries with the same node id have different sources")


def _check_extra(entries: Sequence[Entry], files: Mapping[str, bytes]) -> None:
    named = {HEADER, MANIFEST, *(name for e in entries for name in _files_of(e))}
    if extra := set(files) - named:
        raise _Inconsistent(why=f"no entry names {min(extra)}")


def _files_of(entry: Entry) -> Iterator[str]:
    yield entry.file
    yield from (binary.file for binary in entry.binaries)


def _check_entry(entry: Entry, files: Mapping[str, bytes]) -> None:
    where, call = f"entry {entry.node_id}", entry.call
    if missing := [name for name in _files_of(entry) if name not in files]:
        raise _Inconsistent(why=f"{where} names {missing[0]}, which is not in the archive")
    verdicts = [entry.verdict, *(e.verdict for e in entry.elsewhere)]
    if any(verdict.status != Status.VALID for verdict in verdicts):
        raise _Inconsistent(why=f"{where} was not found valid")
    _check_call(where, call, entry.backend)
    _check_plan(where, entry, files[entry.file])
    _check_binaries(where, entry, files)


def _check_binaries(where: str, entry: Entry, files: Mapping[str, bytes]) -> None:
    """Each is what it says, and was judged on a machine of its arch as far as those are known."""
    archs = [binary.arch for binary in entry.binaries]
    judged = {origin.machine.arch for origin in entry.origins}
    told = judged or len(archs) > 1
    if len(set(archs)) < len(archs) or (told and not judged.issuperset(archs)):
        raise _Inconsistent(why=f"{where} has binaries that nothing was found about")
    kernels = {launch.kernel for launch in entry.resolved.launches}
    for binary in entry.binaries:
        if codec.sha256(files[binary.file]) != binary.digest or not ARCH.fullmatch(binary.arch):
            raise _Inconsistent(why=f"{binary.file} is not what {where} says")
        if entry.backend != "cuda" or set(binary.symbols) != kernels:
            raise _Inconsistent(why=f"{binary.file} does not hold the kernels of {where}")


def _check_call(where: str, call: Call, backend: Backend) -> None:
    try:
        words = call_words(call)
    except NotAnArgument as error:
        raise _Inconsistent(why=f"{where} has an argument that cannot be read") from error
    if words != call.words or not OPERATOR.fullmatch(call.operator) or call.backend != backend:
        raise _Inconsistent(why=f"the guard words of {where} do not fit its arguments")
    if not _is_sound_region(call):
        raise _Inconsistent(why=f"the program of {where} is not the one its arguments name")
    aliases = [output.alias for output in call.outputs if output.alias is not None]
    inputs = range(len(call.inputs))
    if not set(aliases) <= set(call.mutated) <= set(inputs) or not call.outputs:
        raise _Inconsistent(why=f"{where} returns or writes an argument it does not have")


def _is_sound_region(call: Call) -> bool:
    """Whether a region's last argument names its program, which returns fresh tensors; an operator
    has no program."""
    region = call.region
    if region is None:
        return not call.operator.startswith(REGION)
    returned = [number for number in region.returns if number >= 0]
    fresh = not call.mutated and all(output.alias is None for output in call.outputs)
    named = call.arguments[-1:] == (Argument(name="program", value=region.digest),)
    return (
        call.operator.startswith(REGION) and fresh and named and len(returned) == len(call.outputs)
    )


def _check_plan(where: str, entry: Entry, text: bytes) -> None:
    try:
        source = parse_source(text.decode(), entry.backend)
        resolved = resolve(source.plan, entry.call)
    except (SourceRejected, UnicodeDecodeError, KeyError) as error:
        raise _Inconsistent(why=f"the source of {where} is refused ({error})") from error
    if source.digest != entry.source_digest:
        raise _Inconsistent(why=f"the source of {where} has another digest")
    if source.plan != entry.plan or resolved != entry.resolved:
        raise _Inconsistent(why=f"the plan of {where} is not the one of its source")
