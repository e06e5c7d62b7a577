"""Length-prefixed JSON frames over a socket of their own, the same code on both ends."""

import select
import socket
import struct
import time

MAX_FRAME = 64 << 20
LENGTH = struct.Struct("!I")


class Closed(ConnectionError):
    """The other end is gone."""


class Silent(TimeoutError):
    """Nothing came within the time allowed."""


def send(channel: socket.socket, frame: bytes) -> None:
    """Write one frame.

    Raises:
        Closed: the other end is gone.
    """
    try:
        channel.sendall(LENGTH.pack(len(frame)) + frame)
    except (BrokenPipeError, ConnectionResetError) as error:
        raise Closed from error


def hand_over(channel: socket.socket, descriptor: int) -> None:
    """Give the other end an open file of this process.

    Raises:
        Closed: the other end is gone.
    """
    try:
        socket.send_fds(channel, [b"\0"], [descriptor])
    except (BrokenPipeError, ConnectionResetError) as error:
        raise Closed from error


def take_over(channel: socket.socket) -> int:
    """The descriptor that the other end hands over.

    Raises:
        Closed: the other end is gone.
    """
    try:
        _, descriptors, _, _ = socket.recv_fds(channel, 1, 1)
    except ConnectionResetError as error:
        raise Closed from error
    if not descriptors:
        raise Closed
    return descriptors[0]


def receive(channel: socket.socket, seconds: float | None) -> bytes:
    """Read one frame, waiting at most `seconds` for all of it (None: for ever).

    Raises:
        Closed: the other end is gone, or sent a length no frame has.
        Silent: the time is over.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    (size,) = LENGTH.unpack(_exactly(channel, LENGTH.size, deadline))
    if size > MAX_FRAME:
        raise Closed
    return _exactly(channel, size, deadline)


def _exactly(channel: socket.socket, count: int, deadline: float | None) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        if not select.select([channel], [], [], left)[0]:
            raise Silent
        try:
            part = channel.recv(min(count - len(parts), 1 << 20))
        except ConnectionResetError as error:
            raise Closed from error
        if not part:
            raise Closed
        parts += part
    return bytes(parts)
