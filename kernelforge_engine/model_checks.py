"""Whole models measured in children: for a caller, and before a cast is written.

An export keeps a kernel only if the captured model does not get slower with it.
"""

import hashlib
import logging
import tempfile
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from anyio import to_thread

from kernelforge_engine.children import Children
from kernelforge_engine.errors import (
    FileMissing,
    KernelForgeError,
    ModelNotFaster,
    ModelNotMeasured,
    StoreUnavailable,
)
from kernelforge_engine.exchanges import CastSummary, MeasureRequest, ModelRequest, Notice
from kernelforge_engine.export import Exporter
from kernelforge_engine.measurements import (
    Check,
    Comparison,
    KernelSaving,
    Measured,
    Measurement,
    WholeModel,
)
from kernelforge_engine.pool.orders import MeasureOrder, ModelOrder
from kernelforge_engine.records import Capture
from kernelforge_engine.store.captures import Captures
from kernelforge_engine.store.casts import Casts
from kernelforge_engine.store.ids import row
from kernelforge_engine.store.trees import Trees

DRAFT = "draft.cast"

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ModelChecks:
    """Measures models of one project, and files what they came to and which casts were written;
    `cache` is where built shims and kernels are kept."""

    children: Children
    captures: Captures
    trees: Trees
    casts: Casts
    cache: Path
    clock: Callable[[], float]

    async def measure(self, request: MeasureRequest, notice: Notice) -> Measurement:
        """Compare a whole model with and without a cast, in a child of its own."""
        must_exist(request.cast)
        order = MeasureOrder(
            model=model_order(request),
            cast=str(request.cast.absolute()),
            cache=str(self.cache),
            modes=request.modes,
            kernels=request.attribution,
            seconds=request.seconds,
            trusted=request.trusted,
        )
        before = await to_thread.run_sync(_digest, request.cast)
        measured = (await self.children.measure(order, notice)).measurement
        after = await to_thread.run_sync(_digest, request.cast)
        if before == after:  # else it is not known which of the two was measured
            await self._file("measure", request, before, measured)
        return measured

    async def export(
        self,
        exporter: Exporter,
        path: Path,
        node_ids: tuple[str, ...],
        overwrite: bool,
        check: Check | None,
        notice: Notice,
    ) -> CastSummary:
        """Write a cast; under `check`, write a draft first, measure the captured model with each
        kernel of it left out, and write the cast without those that the model is slower with.

        Raises:
            ModelNotMeasured: the model could not be run with it.
            ModelNotFaster: no kernel is left, or the model is slower with those that are.
        """
        if check is None:
            cast = await exporter.export(path, node_ids, overwrite)
            await _filed(self.casts.add(cast, self.clock()), "the cast")
            return cast
        with tempfile.TemporaryDirectory() as folder:
            draft = Path(folder) / DRAFT
            drafted = await exporter.export(draft, node_ids, overwrite=True)
            names = tuple(dict.fromkeys(entry.node_id for entry in drafted.entries))
            capture = await self._capture(names if node_ids else ())
            measured = await self._measured(capture, draft, check, notice)
        kept = tuple(name for name in names if name not in measured.dropped)
        whole, request = whole_model(measured), request_of(capture)
        try:
            _worth_writing(kept, whole, check)
        except ModelNotFaster:
            await self._file("export", request, None, measured)
            raise
        cast = await exporter.export(path, kept, overwrite, whole)
        await _filed(self.casts.add(cast, self.clock()), "the cast")
        await self._file("export", request, cast.sha256, measured)
        return cast

    async def _file(
        self,
        task: Literal["export", "measure"],
        request: ModelRequest,
        cast: str | None,
        found: Measurement,
    ) -> None:
        measured = Measured(
            task=task,
            model=request.model,
            device=request.device,
            cast_sha256=cast,
            measurement=found,
            at=self.clock(),
        )
        await _filed(self.casts.file(measured), "the measurement")

    async def _measured(
        self, capture: Capture, draft: Path, check: Check, notice: Notice
    ) -> Measurement:
        order = MeasureOrder(
            model=model_order(request_of(capture)),
            cast=str(draft),
            cache=str(self.cache),
            kernels=True,
            drop=not check.keep_all,
            seconds=check.seconds,
        )
        try:
            return (await self.children.measure(order, notice)).measurement
        except KernelForgeError as error:
            why = str(error).partition(" Next:")[0].rstrip(".")
            raise ModelNotMeasured(model=capture.model, why=why) from error

    async def _capture(self, names: Iterable[str]) -> Capture:
        """The newest capture that one of these nodes serves; the newest of all for none."""
        found = []
        for name in names:
            variant = await self.captures.variant((await self.trees.node(name)).variant_id)
            found.append((await self.captures.card(variant.card_id)).capture_id)
        newest = max(found, key=lambda capture: row("c", capture), default=None)
        return await self.captures.get(newest)


async def _filed(filing: Coroutine[Any, Any, None], what: str) -> None:
    """File something that its caller gets all the same where the disk is full."""
    try:
        await filing
    except StoreUnavailable as error:
        log.warning("%s is not on record: %s", what, error)


def _digest(path: Path) -> str | None:
    """The hash of a cast, None where it cannot be read, which whoever loads it will say."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def remembered(capture: Capture, request: ModelRequest, at: float) -> Capture:
    """A capture that was made at a time, with how its model was loaded."""
    return replace(
        capture,
        created_at=at,
        random_weights=request.random_weights,
        dtype=request.dtype,
        generate_tokens=request.generate_tokens,
    )


def request_of(capture: Capture) -> ModelRequest:
    """The model of a capture, to be loaded as it was."""
    return ModelRequest(
        model=capture.model,
        inputs=capture.inputs,
        device=capture.device,
        random_weights=capture.random_weights,
        dtype=capture.dtype,
        generate_tokens=capture.generate_tokens,
    )


def model_order(request: ModelRequest) -> ModelOrder:
    """A request as a child reads it."""
    return ModelOrder(
        model=request.model,
        inputs=request.inputs,
        device=request.device,
        random_weights=request.random_weights,
        dtype=request.dtype,
        generate_tokens=request.generate_tokens,
    )


def whole_model(measured: Measurement) -> WholeModel:
    """What a measurement in eager mode says about the kernels of a cast."""
    compared: Comparison | None = next(iter(measured.rows), None)
    slow = {k.node_id: cost(k) for k in measured.kernels if k.slows}
    return WholeModel(
        original_us=compared.original_us if compared else None,
        patched_us=compared.patched_us if compared else None,
        speedup=compared.speedup if compared else None,
        low=compared.low if compared else None,
        high=compared.high if compared else None,
        uncompared=None if compared else "; ".join(measured.failed.values()),
        dropped={name: words for name, words in slow.items() if name in measured.dropped},
        slowing={name: words for name, words in slow.items() if name not in measured.dropped},
        unknown={k.node_id: k.unmeasured for k in measured.kernels if k.unmeasured},
    )


def must_exist(path: Path) -> None:
    """See that a cast can be looked at.

    Raises:
        FileMissing
    """
    try:
        found = path.is_file()
    except OSError:  # it may not be looked at, or no file could have such a name
        found = False
    if not found:
        raise FileMissing(path=path)


def cost(kernel: KernelSaving) -> str:
    """What a kernel that makes the model slower costs, in words."""
    if kernel.saving_us is None or kernel.low_us is None or kernel.high_us is None:
        return "what it costs is not known"
    middle, least, most = (f"{-us:.4g}" for us in (kernel.saving_us, kernel.high_us, kernel.low_us))
    return f"{kernel.operator}: a run takes {middle} us more with it ({least} to {most})"


def _worth_writing(kept: Sequence[str], whole: WholeModel, check: Check) -> None:
    if check.keep_all:
        return
    if not kept:
        raise ModelNotFaster(why="; ".join(f"{n}: {w}" for n, w in whole.dropped.items()))
    if whole.high is not None and whole.high < 1:
        why = f"its speed is {whole.speedup:.3f} ({whole.low:.3f} to {whole.high:.3f}) of eager's"
        raise ModelNotFaster(why=why)
