"""From a cast's entries to code this process can run, or the reason why an entry stays inactive."""

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

import kernelforge_engine
from kernelforge_engine.cast.manifest import Binary, CastFile, Entry
from kernelforge_engine.dispatch import built
from kernelforge_engine.dispatch.shim import LoadedCode, Shim
from kernelforge_engine.errors import NoCompiler, NotInstalled
from kernelforge_engine.pool.child import Child
from kernelforge_engine.pool.protocol import Build, BuilderReply, BuildRefused, Raised
from kernelforge_engine.records import Artifact

BUILD_SECONDS = 300.0
BUILDERS = 2
NO_BUILD = (
    "there is no C++ compiler here and nothing that one has built of this kernel before; install "
    "g++ and load the cast again"
)


class Inactive(Exception):
    """Why an entry is not used: `architecture`, `device`, `compiler`, `build`, `load`, with a
    detail."""

    def __init__(self, *, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")


class Loader:
    """Loads the code of entries, each source and each cubin once."""

    def __init__(self, cast: CastFile, shim: Shim, cache: Path) -> None:
        self._cast, self._shim, self._cache = cast, shim, cache
        self._host: dict[object, LoadedCode | Inactive] = {}
        self._device: dict[object, LoadedCode] = {}

    def build(self, entries: Iterable[Entry]) -> None:
        """Compile the cpu entries from their sources, in Builder processes; where there is no
        compiler, find what was built here before.

        Raises:
            NotWritten: there is no room for what they made.
            ChildDied, ChildTimedOut
        """
        orders = {self._key(e): self._order(e) for e in entries if e.backend == "cpu"}
        missing = {key: order for key, order in orders.items() if key not in self._host}
        with ThreadPoolExecutor(BUILDERS) as pool:
            replies = list(pool.map(_built, missing.values()))
        for key, reply in zip(missing, replies, strict=True):
            self._host[key] = reply if isinstance(reply, Inactive) else self._opened(reply)

    def code(self, entry: Entry) -> LoadedCode:
        """The code of an entry, ready for every device this process uses.

        Raises:
            Inactive: it cannot run here.
        """
        if entry.backend == "cuda":
            return self._device_code(entry)
        found = self._host[self._key(entry)]
        if isinstance(found, Inactive):
            raise found
        return found

    def _key(self, entry: Entry) -> tuple[str, tuple[tuple[str, tuple[str, ...]], ...]]:
        return entry.source_digest, _launches(entry)

    def _order(self, entry: Entry) -> Build:
        return Build(
            text=self._cast.source(entry).text,
            backend="cpu",
            arch="native",
            launches=_launches(entry),
            folder=str(self._cache / "artifacts"),
        )

    def _opened(self, artifact: Artifact) -> LoadedCode | Inactive:
        try:
            return self._shim.host_code(artifact.path, artifact.symbols)
        except NotInstalled as error:
            return Inactive(reason="load", detail=str(error))

    def _device_code(self, entry: Entry) -> LoadedCode:
        if not torch.cuda.is_available():
            raise Inactive(reason="device", detail="this process has no CUDA device")
        functions: dict[str, dict[int, int]] = {}
        for device in self._shim.active_devices():
            binary = _binary_for(entry, torch.cuda.get_device_capability(device))
            if binary is not None:
                for kernel, addresses in self._loaded(binary, device).functions.items():
                    functions.setdefault(kernel, {}).update(addresses)
        if not functions:
            carried = ", ".join(b.arch for b in entry.binaries) or "none"
            detail = (
                f"the cast carries {carried}; `kernelforge cast adapt` makes one for this device"
            )
            raise Inactive(reason="architecture", detail=detail)
        return LoadedCode(functions=functions)

    def _loaded(self, binary: Binary, device: int) -> LoadedCode:
        key = binary.digest, tuple(binary.symbols.items()), device
        if key not in self._device:
            image = self._cast.files[binary.file]
            try:
                self._device[key] = self._shim.device_code(image, binary.symbols, [device])
            except NotInstalled as error:
                raise Inactive(reason="load", detail=str(error)) from error
        return self._device[key]


def _launches(entry: Entry) -> tuple[tuple[str, tuple[str, ...]], ...]:
    launches = entry.resolved.launches
    return tuple((x.kernel, tuple(a.kind for a in x.args)) for x in launches)


def _built(order: Build) -> Artifact | Inactive:
    root = str(Path(kernelforge_engine.__file__).parent.parent)
    environment = {"PATH": os.pathsep.join(os.get_exec_path()), "PYTHONPATH": root}
    with Child("Builder", "kernelforge_engine.builder", environment=environment) as builder:
        reply: Any = builder.request("compile a kernel", order, BuilderReply, BUILD_SECONDS)
    if isinstance(reply, Raised):
        error = reply.error()
        if isinstance(error, NoCompiler):
            return built.recall(order) or Inactive(reason="compiler", detail=NO_BUILD)
        raise error
    if isinstance(reply, BuildRefused):
        return Inactive(reason="build", detail=reply.log)
    artifact: Artifact = reply.artifact
    built.remember(order, artifact)
    return artifact


def _binary_for(entry: Entry, capability: tuple[int, int]) -> Binary | None:
    """The cubin made for exactly this device: evidence does not carry over to another one."""
    wanted = "sm_{}{}".format(*capability)
    return next((b for b in entry.binaries if b.arch.rstrip("af") == wanted), None)
