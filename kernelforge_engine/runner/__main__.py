"""The Runner process: one candidate, commands until the channel closes."""

import os
from collections.abc import Callable
from typing import Any

from kernelforge_engine import codec
from kernelforge_engine.calls import Backend
from kernelforge_engine.pool import adopt, frames
from kernelforge_engine.pool.protocol import (
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

Command = Load | Run | PrepareTiming | Sample | Collect
Loading = Callable[[Load, int], tuple[Executor, str]]
BACKENDS: dict[Backend, Loading] = {"cpu": cpu.load, "cuda": cuda.load}
COMMAND: Any = RunnerCommand


class Runner:
    """The one candidate of this process, and whether it can still be asked."""

    def __init__(self, arena: int) -> None:
        self._arena = arena
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
        if isinstance(command, Load):
            self._executor, level = BACKENDS[command.artifact.backend](command, self._arena)
            return Loaded(sandbox=level)
        if self._executor is None:
            raise unable(stage="load", error="no candidate is loaded", ours=True)
        if isinstance(command, Sample):
            return Sampled(us=self._executor.sample())
        if isinstance(command, PrepareTiming):
            self._executor.prepare(command.sets, command.calls, command.restored)
        elif isinstance(command, Collect):
            self._executor.collect(command.index)
        else:
            self._executor.run()
        return Done()


def main() -> None:
    """Answer commands until the parent is gone or the device is lost."""
    channel, options = adopt.channel("arena")
    arena = libc.map_shared(options["arena"])
    # With the descriptor a candidate could shrink the file under the process that judges it.
    os.close(options["arena"])
    # Whatever these need is imported here: afterwards no file can be read.
    for message in (COMMAND, Loaded, Done, Sampled, Failed):
        codec.adapter(message)
    runner = Runner(arena)
    while not runner.spent:
        try:
            frame = frames.receive(channel, None)
        except frames.Closed:
            break
        reply = runner.answer(codec.loads(COMMAND, frame))
        frames.send(channel, codec.dumps(reply).encode())
    # No clean-up of a lost device, and none of a candidate's own.
    os._exit(0)


if __name__ == "__main__":
    main()
