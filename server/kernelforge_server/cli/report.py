"""`kernelforge report`: what a project came to, for people to pass on."""

import os
from pathlib import Path
from typing import Annotated

import typer

from kernelforge_engine.engine import Engine
from kernelforge_engine.errors import BadOption, KernelForgeError, NotWritten
from kernelforge_engine.reporting import ProjectReport
from kernelforge_server.cli.options import CaptureOption, JsonOption, ProjectOption
from kernelforge_server.cli.session import Session
from kernelforge_tools.entries import absolute

DEFAULT = Path("report.html")
STANDARD_OUTPUT = Path("-")


def report(
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE.html",
            help=f"Where to write the page. Default, without the other two: {DEFAULT}.",
            show_default=False,
        ),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.md|-",
            help="Also, or only, as Markdown; - is standard output.",
            show_default=False,
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", metavar="", help="Replace existing files.")
    ] = False,
    capture_id: CaptureOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write what was captured, found, measured and spent as one HTML page, or as Markdown."""
    session = Session(project=project, as_json=as_json)
    if output is None and markdown is None and not as_json:
        output = DEFAULT
    try:
        files = _files(output, markdown, overwrite=overwrite, as_json=as_json)
    except KernelForgeError as error:
        session.fail(error)

    async def work(engine: Engine) -> tuple[ProjectReport, dict[Path, str]]:
        found = await engine.reporter.report(capture_id)
        return found, _texts(found, engine, files)

    found, texts = session.run(work)
    try:
        for path, text in texts.items():
            _write(session, path, text)
    except KernelForgeError as error:
        session.fail(error)
    if as_json:
        from kernelforge_server.report.document import document

        session.emit({**document(found), "written": list(map(str, texts))})


def _files(
    output: Path | None, markdown: Path | None, *, overwrite: bool, as_json: bool
) -> dict[str, Path]:
    """Where each form goes.

    Raises:
        BadOption: something is there already, or two forms would go to one place.
    """
    if markdown == STANDARD_OUTPUT and as_json:
        why, accepted = "standard output has the JSON document", "a file"
        raise BadOption(field="markdown", value="-", why=why, accepted=accepted)
    files = {"html": output, "markdown": markdown}
    named = {form: path for form, path in files.items() if path is not None}
    for form, path in named.items():
        if path != STANDARD_OUTPUT or form == "html":
            named[form] = absolute(path)
            _may_write(named[form], overwrite=overwrite)
    if len(set(named.values())) < len(named):
        why, accepted = "the page goes there", "another path"
        raise BadOption(field="markdown", value=str(markdown), why=why, accepted=accepted)
    return named


def _may_write(path: Path, *, overwrite: bool) -> None:
    if os.path.lexists(path) and not overwrite:
        accepted = "another path, or --overwrite"
        raise BadOption(field="path", value=str(path), why="it exists", accepted=accepted)


def _texts(found: ProjectReport, engine: Engine, files: dict[str, Path]) -> dict[Path, str]:
    # The page needs a template engine, which no other command should wait for.
    from kernelforge_server.report.contents import page
    from kernelforge_server.report.markdown import markdown
    from kernelforge_server.report.page import html

    if not files:
        return {}
    made = page(found, engine.redact)
    forms = {"html": html, "markdown": markdown}
    return {path: forms[form](made) for form, path in files.items()}


def _write(session: Session, path: Path, text: str) -> None:
    if path == STANDARD_OUTPUT:
        typer.echo(text, nl=False)
        return
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        why, step = error.strerror or str(error), "choose a folder that can be written"
        raise NotWritten(what="The report", path=path, why=why, step=step) from error
    if not session.as_json:
        session.show(str(path))
