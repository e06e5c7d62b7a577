"""From a proposal to a verdict: parse, resolve, build, judge, file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from kernelforge_engine import codec
from kernelforge_engine.calls import Backend, Json
from kernelforge_engine.children import Children
from kernelforge_engine.errors import BadOption, MeasurementFailed, NoCompiler, StaleLease
from kernelforge_engine.exchanges import Notice, Progress, Proposal, Settings, Submission
from kernelforge_engine.fitting import Numbers
from kernelforge_engine.launch.header import SourceRejected, parse_source
from kernelforge_engine.launch.resolve import resolve
from kernelforge_engine.members import all_sizes, at_size, is_covered, judged_at, named
from kernelforge_engine.plans import LaunchPlan, ResolvedPlan, Source
from kernelforge_engine.pool.orders import JudgeOrder, SizedPlan
from kernelforge_engine.pool.protocol import Build, BuildRefused
from kernelforge_engine.records import Artifact, Node, Status, Tier, Variant, Verdict
from kernelforge_engine.store.stores import Stores
from kernelforge_engine.store.trees import Filing, is_valid

STEPS = 3
TIERS = ("quick", "full", "promotion")  # from the least thorough on


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A source with its plan resolved for one variant, built."""

    source: Source
    plan: ResolvedPlan
    artifact: Artifact


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What a source came to for a variant, and for how many seconds it held the device; there is
    no `candidate` where it was stopped before it could be run."""

    source: Source
    verdict: Verdict
    candidate: Candidate | None = None
    seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class _Refused(Exception):
    """A candidate that was stopped before it could be judged."""

    source: Source
    verdict: Verdict


class Submitter:
    """Takes proposals of one project."""

    def __init__(
        self,
        settings: Settings,
        stores: Stores,
        children: Children,
        clock: Callable[[], float],
        secret: Callable[[], str],
    ) -> None:
        self._settings, self._captures, self._trees = settings, stores.captures, stores.trees
        self._leases = stores.leases
        self._children, self._clock, self._secret = children, clock, secret

    async def submit(
        self, proposal: Proposal, archs: Mapping[str, str], notice: Notice
    ) -> Submission:
        """Judge a proposal; it ends as a node or as an attempt, both on disk before this returns.

        Raises:
            UnknownId, StaleLease, BadOption: the parent or the lease cannot be used.
        """
        variant = await self._captures.variant(proposal.variant_id)
        if failed := await self._failed_before(proposal):
            return failed
        twin = await self._trees.twin(variant.id, codec.sha256(proposal.text))
        if again := await self._again(proposal, variant, twin):
            return again
        parent_id = await self._parent(proposal)
        if twin is not None and twin.verdict is not None and _settles(twin, variant, proposal.tier):
            return await self._known(proposal, parent_id, twin, twin.verdict)
        judged = await self.judged(proposal.text, variant, proposal.tier, archs, notice)
        if twin is not None and judged.candidate is not None:
            await self._trees.file_verdict(twin.id, judged.verdict)
        return await self._filed(proposal, parent_id, judged)

    async def judged(
        self, text: str, variant: Variant, tier: Tier, archs: Mapping[str, str], notice: Notice
    ) -> Judgement:
        """Build a source and judge it; nothing is filed."""
        try:
            candidate = await self.built(text, variant, archs, notice)
        except _Refused as refused:
            return Judgement(source=refused.source, verdict=refused.verdict)
        instrumented, lacking = await self._instrumented(text, tier, variant, candidate)
        order = JudgeOrder(
            variant=variant,
            plan=candidate.plan,
            artifact=candidate.artifact,
            blobs=str(self._settings.blobs),
            secret=self._secret(),
            environment=self._settings.environment,
            others=plans_at(candidate.source, variant, judged_at(variant)),
            tier=tier,
            sanitized=instrumented,
            unsanitized=lacking,
        )
        async with self._children.turn_on_gpu(variant.call.backend, notice):
            notice(Progress(done=2, total=STEPS, text="validating"))
            judged = await self._children.judge(order)
        verdict = _audited(judged.verdict, candidate)
        notice(Progress(done=STEPS, total=STEPS, text=str(verdict.status)))
        return Judgement(
            source=candidate.source, verdict=verdict, candidate=candidate, seconds=judged.seconds
        )

    async def _parent(self, proposal: Proposal) -> str:
        now = self._clock()
        if proposal.lease_id is not None:
            lease = await self._leases.open_lease(proposal.lease_id, now)
            if lease.variant_id != proposal.variant_id:
                raise StaleLease(
                    lease=lease.id,
                    why=f"been given for {lease.variant_id}",
                    variant=proposal.variant_id,
                )
            return lease.parent_id
        root = await self._trees.root(proposal.variant_id, now)
        if proposal.parent_id is None:
            return root.id
        parent = await self._trees.node(proposal.parent_id)
        if parent.variant_id != proposal.variant_id:
            raise BadOption(
                field="parent",
                value=parent.id,
                why=f"it belongs to {parent.variant_id}",
                accepted=f"a node of {proposal.variant_id}",
            )
        return parent.id

    async def _again(
        self, proposal: Proposal, variant: Variant, twin: Node | None
    ) -> Submission | None:
        """The answer to a proposal that used its lease before: the first one may have been lost."""
        if twin is None or twin.verdict is None or proposal.lease_id is None:
            return None
        if not is_valid(twin) or not _settles(twin, variant, proposal.tier):
            return None
        if not await self._leases.is_closed_with(proposal.lease_id, twin.id):
            return None
        return Submission(verdict=twin.verdict, node=twin)

    async def _failed_before(self, proposal: Proposal) -> Submission | None:
        """The answer to a call that was made before and failed: it may not have been heard."""
        if proposal.call_key is None:
            return None
        known = await self._trees.attempt_of(
            proposal.call_key,
            proposal.variant_id,
            proposal.lease_id,
            codec.sha256(proposal.text),
        )
        if known is None:
            return None
        attempt, left = known
        return Submission(
            verdict=attempt.verdict, node=None, attempt_id=attempt.id, repairs_left=left
        )

    async def _known(
        self, proposal: Proposal, parent_id: str, twin: Node, verdict: Verdict
    ) -> Submission:
        """The answer to a source that a node holds: that node, unless it is not valid any more."""
        if not is_valid(twin):
            variant = await self._captures.variant(proposal.variant_id)
            known = Judgement(source=_unread(proposal.text, variant), verdict=verdict)
            return await self._filed(proposal, parent_id, known)
        if proposal.lease_id is not None:  # it has nothing left to do
            await self._leases.close(proposal.lease_id, twin.id, self._clock())
        return Submission(verdict=verdict, node=twin)

    async def built(
        self, text: str, variant: Variant, archs: Mapping[str, str], notice: Notice | None = None
    ) -> Candidate:
        """Parse, resolve and compile a source for a variant.

        Raises:
            _Refused: the candidate's fault; the verdict is in it.
        """
        backend = variant.call.backend
        source = _unread(text, variant)
        if notice:
            notice(Progress(done=0, total=STEPS, text="reading the launch header"))
        try:
            source = parse_source(text, backend)
            plans_at(source, variant, all_sizes(variant))  # which names the size of a fault
            plan = resolve(source.plan, variant.call)
        except SourceRejected as rejected:
            verdict = Verdict(status=Status.REJECTED_SOURCE, reason=str(rejected))
            raise _Refused(source=source, verdict=verdict) from rejected
        if notice:
            notice(Progress(done=1, total=STEPS, text="compiling"))
        reply = await self._children.build(self._order(text, backend, archs[backend], plan))
        if isinstance(reply, BuildRefused):
            verdict = Verdict(
                status=Status.COMPILE_FAILED, reason="the compiler refused it", log=reply.log
            )
            raise _Refused(source=source, verdict=verdict)
        return Candidate(source=source, plan=plan, artifact=reply.artifact)

    def _order(self, text: str, backend: Backend, arch: str, plan: ResolvedPlan) -> Build:
        return Build(
            text=text,
            backend=backend,
            arch=arch,
            launches=tuple((x.kernel, tuple(a.kind for a in x.args)) for x in plan.launches),
            folder=str(self._settings.project / "artifacts"),
        )

    async def _instrumented(
        self, text: str, tier: Tier, variant: Variant, candidate: Candidate
    ) -> tuple[Artifact | None, str]:
        """At promotion, a build of a cpu candidate that checks its own accesses, or why there is
        none."""
        backend, arch = variant.call.backend, candidate.artifact.arch
        if tier != "promotion" or backend != "cpu":
            return None, ""
        order = self._order(text, backend, arch, candidate.plan)
        try:
            reply = await self._children.build(replace(order, sanitized=True))
        except NoCompiler:
            return None, "g++ has no sanitizer libraries here"
        if isinstance(reply, BuildRefused):
            return None, "the instrumented build was refused"
        return reply.artifact, ""

    async def rebuilt(self, node: Node, variant: Variant, archs: Mapping[str, str]) -> Candidate:
        """A node's candidate; its stored artifact is used while it fits this machine.

        Raises:
            BadOption: the node is a root.
            MeasurementFailed: its source does not build here any more.
        """
        text = await self._trees.source(node.source_digest) if node.source_digest else None
        if text is None:
            raise BadOption(
                field="node",
                value=node.id,
                why="it is eager itself",
                accepted="a node with a source",
            )
        source = parse_source(text, variant.call.backend)
        stored = self._stored(node.artifact_digest, archs[variant.call.backend])
        if stored is not None:
            plan = resolve(source.plan, variant.call)
            return Candidate(source=source, plan=plan, artifact=stored)
        try:
            return await self.built(text, variant, archs)
        except _Refused as refused:
            raise MeasurementFailed(what=f"node {node.id}", why=refused.verdict.reason) from refused

    def _stored(self, digest: str | None, arch: str) -> Artifact | None:
        path = self._settings.project / "artifacts" / f"{digest}.json"
        if digest is None or not path.is_file():
            return None
        try:
            artifact: Artifact = codec.loads(Artifact, path.read_bytes())
        except ValidationError:
            return None
        artifact = Artifact(**{**vars(artifact), "path": str(path.with_name(_name(artifact)))})
        usable = Path(artifact.path).is_file() and artifact.arch == arch
        return artifact if usable else None

    async def _filed(self, proposal: Proposal, parent_id: str, judged: Judgement) -> Submission:
        verdict, candidate = judged.verdict, judged.candidate
        filing = Filing(
            variant_id=proposal.variant_id,
            parent_id=parent_id,
            lease_id=proposal.lease_id,
            source=judged.source,
            author=proposal.author,
            note=proposal.note,
            verdict=verdict,
            artifact_digest=candidate.artifact.digest if candidate else None,
            device_seconds=judged.seconds,
            at=self._clock(),
            call_key=proposal.call_key,
        )
        if verdict.status == Status.VALID:
            return Submission(verdict=verdict, node=await self._trees.file_node(filing))
        attempt_id, left = await self._trees.file_attempt(filing)
        return Submission(verdict=verdict, node=None, attempt_id=attempt_id, repairs_left=left)


def _audited(verdict: Verdict, candidate: Candidate) -> Verdict:
    """A verdict of a valid candidate with what its label rests on: the kernels that its plan
    launches, and what its build holds and needs of others."""
    if verdict.status != Status.VALID:
        return verdict
    launched = list(dict.fromkeys(launch.kernel for launch in candidate.plan.launches))
    audit: dict[str, Json] = {"launches": list(launched), **candidate.artifact.audit}
    return replace(verdict, evidence={**verdict.evidence, "audit": audit})


def _settles(twin: Node, variant: Variant, tier: Tier) -> bool:
    """Whether what is known of a node still holds: a later capture may have brought other sizes,
    and a higher tier asks for more than was looked at before."""
    if not is_valid(twin):
        return True
    known = twin.verdict.evidence.get("policy", "full") if twin.verdict else "full"
    thorough = TIERS.index(str(known)) >= TIERS.index(tier)
    return thorough and is_covered(twin.verdict, variant)


def plans_at(source: Source, variant: Variant, wanted: Sequence[Numbers]) -> tuple[SizedPlan, ...]:
    """What a source launches at sizes of a shape family.

    Raises:
        SourceRejected: an expression of its header has no value at one of them.
    """
    return tuple(_sized(source.plan, variant, values) for values in wanted)


def _sized(plan: LaunchPlan, variant: Variant, values: Numbers) -> SizedPlan:
    try:
        return SizedPlan(sizes=values, plan=resolve(plan, at_size(variant, values).call))
    except SourceRejected as rejected:
        why = f"at {named(variant, values)}: {rejected}"
        raise SourceRejected(why) from rejected


def _unread(text: str, variant: Variant) -> Source:
    """A source before its header was read, as far as it has to be kept."""
    plan = LaunchPlan(lets=(), launches=())
    return Source(text=text, backend=variant.call.backend, plan=plan, digest=codec.sha256(text))


def _name(artifact: Artifact) -> str:
    return Path(artifact.path).name
