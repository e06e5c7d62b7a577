"""The C exports of `native/shim.cpp`, with their types."""

import ctypes
from ctypes import c_char_p, c_double, c_int, c_int64, c_size_t, c_uint, c_uint64, c_void_p
from pathlib import Path

SIGNATURES: dict[str, tuple[type | None, list[type]]] = {
    "kf_error": (c_char_p, []),
    "kf_hook": (c_void_p, [c_char_p, c_char_p, c_int]),
    "kf_unhook": (None, [c_void_p]),
    "kf_misses": (c_uint64, [c_void_p, c_int]),
    "kf_variant": (c_void_p, [c_void_p, c_size_t]),
    "kf_output": (None, [c_void_p, c_int64, c_int, c_size_t, c_void_p, c_void_p]),
    "kf_input": (None, [c_void_p, c_size_t, c_int]),
    "kf_buffer": (None, [c_void_p, c_int64, c_int64, c_size_t, c_int]),
    "kf_launch": (None, [c_void_p, c_char_p, c_void_p, c_uint, c_int]),
    "kf_argument": (None, [c_void_p, c_int64, c_uint64]),
    "kf_host_function": (None, [c_void_p, c_void_p]),
    "kf_device_function": (c_int, [c_void_p, c_int, c_void_p]),
    "kf_install": (c_int, [c_void_p, c_void_p]),
    "kf_remove": (None, [c_void_p]),
    "kf_hits": (c_uint64, [c_void_p]),
    "kf_shadow": (None, [c_uint64]),
    "kf_compared": (c_uint64, [c_void_p]),
    "kf_worst": (c_double, [c_void_p]),
    "kf_device_active": (c_int, [c_int]),
    "kf_module": (c_void_p, [c_int, c_char_p]),
    "kf_function": (c_void_p, [c_int, c_void_p, c_char_p]),
    "kf_serving": (c_int, []),
    "kf_site": (c_int64, [c_char_p, c_int]),
    "kf_site_misses": (c_uint64, [c_int64, c_int]),
    "kf_switch": (c_void_p, []),
    "kf_turn": (None, [c_void_p, c_int]),
    "kf_seat": (None, [c_int64, c_void_p, c_int64, c_void_p]),
    "kf_prove": (None, [c_void_p, c_int]),
}


def open_library(path: Path) -> ctypes.CDLL:
    """The shim's binary, ready to be called.

    Raises:
        OSError: it cannot be loaded, usually because it was built for another torch.
    """
    library = ctypes.CDLL(str(path))
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
