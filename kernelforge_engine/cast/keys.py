"""Ed25519 keys as PEM files, and their fingerprints: who made a cast, and who is believed.

A fingerprint is the SHA-256 of the public key in DER, in hexadecimal:
`openssl pkey -pubin -in KEY.pub -outform DER | sha256sum` says the same.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kernelforge_engine.codec import sha256
from kernelforge_engine.errors import KeyUnusable, NotWritten, SigningMissing

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

Trusted = Iterable[str | Path] | str | Path  # public keys: PEM files, PEM texts or fingerprints
FINGERPRINT = re.compile(r"[0-9a-f]{64}")
DER = bytes.fromhex("302a300506032b6570032100")  # what stands before the 32 bytes of a public key
PEM = "-----BEGIN "
MAX_PEM = 1 << 14
PUBLIC = ".pub"
ONLY_OURS, FOR_ALL = 0o600, 0o644
MAKE = "make a pair with `kernelforge cast keygen FILE`"


def fingerprint(public: bytes) -> str:
    """The name of a public key of 32 bytes."""
    return sha256(DER + public)


def generate(path: Path) -> str:
    """Write a new private key to `path`, its public key beside it as `path`.pub; the fingerprint.

    Raises:
        KeyUnusable: one of the two files exists.
        NotWritten, SigningMissing
    """
    with needed("Making a key"):
        from cryptography.hazmat.primitives import serialization as forms
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption())
    public = key.public_key().public_bytes(
        forms.Encoding.PEM, forms.PublicFormat.SubjectPublicKeyInfo
    )
    beside = path.with_name(path.name + PUBLIC)
    for taken in (path, beside):
        if os.path.lexists(taken):
            raise KeyUnusable(key=taken, why="that file exists", step="choose another name")
    _written(path, private, ONLY_OURS)
    try:
        _written(beside, public, FOR_ALL)
    except NotWritten:
        path.unlink()
        raise
    return fingerprint(key.public_key().public_bytes_raw())


def private_key(path: Path) -> "Ed25519PrivateKey":
    """The key to sign with.

    Raises:
        KeyUnusable: the file is missing, or holds no unencrypted private Ed25519 key.
        SigningMissing
    """
    with needed("Signing a cast"):
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    data = _read(path)
    with _understood(path):
        key = load_pem_private_key(data, password=None)
    if not isinstance(key, Ed25519PrivateKey):
        raise KeyUnusable(key=path, why="it is of another kind than Ed25519", step=MAKE)
    return key


def fingerprints(trusted: Trusted) -> frozenset[str]:
    """The fingerprints of public keys, each given as a PEM file, as PEM text or as a fingerprint.

    Raises:
        KeyUnusable: one is none of these.
        SigningMissing
    """
    given = [trusted] if isinstance(trusted, str | Path) else trusted
    return frozenset(map(_fingerprint, given))


def _fingerprint(key: str | Path) -> str:
    if isinstance(key, str) and FINGERPRINT.fullmatch(key.lower()):
        return key.lower()
    with needed("Checking a signature"):
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
    text = isinstance(key, str) and key.lstrip().startswith(PEM)
    name = "given as text" if text else key
    data = str(key).encode() if text else _read(Path(key))
    if b"PRIVATE KEY" in data:
        step = "give the public key beside it, which ends in .pub"
        raise KeyUnusable(key=name, why="it is a private one", step=step)
    with _understood(name):
        found = load_pem_public_key(data)
    if not isinstance(found, Ed25519PublicKey):
        raise KeyUnusable(key=name, why="it is of another kind than Ed25519", step=MAKE)
    return fingerprint(found.public_bytes_raw())


@contextmanager
def needed(what: str) -> Iterator[None]:
    """Say what cannot be done where the library for signatures cannot be imported."""
    try:
        yield
    except ImportError as error:
        raise SigningMissing(what=what) from error


@contextmanager
def _understood(key: object) -> Iterator[None]:
    try:
        yield
    except TypeError as error:
        step = "give one without a passphrase, in a file that only you can read"
        raise KeyUnusable(key=key, why="it is encrypted", step=step) from error
    except Exception as error:  # the library has an exception of its own for every malformed key
        raise KeyUnusable(key=key, why="it is not a key in PEM", step=MAKE) from error


def _read(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise KeyUnusable(key=path, why="there is no such file", step="check the path")
        with path.open("rb") as file:
            return file.read(MAX_PEM)
    except (OSError, ValueError) as error:
        why = f"it cannot be read ({getattr(error, 'strerror', None) or error})"
        raise KeyUnusable(key=path, why=why, step="check the path and its permissions") from error


def _written(path: Path, data: bytes, mode: int) -> None:
    """Write a file that was not there; nobody but its owner could read it at any time."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
        with os.fdopen(file, "wb") as opened:
            opened.write(data)
    except OSError as error:
        step = "choose another place"
        raise NotWritten(what="The key", path=path, why=error.strerror, step=step) from error
