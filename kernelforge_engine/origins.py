"""How a node came about, put together from what is on disk."""

from pathlib import Path

from kernelforge_engine import __version__
from kernelforge_engine.calls import Backend, Call
from kernelforge_engine.evidence import Bundle, Machine, Origin
from kernelforge_engine.pool.orders import Probed
from kernelforge_engine.records import Node, Variant
from kernelforge_engine.store.samples import sample
from kernelforge_engine.submission import Candidate


def origin(
    candidate: Candidate, call: Call, variant: Variant, machine: Probed, blobs: Path | None
) -> Origin:
    """What made a candidate, with values of the inputs of one call of its variant, or without any
    where `blobs` is None."""
    artifact = candidate.artifact
    found = [sample(blobs, name) for name in _example(call, variant)] if blobs else []
    return Origin(
        artifact_digest=artifact.digest,
        compiler=artifact.made_by or artifact.compiler,
        machine=here(machine, artifact.backend, artifact.arch),
        samples=tuple(s for s in found if s) if all(found) else (),
        parameters=variant.parameters,
    )


def here(machine: Probed, backend: Backend, arch: str) -> Machine:
    """This machine, as evidence names it."""
    names = {d.backend: d.name for d in machine.devices}
    return Machine(
        device_name=names[backend],
        arch=arch,
        torch=machine.torch_version,
        kernelforge=__version__,
    )


def bundle(
    node: Node, candidate: Candidate, variant: Variant, machine: Probed, blobs: Path
) -> Bundle | None:
    """The evidence of a node; eager itself has none."""
    if node.verdict is None or node.source_digest is None:
        return None
    return Bundle(
        node_id=node.id,
        operator=variant.call.name,
        source_digest=node.source_digest,
        plan=candidate.plan,
        verdict=node.verdict,
        timing=node.timing,
        origin=origin(candidate, variant.call, variant, machine, blobs),
    )


def _example(call: Call, variant: Variant) -> tuple[str, ...]:
    """The blobs of an example of a call, which may be that of a member of a family."""
    members = variant.family.members if variant.family else ()
    own = next((m.examples for m in members if m.call == call), variant.examples)
    return own[0] if own else ()
