"""The agent guide: written once in guide.md, shown in server instructions and by get_card."""

from importlib.resources import files

FORMAT_HEADING = "## Candidate format"

TEXT = files("kernelforge_tools").joinpath("guide.md").read_text(encoding="utf-8")
LOOP, _, _REST = TEXT.partition(FORMAT_HEADING)
FORMAT = FORMAT_HEADING + _REST
