"""The README's table of the adversary corpus is made from its results, not typed."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "tests" / "adversaries"
README = (ROOT / "README.md").read_text("utf-8")
MARKS = re.compile(r"<!-- adversaries: .*? -->\n(.*?)\n<!-- end of adversaries -->", re.DOTALL)


def _made():
    command = [sys.executable, str(FOLDER / "matrix.py")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_the_readme_shows_the_table_that_the_results_make():
    (shown,) = MARKS.findall(README)
    assert shown == _made()


def test_the_table_counts_every_candidate_of_a_backend():
    numbers = {"CPU": 0, "CUDA": 0}
    for backend, number in re.findall(r"^\| (\w+) \| [a-z: ]+ \| (\d+) \|", _made(), re.MULTILINE):
        numbers[backend] += int(number)
    files = {"CPU": len(list(FOLDER.glob("*/*/*.cpp"))), "CUDA": len(list(FOLDER.glob("*/*/*.cu")))}
    assert {b: n for b, n in numbers.items() if n} == {b: files[b] for b in numbers if numbers[b]}
    assert numbers["CPU"]
