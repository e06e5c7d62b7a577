"""What a candidate could still do on this machine, said by `doctor`, and refused where it must be.

A filter in front of the command takes Landlock away, as containers and older kernels do.
"""

import json
import subprocess
import sys

import pytest

WITHOUT_LANDLOCK = """
import ctypes, os, struct, sys
LOAD, EQUAL, RETURN, ALLOW, NOT_THERE = 0x20, 0x15, 0x06, 0x7FFF0000, 0x00050000 | 38
CREATE_RULESET = 444  # on every machine
code = [(LOAD, 0, 0, 0), (EQUAL, 0, 1, CREATE_RULESET), (RETURN, 0, 0, NOT_THERE),
        (RETURN, 0, 0, ALLOW)]
body = b"".join(struct.pack("=HBBI", *each) for each in code)
buffer = ctypes.create_string_buffer(body, len(body))
program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(buffer))
libc = ctypes.CDLL(None)
assert not libc.prctl(38, 1, 0, 0, 0)
assert not libc.prctl(22, 2, program, 0, 0)
os.execv(sys.executable, [sys.executable, "-m", "kernelforge_server", *sys.argv[1:]])
"""


@pytest.fixture
def without_landlock(forged, monkeypatch):
    def run(*arguments, required):
        monkeypatch.setenv("KERNELFORGE_REQUIRE_SANDBOX", str(int(required)))
        return subprocess.run(
            [sys.executable, "-c", WITHOUT_LANDLOCK, *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=forged.folder,
            timeout=240,
            check=False,
        )

    return run


def test_doctor_says_what_a_candidate_cannot_do(forged):
    status = json.loads(forged.run("doctor", "--json").stdout)
    assert status["isolation"].endswith("rlimits")
    if status["isolation"].startswith("landlock"):
        assert status["open"] == []
        assert "cannot read files, open sockets, start processes" in forged.run("doctor").stdout


def test_doctor_names_what_is_still_open(without_landlock):
    status = json.loads(without_landlock("doctor", "--json", required=False).stdout)
    assert status["open"] == ["read"]
    assert "a candidate could still read files" in without_landlock("doctor", required=False).stdout


def test_no_candidate_runs_where_something_is_open_and_nothing_may_be(
    forged, without_landlock, sentence
):
    (forged.folder / "open.cpp").write_text((forged.folder / "roll.cpp").read_text() + "// open\n")
    command = ("evaluate", "--variant", forged.variant, "open.cpp", "--json")
    said = sentence(without_landlock(*command, required=True), 2)
    assert "could still read files" in said
    evaluated = json.loads(without_landlock(*command, required=False).stdout)
    assert evaluated["status"] == "valid"
