"""Where things are and what children may see; the one module that reads the environment."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from kernelforge_engine.errors import BadOption
from kernelforge_engine.exchanges import Settings
from kernelforge_tools.entries import absolute

PROJECT = ".kernelforge"
OFF = "off"
INHERITED = frozenset({
    "PATH", "HOME", "LANG", "TMPDIR", "TZ", "LD_LIBRARY_PATH", "PYTHONPATH", "CC", "CXX", "USER",
})  # fmt: skip
INHERITED_PREFIXES = (
    "LC_", "CUDA_", "NVIDIA_", "OMP_", "MKL_", "OPENBLAS_", "TORCH_", "PYTORCH_", "HF_",
    "TRANSFORMERS_", "KERNELFORGE_", "XDG_",
)  # fmt: skip
SECRET = ("TOKEN", "KEY", "SECRET", "PASSWORD")


def resolve(project: Path | None = None, environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings of one process: an option wins over the environment, that over the defaults.

    Raises:
        BadOption: a variable has a value that means nothing.
    """
    return Settings(
        project=absolute(project or environ.get("KERNELFORGE_PROJECT") or PROJECT),
        environment=child_environment(environ),
        cache=_cache(environ),
        quota_bytes=_quota(environ),
        prices=_prices(environ),
        secrets=secrets(environ),
        home=environ.get("HOME", ""),
        library=library(environ),
        require_sandbox=environ.get("KERNELFORGE_REQUIRE_SANDBOX", "0") not in ("", "0"),
    )


def library(environ: Mapping[str, str] = os.environ) -> Path | None:
    """The folder of the user's own library of accepted kernels, None where it is switched off."""
    chosen = environ.get("KERNELFORGE_LIBRARY")
    if chosen:
        return None if chosen == OFF else absolute(chosen)
    base = environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "kernelforge" / "library"


def token(environ: Mapping[str, str] = os.environ) -> str:
    """What clients over HTTP must carry, empty where nothing is asked of them."""
    return environ.get("KERNELFORGE_TOKEN", "").strip()


def secrets(environ: Mapping[str, str] = os.environ) -> frozenset[str]:
    """The values of the environment that are credentials by their names."""
    return frozenset(value.strip() for name, value in environ.items() if name.endswith(SECRET))


def chat_endpoint(environ: Mapping[str, str] = os.environ) -> tuple[str | None, str]:
    """Where models that speak chat completions are, None for OpenAI's own, and the key."""
    return environ.get("OPENAI_BASE_URL") or None, environ.get("OPENAI_API_KEY", "").strip()


def child_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What children get: what compilers, CUDA and model code need, and never a credential."""
    kept = {
        name: value
        for name, value in environ.items()
        if (name in INHERITED or name.startswith(INHERITED_PREFIXES)) and not name.endswith(SECRET)
    }
    # ninja and its like are installed beside the interpreter, which need not be on the PATH.
    beside = str(Path(sys.executable).parent)
    return {**kept, "PATH": os.pathsep.join([beside, kept.get("PATH", os.defpath)])}


def _quota(environ: Mapping[str, str]) -> int | None:
    chosen = environ.get("KERNELFORGE_QUOTA_BYTES")
    if not chosen:
        return None
    if not chosen.isascii() or not chosen.isdigit() or not int(chosen):
        raise BadOption(
            field="KERNELFORGE_QUOTA_BYTES",
            value=chosen,
            why="it is no number of bytes",
            accepted="a whole number such as 20000000000, or leave it unset",
        )
    return int(chosen)


def _prices(environ: Mapping[str, str]) -> Path | None:
    chosen = environ.get("KERNELFORGE_PRICES")
    return absolute(chosen) if chosen else None


def _cache(environ: Mapping[str, str]) -> Path:
    if chosen := environ.get("KERNELFORGE_CACHE"):
        return absolute(chosen)
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "kernelforge"
