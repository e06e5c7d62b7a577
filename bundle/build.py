"""Build the bundle for desktop clients: its manifest and every committed file of the package.

`mcpb pack` would take whatever lies in a folder; this takes what a wheel is built from.
"""

import subprocess
import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

ROOT = Path(__file__).parent.parent
PARTS = (
    "server", "tools", "agent_prompts", "kernelforge_engine", "pyproject.toml", "README.md",
    "LICENSE",
)  # fmt: skip


def build(target: Path) -> None:
    """Write the bundle; the same files make the same bytes."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", *PARTS], cwd=ROOT, check=True, capture_output=True, text=True
    )
    names = {name: ROOT / name for name in listed.stdout.split("\0") if name}
    target.parent.mkdir(parents=True, exist_ok=True)
    with ZipFile(target, "w") as bundle:
        for name, path in {"manifest.json": ROOT / "bundle" / "manifest.json", **names}.items():
            bundle.writestr(ZipInfo(name), path.read_bytes(), ZIP_DEFLATED)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
