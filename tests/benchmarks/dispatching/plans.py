"""Variants of the shim that cost as little as a hit can: on a GPU they launch one empty kernel."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from kernelforge_engine.calls import Call
from kernelforge_engine.dispatch.shim import LoadedCode, Shim
from kernelforge_engine.launch.header import parse_source
from kernelforge_engine.launch.resolve import buffer_sizes, resolve
from kernelforge_engine.plans import ResolvedPlan
from kernelforge_engine.pool.child import Child
from kernelforge_engine.pool.protocol import Build, BuilderReply
from kernelforge_server import settings

TOUCH = """/* kernelforge
[[launch]]
kernel = "touch"
grid = [1]
block = [32]
args = ["out0"]
*/
extern "C" __global__ void touch(float* y) {}
"""
SOURCE = parse_source(TOUCH, "cuda")


class Plans:
    """What a hit does: its outputs are allocated and, on a GPU, one kernel is launched."""

    def __init__(self, shim: Shim) -> None:
        self._shim, self._code = shim, _touching(shim) if torch.cuda.is_available() else None

    @contextmanager
    def added(self, calls: Sequence[Call]) -> Iterator[None]:
        """Variants of these calls, for a while."""
        handles = [self._shim.add(call, *self._of(call)) for call in calls]
        try:
            yield
        finally:
            for handle in handles:
                self._shim.remove(handle)

    def _of(self, call: Call) -> tuple[ResolvedPlan, LoadedCode | None]:
        if call.backend == "cpu" or call.mutated:
            return ResolvedPlan(buffers=tuple(buffer_sizes(call)), launches=()), None
        return resolve(SOURCE.plan, call), self._code


def _touching(shim: Shim) -> LoadedCode:
    """The empty kernel, ready on the current device."""
    with TemporaryDirectory() as folder:
        order = Build(
            text=TOUCH,
            backend="cuda",
            arch="sm_{}{}".format(*torch.cuda.get_device_capability()),
            launches=(("touch", ("buffer",)),),
            folder=folder,
        )
        environment = settings.resolve(Path(folder)).environment
        with Child("Builder", "kernelforge_engine.builder", environment=environment) as builder:
            artifact = builder.request("compile a kernel", order, BuilderReply, 180.0).artifact
        image = Path(artifact.path).read_bytes()
    return shim.device_code(image, artifact.symbols, [torch.cuda.current_device()])
