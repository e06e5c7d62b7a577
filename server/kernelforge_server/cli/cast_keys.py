"""`kernelforge cast keygen` and `sign`: who made a cast."""

from pathlib import Path
from typing import Annotated

import typer

from kernelforge_engine.cast import keys
from kernelforge_engine.cast.publish import sign as signed
from kernelforge_server.cli.cast_options import existing, performed
from kernelforge_server.cli.options import CastArgument, JsonOption
from kernelforge_server.cli.session import Session
from kernelforge_tools.entries import absolute


def keygen(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Where the private key goes.")],
    as_json: JsonOption = False,
) -> None:
    """Make a pair of Ed25519 keys: FILE is private, FILE.pub is for those who trust you."""
    session = Session(project=None, as_json=as_json)
    private = absolute(path)
    fingerprint = performed(session, lambda: keys.generate(private))
    if as_json:
        public = str(private) + keys.PUBLIC
        session.emit({"private": str(private), "public": public, "fingerprint": fingerprint})
        return
    session.show(f"{private} signs; only you can read it. {private}{keys.PUBLIC} is for others.")
    session.show(f"Fingerprint: {fingerprint}")


def sign(
    path: CastArgument,
    key: Annotated[Path, typer.Option(metavar="FILE", help="Your private key, in PEM.")],
    as_json: JsonOption = False,
) -> None:
    """Sign a cast in place, all that is in it; an older signature is replaced."""
    session = Session(project=None, as_json=as_json)
    by = performed(session, lambda: signed(existing(path), absolute(key)).fingerprint)
    if as_json:
        session.emit({"path": str(absolute(path)), "signed_by": by})
        return
    session.show(f"{absolute(path)} is signed by {by}.")
