"""What every compiler of the Builder takes and gives back."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from kernelforge_engine.calls import Json

Launches = tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, kw_only=True)
class Unit:
    """The candidate's translation unit, with what the engine adds before and behind it.

    `beside` is a translation unit of the engine's own, out of reach of the candidate's macros.
    """

    candidate: str
    before: str
    behind: str
    launches: Launches
    arch: str
    beside: str = ""

    @property
    def kernels(self) -> list[str]:
        """The distinct kernel names of the plan, in the order of first use."""
        return list(dict.fromkeys(name for name, _ in self.launches))

    def text(self, name: str) -> str:
        """The whole unit; messages about the candidate count its own lines and call it `name`."""
        return f'{self.before}\n#line 1 "{name}"\n{self.candidate}\n{self.behind}'


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """What a compiler did; with `product` None it refused the source. `audit` is what the audit
    found in the product, beside nothing that it refuses.

    `headerless` says that it failed for want of a header that another compiler may have.
    """

    log: str
    product: str | None = None
    symbols: dict[str, str] = field(default_factory=dict)
    resources: dict[str, Json] = field(default_factory=dict)
    audit: dict[str, Json] = field(default_factory=dict)
    headerless: bool = False


class Compiler(Protocol):
    """A compiler that was found on this machine.

    `identity` is everything about it that can change its output, `readable` the folders it needs,
    `preload` the libraries that its products need before all others.
    """

    name: str
    identity: str
    suffix: str
    readable: tuple[str, ...]
    preload: tuple[str, ...]

    def compile(self, unit: Unit, folder: Path) -> Compiled:
        """Build `unit` in `folder`; called under the sandbox."""
        ...
