"""The CUDA driver through ctypes, without a toolkit.

Signatures are those of `cuda.h` 13.0; a name with a suffix is the symbol its macro expands to.
"""

import ctypes
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_size_t, c_ubyte, c_uint, c_void_p
from typing import Any, ClassVar

from kernelforge_engine.errors import NoDevice

LIBRARIES = ("libcuda.so.1", "libcuda.so")
FAULTS = frozenset({700, 716, 717})  # illegal address, misaligned address, wrong address space
# After these the context answers nothing else (the error enumeration of cuda.h says so).
STICKY = FAULTS | {214, 220, 702, 710, 714, 715, 718, 719, 721}

LAZY_PEER_ACCESS = 1

DevicePointer = ctypes.c_uint64
_HANDLE = POINTER(c_void_p)


class ClusterSize(ctypes.Structure):
    """The value of a cluster attribute: blocks per cluster."""

    _fields_: ClassVar = [("x", c_uint), ("y", c_uint), ("z", c_uint)]


class AttributeValue(ctypes.Union):
    """CUlaunchAttributeValue: 64 bytes, aligned like a pointer."""

    _fields_: ClassVar = [
        ("words", ctypes.c_uint64 * 8),
        ("cluster", ClusterSize),
        ("cooperative", c_int),
    ]


class SharedHandle(ctypes.Structure):
    """CUipcMemHandle."""

    _fields_: ClassVar = [("reserved", ctypes.c_char * 64)]

    @classmethod
    def of(cls, text: str) -> "SharedHandle":
        """The handle that `text` writes in hexadecimal."""
        return cls.from_buffer_copy(bytes.fromhex(text))

    def __str__(self) -> str:
        return bytes(self).hex()


class Attribute(ctypes.Structure):
    """CUlaunchAttribute; the value starts at byte 8."""

    _fields_: ClassVar = [("id", c_int), ("value", AttributeValue)]


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_: ClassVar = [
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared", c_uint),
        ("stream", c_void_p),
        ("attributes", POINTER(Attribute)),
        ("count", c_uint),
    ]


PROTOTYPES: dict[str, list[Any]] = {
    "cuInit": [c_uint],
    "cuDeviceGet": [POINTER(c_int), c_int],
    "cuDeviceGetAttribute": [POINTER(c_int), c_int, c_int],
    "cuDevicePrimaryCtxRetain": [_HANDLE, c_int],
    "cuDevicePrimaryCtxGetState": [c_int, POINTER(c_uint), POINTER(c_int)],
    "cuCtxSetCurrent": [c_void_p],
    "cuCtxGetCurrent": [_HANDLE],
    "cuCtxPushCurrent_v2": [c_void_p],
    "cuCtxPopCurrent_v2": [_HANDLE],
    "cuCtxSetLimit": [c_int, c_size_t],
    "cuCtxResetPersistingL2Cache": [],
    "cuModuleLoadData": [_HANDLE, c_char_p],
    "cuModuleGetFunction": [_HANDLE, c_void_p, c_char_p],
    "cuFuncGetAttribute": [POINTER(c_int), c_int, c_void_p],
    "cuFuncSetAttribute": [c_void_p, c_int, c_int],
    "cuFuncLoad": [c_void_p],
    "cuFuncGetParamInfo": [c_void_p, c_size_t, POINTER(c_size_t), POINTER(c_size_t)],
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": [POINTER(c_int), c_void_p, c_int, c_size_t],
    "cuOccupancyMaxActiveClusters": [POINTER(c_int), c_void_p, POINTER(LaunchConfig)],
    "cuStreamCreate": [_HANDLE, c_uint],
    "cuStreamSynchronize": [c_void_p],
    "cuStreamIsCapturing": [c_void_p, POINTER(c_int)],
    "cuStreamBeginCapture_v2": [c_void_p, c_int],
    "cuStreamEndCapture": [c_void_p, _HANDLE],
    "cuMemAlloc_v2": [POINTER(DevicePointer), c_size_t],
    "cuMemFree_v2": [DevicePointer],
    "cuIpcGetMemHandle": [POINTER(SharedHandle), DevicePointer],
    "cuIpcOpenMemHandle_v2": [POINTER(DevicePointer), SharedHandle, c_uint],
    "cuMemcpyHtoDAsync_v2": [DevicePointer, c_void_p, c_size_t, c_void_p],
    "cuMemcpyDtoHAsync_v2": [c_void_p, DevicePointer, c_size_t, c_void_p],
    "cuMemcpyDtoDAsync_v2": [DevicePointer, DevicePointer, c_size_t, c_void_p],
    "cuMemsetD8Async": [DevicePointer, c_ubyte, c_size_t, c_void_p],
    "cuLaunchKernelEx": [POINTER(LaunchConfig), c_void_p, _HANDLE, _HANDLE],
    "cuGraphInstantiateWithFlags": [_HANDLE, c_void_p, ctypes.c_ulonglong],
    "cuGraphLaunch": [c_void_p, c_void_p],
    "cuGraphDestroy": [c_void_p],
    "cuGraphExecDestroy": [c_void_p],
    "cuEventCreate": [_HANDLE, c_uint],
    "cuEventRecord": [c_void_p, c_void_p],
    "cuEventElapsedTime": [POINTER(c_float), c_void_p, c_void_p],
    "cuGetErrorName": [c_int, POINTER(c_char_p)],
    "cuGetErrorString": [c_int, POINTER(c_char_p)],
}
SINCE_12_4 = frozenset({"cuFuncGetParamInfo", "cuFuncLoad"})


class CudaError(Exception):
    """A driver call that failed; the text is the driver's name and description of the error."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Driver:
    """libcuda with every prototype declared.

    Raises:
        NoDevice: this machine has no driver.
    """

    def __init__(self) -> None:
        self._library = _opened()
        for name, arguments in PROTOTYPES.items():
            if name in SINCE_12_4 and not hasattr(self._library, name):
                continue
            function = getattr(self._library, name)
            function.argtypes, function.restype = arguments, c_int

    def has(self, name: str) -> bool:
        """Whether this driver exports a function."""
        return hasattr(self._library, name)

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function by its symbol.

        Raises:
            CudaError: it did not return CUDA_SUCCESS.
        """
        if code := getattr(self._library, name)(*arguments):
            raise CudaError(code, self._described(code))

    def handle(self, name: str, *arguments: Any) -> c_void_p:
        """Call a function whose first argument receives a handle."""
        made = c_void_p()
        self.call(name, byref(made), *arguments)
        return made

    def allocate(self, size: int) -> int:
        """The address of new device memory."""
        address = DevicePointer()
        self.call("cuMemAlloc_v2", byref(address), size)
        return address.value

    def opened(self, shared: str) -> int:
        """The address here of device memory that another process shares."""
        address = DevicePointer()
        handle = SharedHandle.of(shared)
        self.call("cuIpcOpenMemHandle_v2", byref(address), handle, LAZY_PEER_ACCESS)
        return address.value

    def shared(self, address: int) -> str:
        """The handle under which another process opens memory of this one, in hexadecimal."""
        handle = SharedHandle()
        self.call("cuIpcGetMemHandle", byref(handle), address)
        return str(handle)

    def _described(self, code: int) -> str:
        name, text = c_char_p(), c_char_p()
        self._library.cuGetErrorName(code, byref(name))
        self._library.cuGetErrorString(code, byref(text))
        known = (name.value or b"CUDA error %d" % code).decode()
        return f"{known}: {(text.value or b'not described').decode()}"


def _opened() -> ctypes.CDLL:
    for name in LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise NoDevice(device="CUDA", why="the driver library libcuda.so.1 is not installed")
