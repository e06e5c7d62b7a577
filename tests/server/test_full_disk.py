"""No room: a quota, a disk that is really full, and folders that cannot be written."""

import json
import shutil
import subprocess
import sys

import pytest

BIG = """
import torch


def make_model():
    return lambda x: torch.relu(x) + torch.sigmoid(torch.relu(x))


def make_inputs():
    return torch.randn(256, 1024)
"""


def names(project):
    return sorted(str(p.relative_to(project)) for p in project.rglob("*") if p.is_file())


@pytest.fixture
def project(forged, tmp_path):
    """A copy of a project that a test may fill."""
    (tmp_path / "big.py").write_text(BIG)
    (tmp_path / "new.cpp").write_text((forged.folder / "roll.cpp").read_text() + "// new\n")
    shutil.copytree(forged.folder / ".kernelforge", tmp_path / "project")
    return tmp_path / "project"


def test_a_capture_beyond_the_quota_keeps_nothing(kernelforge, sentence, project, monkeypatch):
    before = names(project)
    monkeypatch.setenv("KERNELFORGE_QUOTA_BYTES", "2000000")
    text = sentence(kernelforge("capture", "big.py", "--json"), 1)
    assert "its quota is 2000000 bytes, and an example tensor of 1048" in text
    assert names(project) == before
    monkeypatch.setenv("KERNELFORGE_QUOTA_BYTES", "20000000")
    assert kernelforge("capture", "big.py").returncode == 0


def test_a_project_at_its_quota_takes_nothing_more_but_can_be_read(
    kernelforge, sentence, forged, project, monkeypatch
):
    monkeypatch.setenv("KERNELFORGE_QUOTA_BYTES", "50000")
    ended = kernelforge("evaluate", "new.cpp", "--variant", forged.variant)
    assert "its quota is 50000 bytes, and another candidate did not fit" in sentence(ended, 1)
    assert "another capture did not fit" in sentence(kernelforge("capture", "big.py"), 1)
    tree = json.loads(kernelforge("tree", "--variant", forged.variant, "--json").stdout)
    assert forged.node in [node["id"] for node in tree["nodes"]]
    assert (
        kernelforge("export", "-o", "x.cast", "--node", forged.node, "--no-measure").returncode == 0
    )


def test_a_new_project_may_have_no_room_at_all(kernelforge, sentence, monkeypatch):
    monkeypatch.setenv("KERNELFORGE_QUOTA_BYTES", "1")
    assert "its quota is 1 bytes" in sentence(kernelforge("cards"), 1)


@pytest.mark.parametrize("command", ["cards", "mcp"])
def test_a_quota_that_is_no_number_is_refused(kernelforge, sentence, monkeypatch, command):
    monkeypatch.setenv("KERNELFORGE_QUOTA_BYTES", "1e9")
    assert "KERNELFORGE_QUOTA_BYTES = '1e9' is not accepted" in sentence(kernelforge(command), 2)


WRITERS = [
    "capture big.py", "optimize", "evaluate new.cpp --variant v1", "tree --variant v1", "cards",
    "export -o x.cast", "doctor", "mcp", "demo --json", "measure big.py --cast good.cast",
]  # fmt: skip


@pytest.mark.parametrize("line", WRITERS)
def test_a_project_below_a_file_is_refused_by_every_command(kernelforge, sentence, forged, line):
    below = forged.folder / "model.py" / "project"
    assert f"{below} cannot be written" in sentence(
        kernelforge(*line.split(), "--project", below), 1
    )


def test_a_project_that_no_folder_can_be_is_named(kernelforge, sentence):
    text = sentence(kernelforge("cards", "--project", "/proc/kernelforge"), 1)
    assert "/proc/kernelforge cannot be written" in text


class Mounts:
    """Runs the command where a small or read-only file system lies over a folder."""

    def __init__(self, folder):
        self._folder = folder

    def run(self, mount, arguments):
        command = [sys.executable, "-m", "kernelforge_server", *map(str, arguments)]
        return subprocess.run(
            ["unshare", "-rm", "sh", "-c", f'{mount} || exit 77; exec "$@"', "sh", *command],
            capture_output=True, text=True, cwd=self._folder, timeout=120, check=False,
        )  # fmt: skip


@pytest.fixture
def mounts(kernelforge, tmp_path):
    made = Mounts(tmp_path)
    if shutil.which("unshare") is None or made.run("mount -t tmpfs none /mnt", []).returncode == 77:
        pytest.skip("this user may not mount anything, not even in a namespace of its own")
    return made


def taken_kib(folder):
    """What the files of a folder take in pages of 4 KiB."""
    return sum(-(-p.stat().st_size // 4096) * 4 for p in folder.rglob("*") if p.is_file())


def copied(size):
    """A file system of that size over the project, with its content."""
    return (
        "cp -r project copy && mount -t tmpfs -o size=" + size + " none project "
        "&& cp -r copy/. project"
    )


def test_a_full_disk_is_named_by_a_capture(mounts, sentence, project):
    ended = mounts.run(copied("1800k"), ["capture", "big.py", "--json"])
    assert "No space left on device" in sentence(ended, 1)


def test_a_full_disk_is_named_by_a_build(mounts, sentence, forged, project):
    full = "mount -t tmpfs -o size=4k none project/artifacts"
    arguments = ["evaluate", "new.cpp", "--variant", forged.variant, "--json"]
    text = sentence(mounts.run(full, arguments), 1)
    assert "A compiled candidate cannot be written to" in text
    assert "No space left on device" in text


def test_a_full_disk_is_named_by_the_database(mounts, sentence, forged, project):
    arguments = ["evaluate", "new.cpp", "--variant", forged.variant, "--json"]
    size = f"{taken_kib(project) + 72}k"  # room for a built candidate, and for no record of it
    assert "is full" in sentence(mounts.run(copied(size), arguments), 1)


def test_a_full_disk_is_named_by_an_export(kernelforge, sentence, forged, project, tmp_path):
    (tmp_path / ".x.cast.part").symlink_to("/dev/full")
    ended = kernelforge("export", "-o", "x.cast", "--node", forged.node, "--no-measure")
    assert "x.cast: No space left on device" in sentence(ended, 1)
    assert not list(tmp_path.glob("*x.cast*"))


@pytest.mark.parametrize("line", ["capture big.py", "evaluate new.cpp --variant VARIANT"])
def test_a_read_only_project_is_named(mounts, sentence, forged, project, line):
    read_only = "mount --bind project project && mount -o remount,ro,bind project"
    ended = mounts.run(read_only, line.replace("VARIANT", forged.variant).split())
    assert f"{project} cannot be written" in sentence(ended, 1)


def test_a_cast_and_the_shim_are_not_written_to_a_read_only_folder(
    mounts, sentence, forged, project, tmp_path, monkeypatch
):
    (tmp_path / "fixed").mkdir()
    read_only = "mount -t tmpfs -o ro none fixed"
    arguments = ["export", "-o", "fixed/x.cast", "--node", forged.node, "--no-measure"]
    ended = mounts.run(read_only, arguments)
    assert "fixed/x.cast: Read-only file system" in sentence(ended, 1)
    monkeypatch.setenv("KERNELFORGE_CACHE", str(tmp_path / "fixed"))
    ended = mounts.run(read_only, ["evaluate", "new.cpp", "--variant", forged.variant])
    assert "let KERNELFORGE_CACHE name another folder" in sentence(ended, 1)
