"""Landlock: an allow-list of files for this thread and those it starts later, TCP denied.

Numbers are those of `linux/landlock.h`; the system calls have the same number on every machine.
A new domain covers the calling thread only, so it must be entered before other threads exist.
"""

import ctypes
import os
import struct
from collections.abc import Sequence
from pathlib import Path

from kernelforge_engine.sandbox import libc

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
VERSION_FLAG = 1
PATH_BENEATH = 1
PR_SET_NO_NEW_PRIVS = 38

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REMOVE_DIR, REMOVE_FILE = 1 << 4, 1 << 5
MAKE_DIR, MAKE_REG, MAKE_SYM = 1 << 7, 1 << 8, 1 << 12
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
FIRST_RIGHTS = (1 << 13) - 1  # what the first ABI can handle
RIGHTS_SINCE = {2: REFER, 3: TRUNCATE, 5: IOCTL_DEV}
OF_A_FILE = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV

READ = EXECUTE | READ_FILE | READ_DIR
# Without EXECUTE: what a compiler writes is data, and nothing here has to run it.
WRITE = (
    (READ_FILE | READ_DIR | WRITE_FILE | TRUNCATE | REFER)
    | (REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SYM)
)  # fmt: skip

BIND_AND_CONNECT_TCP, SINCE_NET = 0b11, 4
ABSTRACT_SOCKETS_AND_SIGNALS, SINCE_SCOPES = 0b11, 6


def restrict(read: Sequence[str], write: Sequence[str]) -> int:
    """Allow reading below `read`, and changing below `write`; nothing else can be opened.

    Returns:
        The ABI that was used, or 0 when this kernel does not offer Landlock.
    """
    try:
        abi = libc.syscall(CREATE_RULESET, None, 0, VERSION_FLAG)
        handled = FIRST_RIGHTS | sum(r for since, r in RIGHTS_SINCE.items() if abi >= since)
        ruleset = _ruleset(abi, handled)
    except OSError:
        return 0
    try:
        for paths, rights in ((read, READ), (write, WRITE)):
            for path in paths:
                _allow(ruleset, path, rights & handled)
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1)
        libc.syscall(RESTRICT_SELF, ruleset, 0)
    except OSError:
        return 0
    finally:
        os.close(ruleset)
    return abi


def _ruleset(abi: int, handled: int) -> int:
    words = [handled]
    if abi >= SINCE_NET:
        words.append(BIND_AND_CONNECT_TCP)
    if abi >= SINCE_SCOPES:
        words.append(ABSTRACT_SOCKETS_AND_SIGNALS)
    attributes = struct.pack(f"{len(words)}Q", *words)
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    return libc.syscall(CREATE_RULESET, buffer, len(attributes), 0)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # a path that is not there needs no permission
    try:
        if not Path(path).is_dir():
            rights &= OF_A_FILE
        rule = struct.pack("=Qi", rights, place)
        libc.syscall(
            ADD_RULE, ruleset, PATH_BENEATH, ctypes.create_string_buffer(rule, len(rule)), 0
        )
    finally:
        os.close(place)
