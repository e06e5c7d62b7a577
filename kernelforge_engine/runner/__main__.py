"""The Runner process: one candidate, commands until the channel closes."""

import os
import socket
from collections.abc import Callable
from typing import Any

from kernelforge_engine import codec
from kernelforge_engine.calls import Backend
from kernelforge_engine.pool import adopt, frames
from kernelforge_engine.pool.protocol import (
    Begin,
    Collect,
    Done,
    Failed,
    Load,
    Loaded,
    PrepareTiming,
    Run,
    RunnerCommand,
    Sample,
    Sampled,
)
from kernelforge_engine.runner import cpu, cuda
from kernelforge_engine.runner.executor import Executor, Unable, unable
from kernelforge_engine.sandbox import libc

Command = Begin | Load | Run | PrepareTiming | Sample | Collect
Loading = Callable[[Load, int], tuple[Executor, str]]
BACKENDS: dict[Backend, Loading] = {"cpu": cpu.load, "cuda": cuda.load}
COMMAND: Any = RunnerCommand


class Runner:
    """The one candidate of this process, and whether it can still be asked."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._executor: Executor | None = None
        self.spent = False

    def answer(self, command: Command) -> object:
        """The reply to a command."""
        try:
            return self._done(command)
        except Unable as failure:
            self.spent = failure.spent
            return failure.reply

    def _done(self, command: Command) -> object:
        if isinstance(command, Begin):
            if command.backend == "cuda":
                cuda.begin(command.device)
            return Done()
        if isinstance(command, Load):
            load = BACKENDS[command.artifact.backend]
            self._executor, level = load(command, self._arena())
            return Loaded(sandbox=level)
        if self._executor is None:
            raise unable(stage="load", error="no candidate is loaded", ours=True)
        if isinstance(command, Sample):
            return Sampled(us=self._executor.sample())
        if isinstance(command, PrepareTiming):
            self._executor.prepare(command)
        elif isinstance(command, Collect):
            self._executor.collect(command.index)
        else:
            self._executor.run()
        return Done()

    def _arena(self) -> int:
        """The address of the memory whose descriptor comes behind the command."""
        descriptor = frames.take_over(self._channel)
        address = libc.map_shared(descriptor)
        # With the descriptor a candidate could shrink the file under the process that judges it.
        os.close(descriptor)
        return address


def main() -> None:
    """Answer commands until the parent is gone or the device is lost."""
    channel, _ = adopt.channel()
    # Whatever these need is imported here: afterwards no file can be read.
    for message in (COMMAND, Loaded, Done, Sampled, Failed):
        codec.adapter(message)
    runner = Runner(channel)
    while not runner.spent:
        try:
            frame = frames.receive(channel, None)
            reply = runner.answer(codec.loads(COMMAND, frame))
        except frames.Closed:
            break
        frames.send(channel, codec.dumps(reply).encode())
    # No clean-up of a lost device, and none of a candidate's own.
    os._exit(0)


if __name__ == "__main__":
    main()
