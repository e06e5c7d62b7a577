"""The child's first act: die with the parent, and find the channel it was given."""

import argparse
import ctypes
import os
import signal
import socket

PR_SET_PDEATHSIG = 1


def channel(*options: str) -> tuple[socket.socket, dict[str, int]]:
    """The socket named by `--fd`, and the numbers given for further `--option`s.

    The kernel sends the signal when the *thread* that started this process ends; whoever starts a
    Child from another thread than its main one waits for the child in that thread.
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    parser = argparse.ArgumentParser()
    for option in ("parent", "fd", *options):
        parser.add_argument(f"--{option}", type=int, required=True)
    given = vars(parser.parse_args())
    # Imports took a while: a parent that ended meanwhile sends no signal any more.
    if os.getppid() != given.pop("parent"):
        raise SystemExit(1)
    return socket.socket(fileno=given.pop("fd")), given
