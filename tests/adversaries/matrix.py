"""What the engine said of the corpus, as a Markdown table made from the stored results.

`python tests/adversaries/matrix.py` prints it; `--write README.md` puts it between the two marks
of that file.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

import corpus

BEGIN = "<!-- adversaries: made by tests/adversaries/matrix.py -->"
END = "<!-- end of adversaries -->"
NAMES = {"cpu": "CPU", "cuda": "CUDA"}


def table() -> str:
    """The table of every backend that has results, with a sentence that counts."""
    counts = {b: _counted(b) for b in corpus.SUFFIXES if corpus.results(b)}
    statuses = sorted({s for found in counts.values() for c in found.values() for s in c})
    statuses.sort(key=lambda s: (s != "valid", s.startswith(corpus.CAUGHT_LATE)))
    head = ["backend", "candidates", "number", *(s.replace("_", " ") for s in statuses)]
    lines = [_line(head), _line(["---"] * len(head))]
    for backend, found in counts.items():
        for name, counter in found.items():
            cells = [str(counter[s] or "") for s in statuses]
            lines.append(_line([NAMES[backend], name, str(counter.total()), *cells]))
    return "\n".join([*_sentences(), "", *lines])


def _sentences() -> list[str]:
    return [_sentence(backend) for backend in corpus.SUFFIXES if corpus.results(backend)]


def _sentence(backend: str) -> str:
    found = corpus.results(backend)
    chosen = [c for c in corpus.candidates(backend) if c.file in found]
    bad = [c for c in chosen if c.kind == "bad"]
    accepted = sum(found[c.file] == "valid" for c in bad)
    honest = [c for c in chosen if c.kind == "honest"]
    refused = sum(found[c.file] != "valid" for c in honest)
    known = sorted(f"`{c.file}`" for c in bad if c.known and found[c.file] == "valid")
    return (
        f"{NAMES[backend]}: {accepted} of {len(bad)} bad candidates accepted, "
        f"{refused} of {len(honest)} honest ones refused."
        + (f" Known and not mended: {', '.join(known)}." if known else "")
    )


def _counted(backend: str) -> dict[str, Counter]:
    """How often each status was given, by class of fault; the honest ones last."""
    found = corpus.results(backend)
    rows = {name: Counter() for name in [*corpus.CLASSES.values(), "honest"]}
    for candidate in corpus.candidates(backend):
        name = candidate.fault if candidate.kind == "bad" else "honest"
        if candidate.file in found:
            rows[name][found[candidate.file]] += 1
    return {f"bad: {n}" if n != "honest" else n: c for n, c in rows.items() if c}


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def block(text: str) -> str:
    """What stands between the marks of a document."""
    return text.split(BEGIN, 1)[1].split(END, 1)[0].strip()


def main() -> None:
    """Print the table, or write it into a document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, metavar="FILE")
    document = parser.parse_args().write
    if document is None:
        sys.stdout.write(table() + "\n")
        return
    before, rest = document.read_text("utf-8").split(BEGIN, 1)
    text = f"{before}{BEGIN}\n{table()}\n{END}{rest.split(END, 1)[1]}"
    document.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
