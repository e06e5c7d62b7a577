"""`kernelforge cast`: look into packages, and make new ones of them."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from kernelforge_engine import codec
from kernelforge_engine.cast import report as reports
from kernelforge_engine.cast.manifest import read
from kernelforge_engine.cast.report import CastReport
from kernelforge_engine.cast.summary import printable
from kernelforge_engine.engine import Engine
from kernelforge_engine.errors import BadOption
from kernelforge_engine.plans import Source
from kernelforge_engine.rerun import Rerun
from kernelforge_server.cli.cast_adapt import adapt
from kernelforge_server.cli.cast_diff import diff
from kernelforge_server.cli.cast_keys import keygen, sign
from kernelforge_server.cli.cast_merge import merge
from kernelforge_server.cli.cast_options import TrustedOption, existing, performed, trusted_keys
from kernelforge_server.cli.cast_sheet import facts, heading, kernels_sheet, signature
from kernelforge_server.cli.options import CastArgument, JsonOption, ProjectOption
from kernelforge_server.cli.plain import PlainCommand, PlainGroup
from kernelforge_server.cli.rerun_sheet import remarks, rerun_sheet
from kernelforge_server.cli.session import Session
from kernelforge_server.cli.tables import load_text
from kernelforge_tools.entries import absolute

cast = typer.Typer(
    cls=PlainGroup, no_args_is_help=True, help="Look into casts, and make new ones of them."
)


@cast.command(cls=PlainCommand)
def inspect(
    path: CastArgument,
    key: TrustedOption = None,
    source: Annotated[
        str | None,
        typer.Option(metavar="N", help="Print the source of kernel N, or of a node, alone."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a cast holds, where it comes from and how to load it."""
    session = Session(project=None, as_json=as_json)
    if source is not None:
        _show_source(session, performed(session, lambda: _source(path, key, source)))
        return
    found = _report(session, path, key)
    if as_json:
        session.emit(codec.dump(found))
        return
    session.show(heading(found))
    session.show("\n".join(["", *facts(found, trusted=key is not None), ""]))
    session.show(kernels_sheet(found))
    session.show(f"\nTo use it:\n\n{load_text(found)}")


def _source(path: Path, key: list[str] | None, wanted: str) -> Source:
    """The source of one kernel, by number or by node.

    Raises:
        BadOption: there is no such kernel.
        CastRejected, CastUntrusted, KeyUnusable, SigningMissing
    """
    file = read(existing(path), trusted_keys(key))
    groups = reports.kernels(file)
    for number, group in enumerate(groups, 1):
        if wanted in {str(number), *(entry.node_id for entry in group)}:
            return file.source(group[0])
    nodes = [group[0].node_id for group in groups]
    raise BadOption(
        field="source",
        value=wanted,
        why=f"{path} has no such kernel",
        accepted=f"a number from 1 to {len(groups)}, or a node: {', '.join(nodes)}",
    )


def _show_source(session: Session, source: Source) -> None:
    """As it is where a program reads it; to a terminal no control character is sent."""
    if session.as_json:
        session.emit({"source": source.text, "digest": source.digest, "backend": source.backend})
    elif sys.stdout.isatty():
        lines = source.text.expandtabs().removesuffix("\n").split("\n")
        typer.echo("\n".join(map(printable, lines)))
    else:
        typer.echo(source.text, nl=False)


@cast.command(cls=PlainCommand)
def verify(
    path: CastArgument,
    key: TrustedOption = None,
    rerun: Annotated[
        bool,
        typer.Option(
            "--rerun", metavar="", help="Also judge and time every kernel again on this machine."
        ),
    ] = False,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check a cast's structure, every hash in it and its signature."""
    session = Session(project=project, as_json=as_json)
    found = _report(session, path, key)
    document: dict[str, object] = {
        "path": found.path,
        "valid": True,
        "sha256": found.sha256,
        "signature": found.signature,
        "signed_by": found.signed_by,
    }
    if not as_json:
        session.show(f"{found.path} is intact: sha256 {found.sha256}.")
        session.show(f"Signature: {signature(found, trusted=key is not None)}.")
    rows = _rerun(session, path, key) if rerun else ()
    if as_json:
        session.emit({**document, "rerun": [_row(r) for r in rows]} if rerun else document)
    elif rerun:
        session.show(rerun_sheet(rows))
        for remark in remarks(rows):
            session.show(remark)
    if not all(row.holds for row in rows):
        raise typer.Exit(1)


def _rerun(session: Session, path: Path, key: list[str] | None) -> tuple[Rerun, ...]:
    async def work(engine: Engine) -> tuple[Rerun, ...]:
        with session.progress(path.name) as notice:
            trusted = trusted_keys(key)
            return await engine.rerun_cast(absolute(path), notice, trusted=trusted)

    return session.run(work)


def _row(row: Rerun) -> dict[str, object]:
    return {**codec.dump(row), "holds": row.holds}


def _report(session: Session, path: Path, key: list[str] | None) -> CastReport:
    return performed(session, lambda: reports.report(existing(path), trusted_keys(key)))


for command in (adapt, diff, merge, keygen, sign):
    cast.command(cls=PlainCommand)(command)
