"""A signature says who made a cast; who names keys gets nothing that another, or nobody, signed."""

import json
import stat
import subprocess
import sys

import cast_cases
import pytest
from cryptography.hazmat.primitives import serialization as forms
from cryptography.hazmat.primitives.asymmetric import ec

from kernelforge_engine import cast as casts
from kernelforge_engine import codec
from kernelforge_engine.cast import archive, keys, manifest, publish, signing
from kernelforge_engine.cast.report import report
from kernelforge_engine.errors import (
    CastRejected,
    CastUntrusted,
    KeyUnusable,
    NotWritten,
)


@pytest.fixture
def key(tmp_path):
    path = tmp_path / "me.key"
    keys.generate(path)
    return path


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "x.cast"
    cast_cases.written(path, cast_cases.entry())
    return path


def public(key):
    return key.with_name(key.name + ".pub")


def test_a_key_is_only_for_its_owner_and_is_never_written_over(tmp_path, key):
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    before = key.read_bytes(), public(key).read_bytes()
    with pytest.raises(KeyUnusable, match="that file exists"):
        keys.generate(key)
    (tmp_path / "half.pub").write_text("")
    with pytest.raises(KeyUnusable, match="that file exists"):
        keys.generate(tmp_path / "half")
    assert not (tmp_path / "half").exists()
    assert (key.read_bytes(), public(key).read_bytes()) == before
    with pytest.raises(NotWritten):
        keys.generate(tmp_path / "none" / "k")


def test_a_fingerprint_is_what_openssl_says(key):
    (fingerprint,) = keys.fingerprints([public(key)])
    der = subprocess.run(
        ["openssl", "pkey", "-pubin", "-in", public(key), "-outform", "DER"],
        capture_output=True,
        check=True,
    ).stdout
    assert fingerprint == codec.sha256(der)


def test_a_signed_cast_is_loaded_by_those_who_trust_its_key(path, key):
    signed = publish.sign(path, key)
    text = public(key).read_text()
    ways = (public(key), str(public(key)), text, signed.fingerprint, signed.fingerprint.upper())
    for given in ways:
        assert casts.read(path, [given]).signed == signed
        assert casts.read(path, given).signed == signed
    assert casts.read(path).signed == signed
    assert report(path).signature == "signed"


def test_without_their_key_nothing_is_accepted(tmp_path, path, key):
    keys.generate(tmp_path / "other")
    with pytest.raises(CastUntrusted, match="it is not signed"):
        casts.read(path, [public(key)])
    publish.sign(path, key)
    for given in ([tmp_path / "other.pub"], []):
        with pytest.raises(CastUntrusted, match="is no key that was named"):
            casts.read(path, given)


def test_to_sign_again_replaces_and_to_strip_restores(tmp_path, path, key):
    plain = path.read_bytes()
    publish.sign(path, key)
    once = path.read_bytes()
    publish.sign(path, key)
    assert path.read_bytes() == once
    keys.generate(tmp_path / "other")
    other = publish.sign(path, tmp_path / "other")
    assert casts.read(path).signed == other
    publish.sign(path, key, tmp_path / "back.cast")
    assert (tmp_path / "back.cast").read_bytes() == once
    archive.write(path, signing.unsigned(archive.read(path).files))
    assert path.read_bytes() == plain


def changed(name, change):
    def tamper(files):
        value = json.loads(files[name])
        change(value)
        return {**files, name: codec.dumps(value).encode()}

    return tamper


def other_key(files, tmp_path):
    keys.generate(tmp_path / "other")
    theirs = signing.signature(files, tmp_path / "other")[0]
    value = {**json.loads(files[signing.NAME]), "public_key": json.loads(theirs)["public_key"]}
    return {**files, signing.NAME: codec.dumps(value).encode()}


TAMPERED = {
    "header": changed(manifest.HEADER, lambda h: h.update(device_name="a faster one")),
    "evidence": changed(manifest.MANIFEST, lambda m: m["entries"][0]["timing"].update(speedup=9)),
    "signature": changed(signing.NAME, lambda s: s.update(signature="00" * 64)),
    "key of nobody": changed(signing.NAME, lambda s: s.update(public_key="ff" * 32)),
    "short": changed(signing.NAME, lambda s: s.update(signature="00")),
    "no hexadecimal": changed(signing.NAME, lambda s: s.update(signature="zz" * 64)),
    "capitals": changed(signing.NAME, lambda s: s.update(public_key=s["public_key"].upper())),
    "spaces": changed(signing.NAME, lambda s: s.update(signature=" " + s["signature"])),
    "more": changed(signing.NAME, lambda s: s.update(note="trust me")),
    "algorithm": changed(signing.NAME, lambda s: s.update(algorithm="none")),
    "no document": lambda files: {**files, signing.NAME: b"\xff"},
}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_wrongly_signed_cast_is_refused_whoever_reads_it(path, key, name):
    publish.sign(path, key)
    archive.write(path, TAMPERED[name](archive.read(path).files))
    for trusted in (None, [public(key)]):
        with pytest.raises(CastRejected, match=r"wrongly signed|another form") as caught:
            casts.read(path, trusted)
        assert "Next: fetch it again" in str(caught.value)


def test_another_public_key_beside_a_signature_does_not_help(path, key, tmp_path):
    publish.sign(path, key)
    archive.write(path, other_key(archive.read(path).files, tmp_path))
    with pytest.raises(CastRejected, match="wrongly signed"):
        casts.read(path, [tmp_path / "other.pub"])


def test_a_signature_of_one_cast_is_none_of_another(path, key, tmp_path):
    publish.sign(path, key)
    stolen = archive.read(path).files[signing.NAME]
    other = tmp_path / "y.cast"
    cast_cases.written(other, cast_cases.entry(cast_cases.OTHER_RELU))
    archive.write(other, {**archive.read(other).files, signing.NAME: stolen})
    with pytest.raises(CastRejected, match="wrongly signed"):
        casts.read(other)


def test_what_is_no_key_is_named_as_that(path, tmp_path, key):
    curve = ec.generate_private_key(ec.SECP256R1())
    (tmp_path / "curve").write_bytes(
        curve.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption())
    )
    (tmp_path / "curve.pub").write_bytes(
        curve.public_key().public_bytes(forms.Encoding.PEM, forms.PublicFormat.SubjectPublicKeyInfo)
    )
    locked = keys.private_key(key).private_bytes(
        forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.BestAvailableEncryption(b"word")
    )
    (tmp_path / "locked").write_bytes(locked)
    (tmp_path / "text").write_text("no key at all")
    before = path.read_bytes()
    for name, why in (
        ("curve", "of another kind"), ("locked", "it is encrypted"), ("text", "not a key in PEM"),
        ("me.key.pub", "not a key in PEM"), ("none", "no such file"), ("", "no such file"),
    ):  # fmt: skip
        with pytest.raises(KeyUnusable, match=why):
            publish.sign(path, tmp_path / name)
    assert path.read_bytes() == before
    for given, why in (
        ("curve.pub", "of another kind"), ("me.key", "it is a private one"),
        ("text", "not a key in PEM"), ("none", "no such file"),
    ):  # fmt: skip
        with pytest.raises(KeyUnusable, match=why):
            casts.read(path, [tmp_path / given])


def test_a_broken_cast_is_not_signed(path, key):
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(CastRejected):
        publish.sign(path, key)


WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, *_):
        if name.partition(".")[0] == "cryptography":
            raise ImportError(name)
sys.meta_path.insert(0, Missing())
from pathlib import Path
from kernelforge_engine import cast
from kernelforge_engine.cast import keys, publish
from kernelforge_engine.cast.report import report
from kernelforge_engine.errors import KernelForgeError
path, key = Path(sys.argv[1]), Path(sys.argv[2])
print(report(path).signature)
for work in (
    lambda: cast.read(path, [keys.fingerprint(bytes(32))]),
    lambda: publish.sign(path, key),
    lambda: keys.generate(path.with_name("new")),
):
    try:
        work()
    except KernelForgeError as error:
        print(error)
"""


def test_without_the_library_a_cast_is_read_unless_keys_are_named(path, key):
    publish.sign(path, key)
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT, path, key], capture_output=True, text=True, check=True
    )
    first, *rest = ended.stdout.splitlines()
    assert first == "unchecked"
    assert len(rest) == 3
    assert all("pip install 'kernelforge-mcp[sign]'" in line for line in rest)


def test_the_library_is_loaded_only_for_what_is_signed(path, key):
    code = (
        "import sys; from pathlib import Path; from kernelforge_engine import cast; "
        "cast.read(Path(sys.argv[1])); print('cryptography' in sys.modules)"
    )

    def loaded():
        run = [sys.executable, "-c", code, path]
        return subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip()

    assert loaded() == "False"
    publish.sign(path, key)
    assert loaded() == "True"
