"""The bundled CPU demo's whole-model gain, original and patched interleaved in one run, as JSON."""

import json
import subprocess
import sys
import tempfile

COMMAND = [sys.executable, "-m", "kernelforge_server", "demo", "--json"]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [*COMMAND, "--project", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        sys.exit(done.stderr or done.stdout)
    found = json.loads(done.stdout)
    measurement = found["measurement"] or {}
    names = ("original_us", "patched_us", "speedup", "low", "high", "max_relative")
    figures = {name: measurement.get(name) for name in names}
    faster = found["report"]["faster"]
    print(json.dumps({"benchmark": "whole_model", "kernels_faster": faster, **figures}))


if __name__ == "__main__":
    main()
