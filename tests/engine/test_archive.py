"""A cast archive is byte-for-byte reproducible, and nothing strange in one is believed."""

import io
import stat
import zipfile

import pytest

from kernelforge_engine.cast import archive
from kernelforge_engine.codec import sha256
from kernelforge_engine.errors import CastRejected

FILES = {"HEADER.json": b"{}", "sources/a.cu": b"int x;\n" * 40, "manifest.json": b"[1]"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.cast"


def zipped(entries, *, path, change=None):
    """A ZIP written without our writer; `entries` is a list of (name, bytes)."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in entries:
            member = zipfile.ZipInfo(name, archive.EPOCH)
            member.compress_type = zipfile.ZIP_DEFLATED
            if change:
                change(member)
            file.writestr(member, data)
    path.write_bytes(buffer.getvalue())


def whole(files):
    """The entries with right checksums, HEADER.json first."""
    lines = "".join(f"{sha256(files[n])}  {n}\n" for n in sorted(files))
    ordered = sorted({**files, "checksums.sha256": lines.encode()}.items())
    return sorted(ordered, key=lambda e: e[0] != "HEADER.json")


def refused(path, words):
    with pytest.raises(CastRejected, match=words) as caught:
        archive.read(path)
    assert "Next: " in str(caught.value)
    return str(caught.value)


def test_round_trip_and_same_bytes(path, tmp_path):
    digest = archive.write(path, FILES)
    assert archive.read(path).files == FILES
    again = tmp_path / "y.cast"
    assert (
        archive.write(again, dict(reversed(FILES.items()))) == digest == sha256(path.read_bytes())
    )
    names = zipfile.ZipFile(path).namelist()
    assert names == ["HEADER.json", "checksums.sha256", "manifest.json", "sources/a.cu"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.cast", "y.cast"]


def test_a_zip_of_another_writer_is_read_if_it_keeps_the_rules(path):
    zipped(whole(FILES), path=path)
    assert archive.read(path).files == FILES


def test_missing_and_foreign_files(path):
    refused(path, "cannot be read")
    path.write_bytes(b"")
    refused(path, "does not end as a ZIP")
    path.write_bytes(b"PK" * 50)
    refused(path, "does not end as a ZIP")


@pytest.mark.parametrize("keep", [0.3, 0.7, 0.98])
def test_truncated(path, keep):
    archive.write(path, FILES)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])
    refused(path, "ZIP")


def test_every_flipped_byte_is_noticed_or_harmless(path):
    archive.write(path, FILES)
    data = path.read_bytes()
    for position in range(len(data)):
        path.write_bytes(data[:position] + bytes([data[position] ^ 0x40]) + data[position + 1 :])
        try:
            assert archive.read(path).files == FILES
        except CastRejected:
            continue


def test_tampered_entry_with_a_right_crc(path):
    entries = whole(FILES)
    zipped([(n, b"[2]" if n == "manifest.json" else d) for n, d in entries], path=path)
    refused(path, "not those that checksums.sha256 lists")


@pytest.mark.parametrize("name", [
    "../evil", "sources/../../evil", "/etc/passwd", "a\\b", "a/b/c/d/e", "sources/./x", "x y",
    "sources//x", "é", "..", "C:x", "a/", "x\n",
])  # fmt: skip
def test_names_that_leave_the_archive(path, name):
    zipped(whole({**FILES, name: b""}), path=path)
    refused(path, "is not allowed")
    with pytest.raises(CastRejected, match="is not allowed"):
        archive.write(path, {**FILES, name: b""})


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", ["manifest.json", "MANIFEST.json"])
def test_duplicate_names(path, name):
    zipped([*whole(FILES), (name, b"other")], path=path)
    refused(path, "is there twice")


def test_entries_must_be_plain_files(path):
    def link(member):
        member.external_attr = (stat.S_IFLNK | 0o777) << 16

    zipped(whole(FILES), path=path, change=link)
    refused(path, "not a regular file")


def test_unlisted_and_missing_entries(path):
    zipped([*whole(FILES), ("extra", b"")], path=path)
    refused(path, "not those that")
    zipped([e for e in whole(FILES) if e[0] != "manifest.json"], path=path)
    refused(path, "not those that")
    zipped([e for e in whole(FILES) if e[0] != "checksums.sha256"], path=path)
    refused(path, r"no checksums\.sha256")
    zipped(whole(FILES)[::-1], path=path)
    refused(path, "does not begin with")


def test_too_many_entries(path):
    many = {**FILES, **{f"e/{i}": b"" for i in range(300)}}
    zipped(whole(many), path=path)
    refused(path, "256 are allowed")
    with pytest.raises(CastRejected, match="256 are allowed"):
        archive.write(path, many)


def test_bombs(path, monkeypatch):
    zipped(whole({**FILES, "big": bytes(1 << 20)}), path=path)
    refused(path, "over 100 times")
    archive.write(path, {**FILES, "big": bytes(1 << 20)})
    assert len(archive.read(path).files["big"]) == 1 << 20
    monkeypatch.setattr(archive, "MAX_BYTES", 1 << 19)
    refused(path, "larger than")
    with pytest.raises(CastRejected, match="are allowed"):
        archive.write(path, {**FILES, "big": bytes(1 << 20)})


def test_sizes_that_lie(path):
    archive.write(path, FILES)
    data = bytearray(path.read_bytes())
    start = data.rindex(b"PK\x01\x02")
    data[start + 24 : start + 28] = (50).to_bytes(4, "little")
    path.write_bytes(data)
    refused(path, "shorter than|damaged")


@pytest.mark.parametrize("where", ["before", "behind", "comment"])
def test_hidden_bytes(path, where):
    archive.write(path, FILES)
    data = path.read_bytes()
    if where == "comment":
        data = data[:-2] + (5).to_bytes(2, "little") + b"hello"
    path.write_bytes(b"#!/bin/sh\n" + data if where == "before" else data + b"x")
    refused(path, "ZIP|bytes that belong to no entry")


def test_unwritable(tmp_path):
    with pytest.raises(FileNotFoundError):
        archive.write(tmp_path / "none" / "x.cast", FILES)
