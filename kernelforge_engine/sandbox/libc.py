"""The C library through ctypes: a call that fails raises OSError with its errno."""

import ctypes
import mmap
import os
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]


def checked(result: int) -> int:
    """A result that is not negative, else OSError."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def syscall(number: int, *arguments: Any) -> int:
    """A system call by its number; integers are widened to the size of a register."""
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return checked(LIBC.syscall(ctypes.c_long(number), *wide))


def prctl(option: int, value: int) -> int:
    """The process control call, with one argument."""
    return checked(LIBC.prctl(option, ctypes.c_ulong(value), *[ctypes.c_ulong(0)] * 3))


def set_variable(name: str, value: str) -> None:
    """Set a variable of this process for C libraries that are loaded later."""
    checked(LIBC.setenv(name.encode(), value.encode(), 1))


def map_shared(descriptor: int) -> int:
    """The address of a whole file, mapped for reading and writing; it keeps no descriptor open."""
    size = os.fstat(descriptor).st_size
    protection = mmap.PROT_READ | mmap.PROT_WRITE
    address = LIBC.mmap(None, size, protection, mmap.MAP_SHARED, descriptor, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(address)
