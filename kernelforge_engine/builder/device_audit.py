"""What a built CUDA candidate may contain: no state between its calls, no clock, no device runtime.

Two layers are read, each for what it alone can tell. The cubin is what will be loaded: whatever it
calls and does not define (`vprintf`, `malloc`, `free`, of which `new` is made) is an undefined
symbol in it. Registers and variables are looked for in the PTX that it was assembled from.

The waiting of cuda::barrier reads a clock to wait longer and longer. It is let pass where the lines
that the compiler notes say that it is that, and where no assembly in the source could say so.

A trap and a failed assertion end a candidate's process and nothing else, so they stay allowed.
"""

from collections.abc import Mapping

from kernelforge_engine import codec
from kernelforge_engine.builder import cubin, gate, mangling, ptx
from kernelforge_engine.builder.words import listed, shortened
from kernelforge_engine.calls import Json

# What `assert` calls of the driver when it fails.
REPORTING = frozenset({"__assertfail"})
IDENTITY = codec.sha256(codec.dumps([sorted(REPORTING), ptx.PLACES, ptx.TELLING.pattern, "3"]))


def refusal(image: bytes, text: str, source: str, environment: Mapping[str, str]) -> str | None:
    """Why the cubin `image`, assembled from the PTX `text` of `source`, is not used, or None."""
    wanted = set(cubin.wanted(image))
    if names := sorted(wanted - REPORTING):
        return (
            f"it calls {listed(_readable(names, environment))}: a kernel may not print, take "
            "memory from the heap or use anything else of the device runtime"
        )
    found = ptx.findings(text, frozenset(wanted))
    waits = not gate.has_assembly(source) and ptx.only_waits(text)
    special = tuple(n for n in found.special if not (waits and n == "%globaltimer"))
    if special:
        return _special(special)
    if found.written:
        return (
            f"it writes to {listed(_readable(list(found.written), environment))}, or passes the "
            "address on: a kernel keeps nothing between calls; declare a workspace in the header "
            "for what it writes, and put tables into __constant__ memory or index them directly"
        )
    return None


def contents(image: bytes, environment: Mapping[str, str]) -> dict[str, Json]:
    """What the cubin `image` holds, and what it needs of others."""
    return {
        "kernels": shortened(_readable(cubin.kernels(image), environment)),
        "imports": shortened(sorted(cubin.wanted(image))),
    }


def _special(names: tuple[str, ...]) -> str:
    if clocks := [name for name in names if ptx.CLOCK.fullmatch(name)]:
        return (
            f"it reads a clock ({listed(clocks)}): what it computes must not depend on time; if "
            "you wrote none, it is how cuda::barrier waits, which is seen only in a source without "
            "assembly and ##"
        )
    return (
        f"it reads {listed(list(names))}: what it computes must not depend on which launch it is "
        "or on the settings of the device"
    )


def _readable(names: list[str], environment: Mapping[str, str]) -> list[str]:
    readable = mangling.demangled(names, environment)
    return [readable.get(name, name) for name in names]
