"""The kernels of a cubin, checked against their launches and ready to be launched."""

from collections.abc import Iterator
from ctypes import POINTER, byref, c_size_t, c_uint, c_void_p, cast

from kernelforge_engine.plans import ArgumentKind, ResolvedLaunch
from kernelforge_engine.pool.protocol import Load
from kernelforge_engine.runner.driver import Attribute, CudaError, Driver, LaunchConfig
from kernelforge_engine.runner.executor import Binding, image_of, unable

DYNAMIC_SHARED, NON_PORTABLE_CLUSTER = 8, 14  # CUfunction_attribute
COOPERATIVE, CLUSTER = 2, 4  # CUlaunchAttributeID
PORTABLE_CLUSTER_BLOCKS = 8
ARGUMENT_BYTES: dict[ArgumentKind, int] = {"buffer": 8, "i32": 4, "i64": 8, "f32": 4, "f64": 8}


class Kernels:
    """The functions of a plan and the configuration of each launch on one stream."""

    def __init__(self, driver: Driver, order: Load, stream: c_void_p) -> None:
        self._driver, self._stream = driver, stream
        self._module = driver.handle("cuModuleLoadData", image_of(order))
        self._launches = [
            (self._function(order, i, launch), configuration(launch, stream))
            for i, launch in enumerate(order.plan.launches)
        ]

    @property
    def functions(self) -> list[c_void_p]:
        """The function of each launch."""
        return [function for function, _ in self._launches]

    def enqueue(self, binding: Binding) -> None:
        """Put one execution of the plan on the stream: zeroed buffers, then every launch."""
        for address, size in binding.zeroed:
            self._driver.call("cuMemsetD8Async", address, 0, size, self._stream)
        for (function, config), arguments in zip(self._launches, binding.launches, strict=True):
            self._driver.call("cuLaunchKernelEx", byref(config), function, arguments, None)

    def _function(self, order: Load, index: int, launch: ResolvedLaunch) -> c_void_p:
        symbol = order.artifact.symbols[launch.kernel]
        function = self._driver.handle("cuModuleGetFunction", self._module, symbol.encode())
        self._check(f"launch[{index}]", function, launch)
        # A kernel's limit is shared by all its launches, and static memory counts towards it.
        most = max(other.shared for other in order.plan.launches if other.kernel == launch.kernel)
        if most:
            self._allow(f"launch[{index}].shared = {most}", function, DYNAMIC_SHARED, most)
        if _blocks(launch) > PORTABLE_CLUSTER_BLOCKS:
            what = f"launch[{index}].cluster of {_blocks(launch)} blocks"
            self._allow(what, function, NON_PORTABLE_CLUSTER, 1)
        return function

    def _allow(self, what: str, function: c_void_p, attribute: int, value: int) -> None:
        try:
            self._driver.call("cuFuncSetAttribute", function, attribute, value)
        except CudaError as error:
            why = f"{what} is not possible on this device: {error}"
            raise unable(stage="load", error=why) from error

    def _check(self, where: str, function: c_void_p, launch: ResolvedLaunch) -> None:
        """Compare arguments and parameters, which a launch would silently misread."""
        if not self._driver.has("cuFuncGetParamInfo"):
            return
        sizes = list(self._parameters(function))
        if len(sizes) != len(launch.args):
            given = f"{where} passes {len(launch.args)} arguments"
            raise unable(stage="load", error=f"{given}, but {launch.kernel} takes {len(sizes)}")
        for i, (argument, size) in enumerate(zip(launch.args, sizes, strict=True)):
            if ARGUMENT_BYTES[argument.kind] != size:
                given = f"{argument.kind} ({ARGUMENT_BYTES[argument.kind]} bytes)"
                takes = f"parameter {i + 1} of {launch.kernel} has {size} bytes"
                raise unable(stage="load", error=f"{where}.args[{i}] is {given}, but {takes}")

    def _parameters(self, function: c_void_p) -> Iterator[int]:
        """The size of each parameter; the index behind the last one is an invalid value."""
        index, offset, size = 0, c_size_t(), c_size_t()
        while True:
            try:
                self._driver.call("cuFuncGetParamInfo", function, index, byref(offset), byref(size))
            except CudaError:
                return
            yield size.value
            index += 1


def _blocks(launch: ResolvedLaunch) -> int:
    x, y, z = launch.cluster or (1, 1, 1)
    return x * y * z


def configuration(launch: ResolvedLaunch, stream: c_void_p) -> LaunchConfig:
    """What the driver is told of a launch on a stream."""
    attributes = []
    if launch.cluster:
        attribute = Attribute(id=CLUSTER)
        attribute.value.cluster.x, attribute.value.cluster.y, attribute.value.cluster.z = (
            launch.cluster
        )
        attributes.append(attribute)
    if launch.cooperative:
        attribute = Attribute(id=COOPERATIVE)
        attribute.value.cooperative = 1
        attributes.append(attribute)
    table = (Attribute * len(attributes))(*attributes)
    return LaunchConfig(
        grid=(c_uint * 3)(*launch.grid),
        block=(c_uint * 3)(*launch.block),
        shared=launch.shared,
        stream=stream,
        # The cast keeps the table alive as long as the configuration.
        attributes=cast(table, POINTER(Attribute)) if attributes else None,
        count=len(attributes),
    )
