"""`kernelforge cast adapt`: a cast that was made elsewhere, for this machine."""

import typer

from kernelforge_engine import codec
from kernelforge_engine.adapt import Adapted, is_kept
from kernelforge_engine.engine import Engine
from kernelforge_server.cli.cast_options import (
    OutputOption,
    OverwriteOption,
    TrustedOption,
    existing,
    performed,
    trusted_keys,
)
from kernelforge_server.cli.options import CastArgument, JsonOption, ProjectOption
from kernelforge_server.cli.rerun_sheet import remarks, rerun_sheet
from kernelforge_server.cli.session import NOTHING_FASTER, Session
from kernelforge_server.cli.tables import load_text
from kernelforge_tools.lookups import cast_path
from kernelforge_tools.wording import counted


def adapt(
    path: CastArgument,
    output: OutputOption,
    overwrite: OverwriteOption = False,
    key: TrustedOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a cast from elsewhere one of this machine.

    Every kernel is built from source, judged and timed here; those that are valid and faster are
    written. Exit code 3 where none is.
    """
    session = Session(project=project, as_json=as_json)
    source, target = performed(
        session,
        lambda: (
            existing(path),
            cast_path(output, overwrite=overwrite, replacing="--overwrite"),
        ),
    )

    async def work(engine: Engine) -> Adapted:
        with session.progress(path.name) as notice:
            return await engine.adapt_cast(source, target, notice, trusted=trusted_keys(key))

    found = session.run(work)
    kept = sum(map(is_kept, found.rows))
    if as_json:
        rows = [{**codec.dump(row), "kept": is_kept(row)} for row in found.rows]
        session.emit({"cast": codec.dump(found.cast) if found.cast else None, "rows": rows})
    else:
        session.show(rerun_sheet(found.rows))
        for line in (*remarks(found.rows), _said(found, kept)):
            session.show(line)
    if found.cast is None:
        raise typer.Exit(NOTHING_FASTER)


def _said(found: Adapted, kept: int) -> str:
    of = f"{kept} of {counted(len(found.rows), 'kernel')}"
    if found.cast is None:
        return f"{of} held here and was faster: nothing is written."
    return f"{found.cast.path} has {of}. To use it:\n\n{load_text(found.cast)}"
