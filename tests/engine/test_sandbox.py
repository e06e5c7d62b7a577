"""The sandbox, entered for real in processes of its own."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

PRELUDE = """
import json, os, socket, subprocess, sys, threading
from kernelforge_engine.sandbox.limits import Limits
from kernelforge_engine.sandbox.lock import Policy, enter
from kernelforge_engine.sandbox import landlock, lock, seccomp

def outcome(act):
    try:
        act()
    except OSError as error:
        return error.errno
    except RuntimeError:
        return "refused"
    return "worked"
"""


def inside(script, *arguments):
    """What a script printed as JSON, and its exit code."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", PRELUDE + textwrap.dedent(script), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_the_level_names_what_this_machine_offers():
    level = inside("print(json.dumps(enter(Policy())))")
    parts = level.partition(";")[0].split("+")
    assert parts[-1] == "rlimits"
    if os.uname().machine in ("x86_64", "aarch64"):
        assert "seccomp" in parts
    if parts[0].startswith("landlock"):
        assert ";" not in level


def test_a_lock_that_does_nothing_says_which_doors_are_open():
    level = inside("""
        landlock.restrict = lambda read, write: 0
        seccomp.restrict = lambda spawn, native: False
        print(json.dumps(enter(Policy(network=False))))
    """)
    assert level == "rlimits; open: read, socket, process"


def test_without_landlock_the_level_says_that_files_can_be_read():
    level = inside("""
        landlock.restrict = lambda read, write: 0
        print(json.dumps(enter(Policy(network=False))))
    """)
    assert level == "seccomp+rlimits; open: read"


def test_files_outside_the_lists_can_be_neither_read_nor_changed(tmp_path):
    readable, writable, secret = tmp_path / "r", tmp_path / "w", tmp_path / "secret"
    for folder in (readable, writable, secret):
        folder.mkdir()
        (folder / "file").write_text("text")
    found = inside(
        """
        readable, writable, secret = sys.argv[1:]
        level = enter(Policy(read=(readable,), write=(writable,), spawn=True))
        tries = {
            "read listed": lambda: open(f"{readable}/file").read(),
            "write read-only": lambda: open(f"{readable}/file", "w"),
            "write listed": lambda: open(f"{writable}/new", "w"),
            "remove listed": lambda: os.remove(f"{writable}/file"),
            "read secret": lambda: open(f"{secret}/file").read(),
            "list secret": lambda: os.listdir(secret),
            "write secret": lambda: open(f"{secret}/new", "w"),
        }
        print(json.dumps({"level": level, **{k: outcome(v) for k, v in tries.items()}}))
        """,
        *map(str, (readable, writable, secret)),
    )
    if not found.pop("level").startswith("landlock"):
        pytest.skip("this kernel has no Landlock")
    allowed = {"read listed", "write listed", "remove listed"}
    assert {k for k, v in found.items() if v == "worked"} == allowed


def test_a_runner_can_start_nothing_reach_nobody_and_change_no_file(tmp_path):
    (tmp_path / "file").write_text("text")
    found = inside(
        """
        path = sys.argv[1]
        enter(Policy(write=(path,), native=True))
        tries = {
            "socket": lambda: socket.socket(),
            "unix socket": lambda: socket.socketpair(),
            "fork": os.fork,
            "program": lambda: subprocess.run(["/bin/true"]),
            "thread": lambda: threading.Thread(target=print).start(),
            "signal": lambda: os.kill(os.getppid(), 0),
            "mode": lambda: os.chmod(f"{path}/file", 0o777),
            "write": lambda: open(f"{path}/file", "w"),
            "remove": lambda: os.remove(f"{path}/file"),
        }
        print(json.dumps({k: outcome(v) for k, v in tries.items()}))
        """,
        str(tmp_path),
    )
    assert "worked" not in found.values(), found


def test_threads_started_between_the_stages_obey_both():
    found = inside("""
        answers, go = [], threading.Event()

        def work():
            go.wait()
            answers.append(outcome(lambda: os.listdir("/")))
            answers.append(outcome(lambda: socket.socket()))

        thread = threading.Thread(target=work)
        level = enter(Policy(), thread.start)
        go.set()
        thread.join()
        print(json.dumps([level, answers]))
    """)
    level, (listing, network) = found
    assert network == 1
    assert listing == 13 or not level.startswith("landlock")


def test_a_compiler_may_start_programs_but_no_namespace():
    found = inside("""
        system = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache")
        enter(Policy(read=system, write=("/dev/null",), spawn=True))
        program = outcome(lambda: subprocess.run(["/bin/true"], check=True))
        import ctypes
        unshared = ctypes.CDLL(None).unshare(0x10000000)
        print(json.dumps([program, unshared]))
    """)
    assert found == ["worked", -1]


def test_limits_end_what_asks_for_too_much():
    found = inside("""
        enter(Policy(spawn=True, limits=Limits(address_bytes=1 << 30, open_files=16)))
        try:
            bytearray(2 << 30)
        except MemoryError:
            print(json.dumps("refused"))
    """)
    assert found == "refused"
