"""The loop of a child: orders in, answers and progress out."""

import socket
from collections.abc import Callable
from typing import Any

from kernelforge_engine import codec
from kernelforge_engine.errors import KernelForgeError
from kernelforge_engine.exchanges import Notice, Progress
from kernelforge_engine.pool import frames
from kernelforge_engine.pool.orders import Report
from kernelforge_engine.pool.protocol import Raised


def serve(channel: socket.socket, orders: Any, handle: Callable[[Any, Notice], object]) -> None:
    """Answer orders until the other end closes; an error of ours is an answer too."""

    def notice(progress: Progress) -> None:
        report = Report(done=progress.done, total=progress.total, text=progress.text)
        frames.send(channel, codec.dumps(report).encode())

    while True:
        try:
            frame = frames.receive(channel, None)
        except frames.Closed:
            return
        try:
            answer = handle(codec.loads(orders, frame), notice)
        except KernelForgeError as error:
            answer = Raised.of(error)
        frames.send(channel, codec.dumps(answer).encode())
