"""Which event loop the servers run on."""

import subprocess
import sys

import pytest

# An alarm looks, in the thread of the command, which loop runs it.
PROGRAM = """
import asyncio, signal, sys


def tell(*_):
    try:
        print("LOOP", type(asyncio.get_running_loop()).__module__, file=sys.stderr, flush=True)
    except RuntimeError:  # none yet
        pass


signal.signal(signal.SIGALRM, tell)
signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
from kernelforge_server.__main__ import main

main()
"""


@pytest.mark.parametrize("command", [["mcp"], ["serve", "--port", "0"]], ids=["mcp", "serve"])
def test_a_server_runs_on_uvloop(tmp_path, command):
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *command, "--project", str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    ) as server:  # fmt: skip
        found = next(line for line in server.stderr if line.startswith("LOOP"))
        server.kill()
    assert found == "LOOP uvloop\n"
