"""The plugin, the marketplace and the bundle, before the validators and clients of their makers."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from conformance_suite import Row
from conformance_tools import CLAUDE, MCPB, ROOT, Ended, call


def validated(home: Path) -> Row:
    """Every manifest is valid, and what it describes can be installed and answers."""
    home.mkdir(parents=True)
    found = list(_checked(home))
    wrong = tuple(f"{name}: {said}" for name, said in found if said)
    return Row(title="plugin and bundle", passed=len(found) - len(wrong), wrong=wrong)


def _checked(home: Path) -> Iterator[tuple[str, str]]:
    """Each step's name, and what is wrong with it."""
    strict = (CLAUDE, "plugin", "validate", "--strict")
    yield "plugin", _failure(call((*strict, ROOT / "plugin"), home))
    yield "marketplace", _failure(call((*strict, ROOT), home))
    yield (
        "marketplace of a checkout",
        _failure(call((CLAUDE, "plugin", "marketplace", "add", ROOT), home)),
    )
    yield (
        "plugin of a checkout",
        _failure(call((CLAUDE, "plugin", "install", "kernelforge@kernelforge"), home)),
    )
    listed = call((CLAUDE, "mcp", "list"), home)
    connected = "plugin:kernelforge:kernelforge" in listed.out and "Connected" in listed.out
    yield "server of the plugin", "" if connected else listed.out + listed.err
    bundle = home / "kernelforge.mcpb"
    built = subprocess.run([sys.executable, ROOT / "bundle" / "build.py", bundle], check=False)
    yield "bundle", "" if built.returncode == 0 else "it cannot be built"
    mcpb = ("node", MCPB)
    yield "bundle unpacked", _failure(call((*mcpb, "unpack", bundle, home / "bundle"), home))
    manifest = home / "bundle" / "manifest.json"
    yield "manifest of the bundle", _failure(call((*mcpb, "validate", manifest), home))


def _failure(ended: Ended) -> str:
    return "" if ended.code == 0 else (ended.out + ended.err).strip()[-400:]
