"""A seccomp filter in classic BPF: the calls below fail with an error, everything else passes.

A second, lethal filter ends the process at most of them. Of all filters the sternest answer counts;
what the lethal one lets pass fails as before.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from kernelforge_engine.sandbox import libc, syscalls
from kernelforge_engine.sandbox.landlock import PR_SET_NO_NEW_PRIVS

SET_MODE_FILTER, EVERY_THREAD = 1, 1  # SECCOMP_FILTER_FLAG_TSYNC: threads that already run too
# Column of the call numbers, and the value of `seccomp_data.arch` (linux/audit.h).
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
X32_CALLS = 0x40000000  # x86_64 only: the same calls under other numbers

LOAD, AND, RETURN = 0x20, 0x54, 0x06
JUMP_EQUAL, JUMP_AT_LEAST = 0x15, 0x35
ALLOW, KILL, FAIL = 0x7FFF0000, 0x80000000, 0x00050000
AT_NUMBER, AT_ARCH, AT_ARGUMENTS = 0, 4, 16

NEW_NAMESPACES = 0x7E020080  # every CLONE_NEW* flag
CHANGES_FILE = os.O_ACCMODE | os.O_CREAT | os.O_TRUNC

Instruction = tuple[int, int, int, int]


@dataclass(frozen=True)
class _OnlyIf:
    """A call that passes only when (argument & mask) == value."""

    calls: syscalls.Numbers
    argument: int
    mask: int
    value: int


class _Program(ctypes.Structure):
    _fields_: ClassVar = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]


def restrict(*, spawn: bool, native: bool, lethal: bool = False) -> bool:
    """Deny network, other processes, kernel interfaces and, unless `spawn`, new processes and
    threads; with `native` also every change to a file. Covers all threads of this process.

    With `lethal` a denied call ends the process. Those that a C or OpenMP library may try by itself
    (a place in the schedule, a terminal for its last words) are left to the filter before.

    Returns:
        Whether the filter is in force; False on a machine or kernel that has none.
    """
    machine = os.uname().machine
    if machine not in MACHINES:
        return False
    column, arch = MACHINES[machine]
    rules = _lethal(column, spawn, native) if lethal else _failing(column, spawn, native)
    code = b"".join(struct.pack("=HBBI", *i) for i in _filter(column, arch, rules))
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.addressof(buffer))
    try:
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1)
        number = syscalls.SECCOMP[column]
        return not libc.syscall(number, SET_MODE_FILTER, EVERY_THREAD, ctypes.byref(program))
    except OSError:
        return False


def _filter(column: int, arch: int, rules: Iterator[Instruction]) -> Iterator[Instruction]:
    yield LOAD, 0, 0, AT_ARCH
    yield JUMP_EQUAL, 1, 0, arch
    yield RETURN, 0, 0, KILL
    yield LOAD, 0, 0, AT_NUMBER
    if column == 0:
        yield JUMP_AT_LEAST, 0, 1, X32_CALLS
        yield RETURN, 0, 0, KILL
    yield from rules
    yield RETURN, 0, 0, ALLOW


def _denied(spawn: bool, native: bool) -> syscalls.Numbers:
    denied = syscalls.NETWORK | syscalls.OTHERS | syscalls.KERNEL
    denied |= {} if spawn else syscalls.PROCESSES
    return denied | (syscalls.NATIVE if native else {})


def _failing(column: int, spawn: bool, native: bool) -> Iterator[Instruction]:
    denied = _denied(spawn, native) | (syscalls.SCHEDULE if native else {})
    yield from _answered(denied, column, FAIL | errno.EPERM)
    yield from _answered(syscalls.HIDDEN, column, FAIL | errno.ENOSYS)
    for rule in _judged(spawn, native):
        yield from _judge(rule, column)


def _lethal(column: int, spawn: bool, native: bool) -> Iterator[Instruction]:
    yield from _answered(_denied(spawn, native), column, KILL)


def _answered(calls: syscalls.Numbers, column: int, answer: int) -> Iterator[Instruction]:
    for number in _numbers(calls, column):
        yield JUMP_EQUAL, 0, 1, number
        yield RETURN, 0, 0, answer


def _numbers(calls: syscalls.Numbers, column: int) -> list[int]:
    return [n for numbers in calls.values() if (n := numbers[column]) is not None]


def _judged(spawn: bool, native: bool) -> list[_OnlyIf]:
    rules = [_OnlyIf(syscalls.PRLIMIT, 0, 0xFFFFFFFF, 0)]
    if spawn:
        rules.append(_OnlyIf(syscalls.CLONE, 0, NEW_NAMESPACES, 0))
    else:
        rules.append(_OnlyIf(syscalls.TGKILL, 0, 0xFFFFFFFF, os.getpid()))
    if native:
        rules.append(_OnlyIf(syscalls.OPEN, 1, CHANGES_FILE, 0))
        rules.append(_OnlyIf(syscalls.OPENAT, 2, CHANGES_FILE, 0))
    return rules


def _judge(rule: _OnlyIf, column: int) -> Iterator[Instruction]:
    for number in _numbers(rule.calls, column):
        yield JUMP_EQUAL, 0, 5, number
        # Both machines are little-endian: the low half of an argument comes first.
        yield LOAD, 0, 0, AT_ARGUMENTS + 8 * rule.argument
        yield AND, 0, 0, rule.mask
        yield JUMP_EQUAL, 1, 0, rule.value
        yield RETURN, 0, 0, FAIL | errno.EPERM
        yield LOAD, 0, 0, AT_NUMBER
