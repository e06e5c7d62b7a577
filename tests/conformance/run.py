"""`make conformance`: the official suite, the Inspector and the makers' validators against us."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from conformance_inspector import inspected
from conformance_manifests import validated
from conformance_serving import product, serving, with_fixtures
from conformance_suite import REVISIONS, Row, judged, judged_product, run_set
from conformance_tools import ensure_tools
from rich.console import Console
from rich.table import Table


def rows(work: Path) -> Iterator[Row]:
    """One row after the other, as they are found."""
    with (
        serving(with_fixtures(work / "ours"), work / "ours.log") as ours,
        serving(with_fixtures(work / "bare", "--bare"), work / "bare.log") as bare,
    ):
        for revision in REVISIONS:
            yield judged(
                revision,
                run_set(ours, revision, work / f"ours-{revision}"),
                run_set(bare, revision, work / f"bare-{revision}"),
            )
    with serving(product(work / "product"), work / "product.log") as url:
        for revision in REVISIONS:
            run = run_set(url, revision, work / f"product-{revision}")
            yield judged_product(revision, run)
        yield inspected("Inspector, HTTP", [url], work / "over-http")
    started = [sys.executable, "-m", "kernelforge_server", "mcp", "--project", str(work / "stdio")]
    yield inspected("Inspector, stdio", started, work / "over-stdio")
    yield validated(work / "manifests")


def shown(found: list[Row]) -> Table:
    """The short table."""
    table = Table(box=None, pad_edge=False)
    table.add_column("what")
    for name in ("passed", "failed", "expected", "not run", "checks"):
        table.add_column(name, justify="right")
    for row in found:
        numbers = (row.passed, len(row.wrong), row.expected, row.skipped, row.checks)
        table.add_row(row.title, *(str(number or "") for number in numbers))
    return table


def main() -> int:
    """Run everything; 1 where anything is not as it should be."""
    ensure_tools()
    console = Console()
    work = Path(tempfile.mkdtemp(prefix="conformance-"))
    found = []
    for row in rows(work):
        found.append(row)
        print(f"{row.title}: {row.passed} passed, {len(row.wrong)} failed", file=sys.stderr)
    console.print(shown(found))
    for row in found:
        for wrong in row.wrong:
            console.print(f"{row.title}: {wrong}", markup=False)
    if any(row.wrong for row in found):
        console.print(f"What the suite said is in {work}.", markup=False)
        return 1
    shutil.rmtree(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
