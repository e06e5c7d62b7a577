"""The engine: the one object that the tools and the command line hold."""

import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from kernelforge_engine import __version__, codec
from kernelforge_engine.accounts import Accounts
from kernelforge_engine.adapt import Adapted, adapted
from kernelforge_engine.benchmarking import Benchmarker
from kernelforge_engine.cast import read as read_cast
from kernelforge_engine.cast.keys import Trusted
from kernelforge_engine.cast.summary import summarize
from kernelforge_engine.children import Children
from kernelforge_engine.evidence import Bundle
from kernelforge_engine.exchanges import (
    Attempt,
    CaptureRequest,
    CastSummary,
    Collected,
    EngineStatus,
    MeasureRequest,
    Notice,
    OptimizeReport,
    Proposal,
    Removed,
    Settings,
    Submission,
)
from kernelforge_engine.export import Exporter
from kernelforge_engine.jobs import JobRunner
from kernelforge_engine.keeping import Keeper
from kernelforge_engine.library.catalog import Offer
from kernelforge_engine.machine import Machine, load_per_thread
from kernelforge_engine.measurements import Check, Measurement
from kernelforge_engine.model_checks import ModelChecks, model_order, must_exist, remembered
from kernelforge_engine.optimize import Optimizer
from kernelforge_engine.origins import bundle
from kernelforge_engine.planning import Planner
from kernelforge_engine.pool.orders import CaptureOrder
from kernelforge_engine.prices import Prices
from kernelforge_engine.profiles import Profile
from kernelforge_engine.profiling import Profiler
from kernelforge_engine.records import Capture, Card, Node, Variant
from kernelforge_engine.redaction import Redactor
from kernelforge_engine.replaying import Replayer
from kernelforge_engine.reporting import Reporter
from kernelforge_engine.rerun import Rerun, Rerunner
from kernelforge_engine.search.policy import DEFAULT
from kernelforge_engine.selecting import REPAIRS, Selection, Selector, Wish
from kernelforge_engine.store.casts import Casts
from kernelforge_engine.store.database import Database
from kernelforge_engine.store.jobs import Jobs
from kernelforge_engine.store.profiles import Profiles
from kernelforge_engine.store.removal import Removal
from kernelforge_engine.store.replays import Replays
from kernelforge_engine.store.stores import Stores
from kernelforge_engine.store.trees import Best
from kernelforge_engine.store.usage import UsageBook
from kernelforge_engine.submission import Submitter

SECRET_BYTES = 32


class Engine:
    """Captures, selects, judges, times, exports; every method may raise KernelForgeError.

    Notices may be called from another thread. `jobs` runs such work without a caller who waits.
    """

    def __init__(
        self,
        settings: Settings,
        database: Database,
        tasks: TaskGroup,
        prices: Prices,
        clock: Callable[[], float] = time.time,
        secret: Callable[[], str] = lambda: secrets.token_hex(SECRET_BYTES),
    ) -> None:
        self._settings, self._clock, self._secret = settings, clock, secret
        self._database = database
        stores = Stores.of(database)
        self._captures, self._trees, self._leases = stores.captures, stores.trees, stores.leases
        self.accounts = Accounts(UsageBook(database), prices, clock)
        self._removal = Removal(database, settings.blobs)
        self._children = Children(settings.environment, settings.cache)
        self._casts = Casts(database)
        self._checks = ModelChecks(
            children=self._children,
            captures=self._captures,
            trees=self._trees,
            casts=self._casts,
            cache=settings.cache,
            clock=clock,
        )
        self.redact = Redactor(settings.secrets, settings.home)
        self.jobs = JobRunner(Jobs(database), tasks, clock, self.redact)
        self._submitter = Submitter(settings, stores, self._children, clock, secret)
        self.selector, self.planner = Selector(settings, stores, clock), Planner(stores)
        self.reporter = Reporter(stores, self._casts, self.accounts, self.planner)
        self._benchmarker = Benchmarker(settings, stores, self._children, self._submitter, secret)
        self._profiler = Profiler(
            settings, stores, Profiles(database), self._children, self._submitter, clock
        )
        self._machine = Machine(self._children, strict=settings.require_sandbox)
        self.keeper = Keeper(settings, stores, self._machine, clock, self.redact)
        self.replayer = Replayer(
            stores, Replays(database), self._submitter, self._benchmarker, self._machine, clock
        )

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings) -> AsyncIterator["Engine"]:
        """The engine of one project folder, resumed from its database.

        Raises:
            StoreUnavailable, SchemaTooNew
            BadOption: the user's price table is none.
        """
        project = settings.project.absolute()
        settings = replace(settings, project=project, cache=settings.cache.absolute())
        prices = Prices.read(settings.prices)
        failure: Exception | None = None
        async with (
            Database.open(project, settings.quota_bytes) as database,
            anyio.create_task_group() as tasks,
        ):
            engine = cls(settings, database, tasks, prices)
            await engine.jobs.resume()
            try:
                yield engine
            except Exception as error:  # noqa: BLE001  raised again, below
                failure = error
            finally:
                tasks.cancel_scope.cancel()
                engine._children.close()
        # Out here, since a task group would wrap the caller's error into a group.
        if failure is not None:
            raise failure

    async def capture(self, request: CaptureRequest, notice: Notice) -> Capture:
        """Run a model once on its example inputs in a child of its own and file what it ran."""
        load = load_per_thread()
        captured = await self._children.capture(
            CaptureOrder(
                model=model_order(request),
                blobs=str(self._settings.blobs),
                cache=str(self._settings.cache),
                max_bytes=request.max_bytes or self._settings.max_bytes,
                examples_per_variant=request.examples_per_variant,
                quota_bytes=self._settings.quota_bytes,
                room_bytes=await self._database.room("another capture"),
            ),
            notice,
        )
        record = replace(remembered(captured.capture, request, self._clock()), load_per_thread=load)
        if record.error is not None:
            record = replace(record, error=self.redact(record.error))
        return await self._captures.add(record, captured.sightings)

    async def captures(self) -> tuple[Capture, ...]:
        """Every capture, newest first."""
        return await self._captures.all()

    async def delete_capture(self, capture_id: str, *, force: bool = False) -> Removed:
        """Remove a capture, what only it saw, and the example tensors that nothing names any more.

        Raises:
            CaptureHoldsWork: nodes would go with it, and `force` does not say that they may.
        """
        removed = await self._removal.capture(capture_id, force=force)
        return replace(removed, collected=await self.collect_blobs())

    async def collect_blobs(self) -> Collected:
        """Remove example tensors that no capture names, as one that was killed leaves them."""
        return await self._removal.collect(self._clock())

    async def stored_bytes(self) -> int:
        """What the example tensors of all captures take."""
        return await self._removal.stored_bytes()

    async def capture_of(self, capture_id: str | None) -> Capture:
        """A capture, or the newest one."""
        return await self._captures.get(capture_id)

    async def cards(self, capture_id: str | None = None) -> tuple[Card, ...]:
        """The cards of a capture (the newest by default), by share."""
        return await self._captures.cards((await self._captures.get(capture_id)).id)

    async def card(self, card_id: str) -> Card:
        """One card with its variants."""
        return await self._captures.card(card_id)

    async def variant(self, variant_id: str) -> Variant:
        """One variant."""
        return await self._captures.variant(variant_id)

    async def offers(self, variant_id: str) -> tuple[Offer, ...]:
        """Library sources that match a variant, the user's own first, each best first."""
        return await self.keeper.offers(variant_id)

    async def select(
        self,
        variant_id: str,
        *,
        holder: str,
        policy: str = DEFAULT,
        max_repairs: int = REPAIRS,
        call_key: str | None = None,
    ) -> Selection:
        """Choose the node to revise and lease it."""
        wish = Wish(holder=holder, policy=policy, max_repairs=max_repairs, call_key=call_key)
        return await self.selector.select(variant_id, wish)

    async def submit(self, proposal: Proposal, notice: Notice) -> Submission:
        """Build and judge a candidate; a valid one becomes a node."""
        await self.selector.target(proposal.variant_id)
        await self._database.room("another candidate")
        archs = (await self._machine.trusted()).archs
        return await self._submitter.submit(proposal, archs, notice)

    async def benchmark(self, node_id: str, notice: Notice) -> Node:
        """Time a node against eager and back the result up its tree.

        Raises:
            BadOption: it is eager itself.
            NodeInvalid: its output is not right any more, which is on record from then on.
            MeasurementFailed: it could not be run.
        """
        return await self._benchmarker.benchmark(node_id, await self._machine.trusted(), notice)

    async def profile(self, node_id: str, *, refresh: bool, notice: Notice) -> Profile:
        """The digest of what a node's kernels do on the device; the one on record unless `refresh`.

        Raises:
            BadOption: it is eager itself.
            NodeInvalid, NotProfiled, MeasurementFailed: it cannot be profiled.
        """
        machine = await self._machine.trusted()
        return await self._profiler.profile(node_id, machine, refresh=refresh, notice=notice)

    async def known_profile(self, node_id: str) -> Profile | None:
        """The profile of a node that was made last, if there is one."""
        return await self._profiler.latest(node_id)

    async def node(self, node_id: str) -> Node:
        """One node."""
        return await self._trees.node(node_id)

    async def source(self, digest: str) -> str:
        """The text of a candidate."""
        return await self._trees.text(digest)

    async def tree(self, variant_id: str) -> tuple[Node, ...]:
        """Every node of a variant, parents before children."""
        await self._captures.variant(variant_id)
        await self._trees.root(variant_id, self._clock())
        return await self._trees.nodes(variant_id)

    async def twin(self, variant_id: str, text: str) -> Node | None:
        """The node of a variant that holds this very source."""
        return await self._trees.twin(variant_id, codec.sha256(text))

    async def line(self, node_id: str) -> tuple[Node, ...]:
        """A node and what it was made from, eager itself first."""
        return await self._trees.line(node_id)

    async def best(self, capture_id: str) -> dict[str, Best]:
        """The best node of every target of a capture, by variant."""
        return await self._trees.best(capture_id)

    async def attempts(self, variant_id: str) -> tuple[Attempt, ...]:
        """The proposals for a variant that did not become nodes, newest first."""
        return await self._trees.attempts(variant_id)

    async def optimize(
        self, capture_id: str | None, *, budget: int, notice: Notice
    ) -> OptimizeReport:
        """Propose library kernels along mcts_select, `budget` proposals in all."""
        return await Optimizer(self, self._clock).run(capture_id, budget, notice)

    async def report(self, capture_id: str | None = None) -> OptimizeReport:
        """The best node of every target variant so far."""
        return await Optimizer(self, self._clock).report(capture_id)

    async def export(  # noqa: PLR0913  what a caller may say about a cast
        self,
        path: Path,
        *,
        node_ids: tuple[str, ...] = (),
        overwrite: bool = False,
        samples: bool = True,
        keep: bool = True,
        check: Check | None = None,
        notice: Notice = lambda _: None,
    ) -> CastSummary:
        """Write the fastest node of every variant (or the named ones) into a cast; under `check`,
        without those that the captured model is slower with. A few values of their inputs go with
        them unless `samples` says otherwise, and they go into the user's library unless `keep`
        does."""
        machine = await self._machine.probed()
        blobs = self._settings.blobs if samples else None
        exporter = Exporter(self, self._submitter, machine, blobs, self._clock())
        cast = await self._checks.export(exporter, path, node_ids, overwrite, check, notice)
        if not keep:
            return cast
        nodes = [entry.node_id for entry in cast.entries]
        return replace(cast, kept=await self.keeper.exported(nodes))

    async def inspect_cast(self, path: Path) -> CastSummary:
        """Read a cast, checking its structure and every hash."""
        must_exist(path)
        return await anyio.to_thread.run_sync(summarize, path)

    async def rerun_cast(
        self, path: Path, notice: Notice, *, trusted: Trusted | None = None
    ) -> tuple[Rerun, ...]:
        """Judge and time every kernel of a cast again on this machine, from the cast alone."""
        must_exist(path)
        cast = await anyio.to_thread.run_sync(read_cast, path, trusted)
        return await (await self._rerunner()).run(cast, notice)

    async def adapt_cast(
        self, path: Path, output: Path, notice: Notice, *, trusted: Trusted | None = None
    ) -> Adapted:
        """Build a cast's kernels from source for this machine, judge and time them here, and write
        those that are valid and faster, if any, to `output`."""
        must_exist(path)
        cast = await anyio.to_thread.run_sync(read_cast, path, trusted)
        trials = await (await self._rerunner()).trials(cast, notice)
        machine, at = await self._machine.probed(), self._clock()
        return await anyio.to_thread.run_sync(adapted, cast, trials, machine, output, at)

    async def _rerunner(self) -> Rerunner:
        machine = await self._machine.trusted()
        return Rerunner(self._settings, self._children, machine, self._secret)

    async def bundle(self, node_id: str) -> Bundle | None:
        """The evidence of a node; eager itself has none."""
        node = await self._trees.node(node_id)
        variant = await self._captures.variant(node.variant_id)
        machine = await self._machine.probed()
        candidate = await self._submitter.rebuilt(node, variant, machine.archs)
        return bundle(node, candidate, variant, machine, self._settings.blobs)

    async def measure(self, request: MeasureRequest, notice: Notice) -> Measurement:
        """Compare a whole model with and without a cast, in a child of its own."""
        return await self._checks.measure(request, notice)

    async def status(self) -> EngineStatus:
        """The state of the project and of the machine."""
        machine, isolated = await self._machine.probed(), await self._machine.isolation()
        nodes, attempts = await self._trees.counts()
        return EngineStatus(
            version=__version__,
            project=str(self._settings.project),
            torch_version=machine.torch_version,
            devices=machine.devices,
            isolation=isolated.level,
            open=isolated.open,
            captures=len(await self._captures.all()),
            variants=await self._captures.count_variants(),
            nodes=nodes,
            attempts=attempts,
            active_leases=await self._leases.count_open(self._clock()),
            running_jobs=self.jobs.running,
        )
