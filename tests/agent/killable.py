"""A run of the agent as processes that are held at a step, stopped and killed."""

import fcntl
import json
import os
import signal
import sqlite3
import stat
import subprocess
import time
from contextlib import closing, contextmanager

import anyio

from kernelforge_server import settings

DEADLINE_S = 120
MODEL = """import torch


def make_model():
    return lambda x, y: (torch.roll(x, 1), torch.flip(y, [0]))


def make_inputs():
    return torch.ones(8, 8), torch.ones(512, 512)
"""
COMPILER = """#!/bin/sh
while [ -e "{held}" ]; do sleep 0.02; done
exec /usr/bin/env -S PATH="{path}" g++ "$@"
"""


class Run:
    """The agent in a folder, as a process that is started, stopped and killed."""

    def __init__(self, folder, command, processes, played):
        self.folder, self._command, self._processes = folder, command, processes
        self.played, self._agent = played, None
        self._held = folder / "tools" / "held"
        (folder / "tools" / "bin").mkdir(parents=True)
        (folder / "model.py").write_text(MODEL)
        path = os.environ["PATH"]  # noqa: TID251  a child's
        compiler = folder / "tools" / "bin" / "g++"
        compiler.write_text(COMPILER.format(held=self._held, path=path))
        compiler.chmod(compiler.stat().st_mode | stat.S_IXUSR)
        self._environment = {**os.environ, "PATH": f"{compiler.parent}:{path}"}  # noqa: TID251
        self._lock = settings.resolve(folder).cache / "locks" / "cpu.lock"

    def start(self, *arguments):
        self._agent = subprocess.Popen(
            [*self._command, "agent", *arguments], cwd=self.folder, env=self._environment,
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def ended(self):
        said, words = self._agent.communicate(timeout=DEADLINE_S)
        return self._agent.returncode, json.loads(said), words

    def command(self, *arguments):
        """What a command says."""
        return subprocess.run(
            [*self._command, *arguments], cwd=self.folder, env=self._environment,
            stdout=subprocess.PIPE, check=True,
        ).stdout  # fmt: skip

    def signal(self, number):
        self._agent.send_signal(number)

    async def kill(self, *, also_its_server):
        """End the agent; its server ends by itself, or is killed with everything below it."""
        below = self._processes.below(self._agent.pid)
        if also_its_server:
            for pid in self._processes.below(self._agent.pid, "kernelforge_server mcp"):
                os.kill(pid, signal.SIGKILL)
        self.signal(signal.SIGKILL)
        self._held.unlink(missing_ok=True)
        self._agent.communicate()
        await self._processes.gone(below)

    def rows(self, query, *given):
        with closing(sqlite3.connect(self.folder / ".kernelforge" / "forge.db")) as database:
            return database.execute(query, given).fetchall()

    def until(self, query, *given):
        """Wait until a query has rows."""
        deadline = time.monotonic() + DEADLINE_S
        while not (found := self.rows(query, *given)):
            assert self._agent.poll() is None, self._agent.communicate()
            assert time.monotonic() < deadline, query
            time.sleep(0.01)
        return found

    def records(self, author=1):
        (found,) = self.folder.glob(f".kernelforge/agent/*/{author}.jsonl")
        whole = found.read_bytes().rpartition(b"\n")[0]
        return [json.loads(line) for line in whole.splitlines()]

    @contextmanager
    def writing(self):
        """While this is held, nobody else writes into the database."""
        path = self.folder / ".kernelforge" / "forge.db"
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            yield
            database.execute("ROLLBACK")

    @contextmanager
    def device(self):
        """While this is held, nobody else times anything."""
        with self._lock.open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def close(self):
        if self._agent is not None and self._agent.poll() is None:
            self._agent.kill()
            self._agent.communicate()

    def hold_compiler(self):
        """Let no compiler go on, until the agent is killed."""
        self._held.touch()

    async def compiling(self):
        """Wait until a compiler is at work."""
        await self._processes.appears(str(self._held.parent), parent=self._agent.pid)

    async def stopped_while_asking(self, begun, *given):
        """Stop the agent when its server works on what it asks for, before it can be answered: the
        server cannot begin, which the query would show, until the agent is stopped."""
        while not self.rows(begun, *given):
            with self.writing():
                self.signal(signal.SIGCONT)
                await anyio.sleep(0.2)
                self.signal(signal.SIGSTOP)
            await anyio.sleep(0.3)
