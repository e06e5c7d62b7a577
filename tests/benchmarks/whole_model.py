"""The bundled CPU demo's whole-model gain, original and patched interleaved in one run, as JSON."""

import json
import subprocess
import sys
import tempfile
from typing import Any

COMMAND = [sys.executable, "-m", "kernelforge_server", "demo", "--json"]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [*COMMAND, "--project", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        sys.exit(done.stderr or done.stdout)
    found = json.loads(done.stdout)
    rows = (found["measurement"] or {}).get("rows", [])
    whole = (found["cast"] or {}).get("whole_model") or {}
    figures = {
        "kernels_faster": found["report"]["faster"],
        "kernels_dropped": len(whole.get("dropped", {})),
        **(_figures(rows[0]) if rows else {}),
    }
    print(json.dumps({"benchmark": "whole_model", **figures}))


def _figures(row: dict[str, Any]) -> dict[str, Any]:
    """What the kernels did for the whole model in eager mode."""
    names = ("original_us", "patched_us", "speedup", "low", "high", "max_relative", "run_hits")
    saving = {f"saving_{name}": row["saving"][name] for name in ("predicted_us", "measured_us")}
    return {**{name: row[name] for name in names}, **saving}


if __name__ == "__main__":
    main()
