"""A cast that is refused has done nothing: no file was written and no process started for it."""

import dataclasses
import io
import json
import os
import re
import shutil
import stat
import struct
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import cast_cases
import pytest

from kernelforge_engine import codec
from kernelforge_engine.cast import archive, keys, manifest, publish, signing
from kernelforge_engine.evidence import Evidence
from kernelforge_engine.records import Status

CACHE = Path.home() / ".cache" / "kernelforge"
# Loads every cast named on standard input with an audit hook that no code can take off again.
WATCHED = """
import json, os, sys
sys.dont_write_bytecode = True
from pathlib import Path
from kernelforge_engine import cast
from kernelforge_engine.dispatch import runtime
from kernelforge_engine.errors import CastRejected
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

seen = []
STARTS = ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty", "os.exec", "os.system",
          "ctypes.dlopen", "os.mkdir", "os.rename", "os.link", "os.symlink", "shutil.copyfile")
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

def look(event, args):
    if event in STARTS or (event == "open" and isinstance(args[2], int) and args[2] & WRITES):
        seen.append([event, str(args[0])])

sys.addaudithook(look)
answers = {}
for line in sys.stdin:
    order = json.loads(line)
    del seen[:]
    try:
        cast.load(order["path"], cache=Path(order["cache"]), trusted=order["trusted"])
        said = ""
    except CastRejected as error:
        said = str(error)
    answers[order["name"]] = [said, list(seen)]
print(json.dumps(answers))
"""


def packed(files, *, order=None, change=None):
    """A ZIP of another writer, with right checksums."""
    whole = {**files, archive.CHECKSUMS: archive.listing(files)}
    names = order or sorted(whole, key=lambda n: (n != archive.FIRST, n))
    return zipped([(n, whole[n]) for n in names], change)


def zipped(entries, change=None):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, data in entries:
            member = zipfile.ZipInfo(name, archive.EPOCH)
            if change:
                change(member)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a name that is there twice
                file.writestr(member, data)
    return buffer.getvalue()


def linked(member):
    if member.filename.startswith("sources/"):
        member.external_attr = (stat.S_IFLNK | 0o777) << 16


def squeezed(member):
    member.compress_type = zipfile.ZIP_DEFLATED


def edited(files, name, change):
    value = json.loads(files[name])
    change(value)
    return packed({**files, name: json.dumps(value).encode()})


def first(change):
    return lambda m: change(m["entries"][0])


def entry_bytes(good):
    """The ZIP with the directory's own count of bytes grown beyond what 256 names can take."""
    data = bytearray(good)
    struct.pack_into("<I", data, len(data) - 10, len(data) * 1000)
    return bytes(data)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("refused")


@pytest.fixture(scope="module")
def good(folder):
    path = folder / "good.cast"
    cast_cases.written(path, cast_cases.entry())
    return path


@pytest.fixture(scope="module")
def key(folder):
    keys.generate(folder / "me.key")
    keys.generate(folder / "other.key")
    return folder / "me.key"


@pytest.fixture(scope="module")
def refused(folder, good, key):
    """Casts that must be refused: their bytes, and what the sentence must say."""
    data, files = good.read_bytes(), archive.read(good).files
    [source] = [name for name in files if name.startswith("sources/")]
    names = [archive.FIRST, archive.CHECKSUMS, "manifest.json", source]
    signed = folder / "signed.cast"
    shutil.copyfile(good, signed)
    publish.sign(signed, key)
    lawful = archive.read(signed).files
    two = dataclasses.replace(cast_cases.entry(), node_id="n2")
    twice = codec.dumps(manifest_of(cast_cases.entry(), two)).encode()
    machine = cast_cases.origin("\x1b[2J a device").machine
    evil = dataclasses.replace(cast_cases.origin(), machine=machine)
    wrong = dataclasses.replace(
        cast_cases.entry(),
        elsewhere=(
            Evidence(
                node_id="n1",
                verdict=dataclasses.replace(cast_cases.entry().verdict, status=Status.WRONG_VALUES),
                timing=None,
                origin=cast_cases.origin("elsewhere"),
            ),
        ),
    )
    whole = {**files, archive.CHECKSUMS: archive.listing(files)}
    return {
        "truncated": (data[: len(data) // 2], "cut short"),
        "empty": (b"", "another kind of file"),
        "a text": (b"#!/bin/sh\nrm -rf /\n", "another kind of file"),
        "flipped": (data[:90] + bytes([data[90] ^ 1]) + data[91:], ""),
        "a bomb": (
            zipped([(n, bytes(1 << 22) if n == source else whole[n]) for n in names], squeezed),
            "over 100 times",
        ),
        "a large directory": (entry_bytes(data), "directory|entries"),
        "path-escaping": (packed({**files, "../evil": b"x"}), "is not allowed"),
        "absolute": (packed({**files, "/etc/cron.d/x": b"x"}), "is not allowed"),
        "a long name": (packed({**files, "a" * 300: b"x"}), "is not allowed"),
        "symlinked": (packed(files, change=linked), "not a regular file"),
        "duplicate names": (
            zipped([*[(n, whole[n]) for n in names], (source, b"other")]),
            "is there twice",
        ),
        "duplicate entries": (packed({**files, manifest.MANIFEST: twice}), "claim the same call"),
        "unlisted": (zipped([(n, whole[n]) for n in names] + [("x.pth", b"import os")]), "lists"),
        "more than it names": (packed({**files, "x.so": b"\x7fELF"}), "no entry names"),
        "another source": (packed({**files, source: files[source] + b" "}), "another digest"),
        "a later version": (
            edited(files, manifest.HEADER, lambda h: h.update(version=2)),
            "format version 2",
        ),
        "no time": (edited(files, manifest.HEADER, lambda h: h.update(created_at=1e300)), "time"),
        "no number": (
            edited(files, manifest.HEADER, lambda h: h.update(created_at=float("nan"))),
            "form of version 1",
        ),
        "an infinite timing": (
            edited(files, manifest.MANIFEST, first(lambda e: e["timing"].update(low=1e999))),
            "form of version 1",
        ),
        "a name that clears the terminal": (
            edited(files, manifest.HEADER, lambda h: h.update(device_name="\x1b[2J")),
            "is not allowed",
        ),
        "a machine that does": (
            edited(files, manifest.MANIFEST, first(lambda e: e.update(origin=codec.dump(evil)))),
            "is not allowed",
        ),
        "not valid elsewhere": (
            packed({**files, manifest.MANIFEST: codec.dumps(manifest_of(wrong)).encode()}),
            "was not found valid",
        ),
        "wrongly signed": (
            packed({**lawful, manifest.HEADER: files[manifest.HEADER].replace(b"EPYC", b"EPIC")}),
            "wrongly signed",
        ),
        "half signed": (packed({**lawful, signing.NAME: b"{}"}), "another form"),
    }


def manifest_of(*entries):
    return {"entries": [codec.dump(entry) for entry in entries]}


@pytest.fixture(scope="module")
def answers(folder, good, key, refused):
    """What the loader said to each, and what it did meanwhile."""
    public = str(key.with_name("me.key.pub"))
    orders = []
    for name, (data, _) in refused.items():
        path = folder / f"{name}.cast"
        path.write_bytes(data)
        orders.append({"name": name, "path": str(path), "trusted": None})
    with (folder / "large.cast").open("wb") as large:
        large.truncate(archive.MAX_BYTES + 1)
    os.mkfifo(folder / "pipe.cast")
    (folder / "link.cast").symlink_to(folder / "nowhere")
    for name, path in (
        ("oversized", "large.cast"), ("a pipe", "pipe.cast"), ("a folder", "."),
        ("nothing", "none.cast"), ("a dead link", "link.cast"), ("no path", "a\0b"),
    ):  # fmt: skip
        orders.append({"name": name, "path": str(folder / path), "trusted": None})
    orders.append({"name": "a device", "path": "/dev/zero", "trusted": None})
    orders.append({"name": "unsigned", "path": str(good), "trusted": [public]})
    signed = str(folder / "signed.cast")
    other = str(folder / "other.key.pub")
    orders.append({"name": "of another", "path": signed, "trusted": [other]})
    orders.append({"name": "accepted", "path": signed, "trusted": [public], "cache": str(CACHE)})
    lines = [json.dumps({"cache": str(folder / "cache"), **order}) for order in orders]
    ended = subprocess.run(
        [sys.executable, "-c", WATCHED],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_each_is_refused_in_a_sentence_with_a_next_step(answers, refused):
    for name, (said, _) in answers.items():
        if name != "accepted":
            assert re.fullmatch(r"[^\n]+\. Next: \S[^\n]+\.", said), (name, said)
            assert said.isprintable() or name == "no path"
            assert re.search(refused.get(name, ("", ""))[1], said), (name, said)


def test_nothing_of_them_was_written_or_run(answers, folder):
    assert {name: seen for name, (_, seen) in answers.items() if seen and name != "accepted"} == {}
    assert not (folder / "cache").exists()


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_one_that_is_accepted_was_seen_to_write_and_run(answers):
    said, seen = answers["accepted"]
    assert said == ""
    assert {event for event, _ in seen} & {"subprocess.Popen", "os.posix_spawn", "ctypes.dlopen"}
