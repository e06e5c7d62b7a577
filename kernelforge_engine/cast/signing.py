"""An Ed25519 signature over all that a cast holds but itself.

What is signed is CONTEXT and the listing of checksums.sha256 without the line of the signature:
name and SHA-256 of every other entry. To sign again replaces the signature, and a cast without it
is byte for byte the one that was never signed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from kernelforge_engine import codec
from kernelforge_engine.cast import archive, keys
from kernelforge_engine.errors import CastRejected, CastUntrusted, SigningMissing

NAME = "signature.json"
CONTEXT = b"kernelforge.cast signature 1\n"
KEY_BYTES, SIGNATURE_BYTES = 32, 64
AGAIN = "fetch it again from whoever signed it"


@dataclass(frozen=True, kw_only=True)
class Signature:
    """The entry `signature.json`; both values are hexadecimal."""

    algorithm: Literal["ed25519"]
    public_key: str
    signature: str


@dataclass(frozen=True, kw_only=True)
class Signed:
    """By whom a cast is signed; `checked` is whether the library for that is installed here."""

    fingerprint: str
    checked: bool


def signature(files: Mapping[str, bytes], key: Path) -> tuple[bytes, Signed]:
    """The content of `signature.json` for these entries, and who signs.

    Raises:
        KeyUnusable, SigningMissing
    """
    private = keys.private_key(key)
    public = private.public_key().public_bytes_raw()
    made = Signature(
        algorithm="ed25519",
        public_key=public.hex(),
        signature=private.sign(_message(unsigned(files))).hex(),
    )
    return codec.dumps(made).encode(), Signed(fingerprint=keys.fingerprint(public), checked=True)


def unsigned(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The entries of a cast without its signature."""
    return {name: data for name, data in files.items() if name != NAME}


def check(path: Path, files: Mapping[str, bytes], trusted: keys.Trusted | None) -> Signed | None:
    """Who signed these entries, None where nobody did.

    With `trusted`, only what one of these public keys signed is accepted. Without, a signature is
    checked where the library for it is installed, and any signer will do.

    Raises:
        CastRejected: the signature does not fit.
        CastUntrusted: nobody of `trusted` signed it.
        KeyUnusable, SigningMissing
    """
    believed = None if trusted is None else keys.fingerprints(trusted)
    found = _checked(path, files, needed=believed is not None) if NAME in files else None
    if believed is None:
        return found
    if found is None:
        step = "ask whoever made it to sign it, or load it without naming keys"
        raise CastUntrusted(path=path, why="it is not signed", step=step)
    if found.fingerprint not in believed:
        why = f"it is signed by {found.fingerprint}, which is no key that was named"
        step = "name that key too if you know whose it is, or do not use the cast"
        raise CastUntrusted(path=path, why=why, step=step)
    return found


def _checked(path: Path, files: Mapping[str, bytes], *, needed: bool) -> Signed:
    try:
        stored = codec.loads(Signature, files[NAME])
        public, made = bytes.fromhex(stored.public_key), bytes.fromhex(stored.signature)
    except (ValidationError, ValueError) as error:
        raise _malformed(path) from error
    same = replace(stored, public_key=public.hex(), signature=made.hex())
    sizes = (len(public), len(made))
    if sizes != (KEY_BYTES, SIGNATURE_BYTES) or files[NAME] != codec.dumps(same).encode():
        raise _malformed(path)
    try:
        _verify(path, public, made, _message(unsigned(files)))
    except SigningMissing:
        if needed:
            raise
        return Signed(fingerprint=keys.fingerprint(public), checked=False)
    return Signed(fingerprint=keys.fingerprint(public), checked=True)


def _verify(path: Path, public: bytes, made: bytes, message: bytes) -> None:
    with keys.needed("Checking a signature"):
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(made, message)
    except (InvalidSignature, ValueError) as error:
        why = "it is wrongly signed: what it holds is not what was signed"
        raise CastRejected(path=path, why=why, step=AGAIN) from error


def _malformed(path: Path) -> CastRejected:
    return CastRejected(path=path, why=f"its {NAME} has another form than version 1", step=AGAIN)


def _message(files: Mapping[str, bytes]) -> bytes:
    return CONTEXT + archive.listing(files)
