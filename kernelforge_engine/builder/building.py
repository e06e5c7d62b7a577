"""From an order to its answer: gate, store, compilers in turn."""

import tempfile
import time
from pathlib import Path

from kernelforge_engine.builder import contract, gate, gxx, nvcc, nvrtc, store
from kernelforge_engine.builder.compiler import Compiler, Unit
from kernelforge_engine.builder.confined import MEND, Report, compile_confined
from kernelforge_engine.builder.log import readable
from kernelforge_engine.errors import NoCompiler, NotWritten
from kernelforge_engine.pool.protocol import Build, BuildRefused, Built
from kernelforge_engine.records import Artifact

NEED_CUDA = (
    "install a CUDA build of torch, which brings NVRTC, or the CUDA toolkit with nvcc on PATH"
)


def build(order: Build) -> Built | BuildRefused:
    """The artifact of an order, from the store or compiled now, or why the source is refused.

    Raises:
        NoCompiler: this machine has none for the backend.
        NotWritten: the disk is full or read-only.
    """
    if reason := gate.refusal(order.text, order.backend):
        return BuildRefused(log=f"error: {reason}", seconds=0.0)
    unit = contract.unit(order.text, order.launches, order.backend, order.arch)
    compilers = _compilers(order)
    folder = Path(order.folder)
    for compiler in compilers:
        if stored := store.find(folder, store.digest(unit, compiler)):
            return Built(artifact=stored, seconds=0.0)
    started = time.perf_counter()
    try:
        with tempfile.TemporaryDirectory(prefix="kernelforge-", ignore_cleanup_errors=True) as work:
            return _compiled(order, unit, compilers, Path(work), started)
    except OSError as error:
        what = "The compiler's working folder"
        raise NotWritten(
            what=what, path=tempfile.gettempdir(), why=error.strerror, step=MEND
        ) from error


def _compilers(order: Build) -> list[Compiler]:
    """The compilers for a backend, the preferred one first."""
    if order.backend == "cpu":
        return [gxx.sanitizing(order.arch) if order.sanitized else gxx.find(order.arch)]
    found: list[Compiler | None] = [nvrtc.find(), nvcc.find()]
    usable = [compiler for compiler in found if compiler is not None]
    if not usable:
        raise NoCompiler(compiler="NVRTC or nvcc", backend="cuda", step=NEED_CUDA)
    return usable


def _compiled(
    order: Build, unit: Unit, compilers: list[Compiler], work: Path, started: float
) -> Built | BuildRefused:
    log = ""
    for compiler in compilers:
        report = compile_confined(compiler, unit, work)
        log = log or report.compiled.log
        if report.compiled.product is not None:
            artifact = _stored(order, unit, compiler, report, work)
            seconds = time.perf_counter() - started
            return Built(artifact=artifact, seconds=seconds, sandbox=report.sandbox)
        log = report.compiled.log
        if not report.compiled.headerless:
            break
    return BuildRefused(log=readable(log), seconds=time.perf_counter() - started)


def _stored(order: Build, unit: Unit, compiler: Compiler, report: Report, work: Path) -> Artifact:
    digest, compiled = store.digest(unit, compiler), report.compiled
    folder = Path(order.folder)
    artifact = Artifact(
        digest=digest,
        backend=order.backend,
        arch=order.arch,
        path=str(folder / f"{digest}{compiler.suffix}"),
        symbols=compiled.symbols,
        compiler=compiler.name,
        log=readable(compiled.log),
        resources=compiled.resources,
        audit=compiled.audit,
        preload=compiler.preload,
        made_by=compiler.identity,
    )
    store.keep(folder, artifact, (work / str(compiled.product)).read_bytes())
    return artifact
