"""Capabilities and the network: what is given up beside files and system calls."""

import ctypes
import os
import struct

from kernelforge_engine.sandbox import libc

CAPABILITY_VERSION = 0x20080522
NEW_USER, NEW_NET = 0x10000000, 0x40000000


def drop_capabilities() -> None:
    """Make a process of root an ordinary one that owns root's files; no effect on others."""
    header = ctypes.create_string_buffer(struct.pack("Ii", CAPABILITY_VERSION, 0), 8)
    libc.checked(libc.LIBC.capset(header, ctypes.create_string_buffer(24)))


def leave_network() -> bool:
    """Move into a network namespace without any interface; False where that is not allowed.

    An ordinary user needs a user namespace for it, which only a process without further threads
    may enter. Root does not take that way: it would lose the right to read other users' files.
    """
    flags = NEW_NET if os.geteuid() == 0 else NEW_USER | NEW_NET
    return bool(libc.LIBC.unshare(flags) == 0)
