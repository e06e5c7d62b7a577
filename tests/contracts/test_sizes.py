"""No source file is too long to be read in one sitting."""

from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
FOLDERS = ("server", "tools", "agent_prompts", "kernelforge_engine", "tests")
SUFFIXES = {".py", ".cpp", ".h", ".cu", ".sql"}
MAX_LINES = 400


def test_no_source_file_has_more_than_400_lines():
    files = [f for folder in FOLDERS for f in (ROOT / folder).rglob("*") if f.suffix in SUFFIXES]
    lengths = {str(f.relative_to(ROOT)): len(f.read_text("utf-8").splitlines()) for f in files}
    assert lengths
    assert {name: n for name, n in lengths.items() if n > MAX_LINES} == {}
