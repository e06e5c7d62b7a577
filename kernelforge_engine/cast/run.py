"""Run a script, or a model file, under casts: `python -m kernelforge_engine.cast.run FILE.py --cast
X.cast [argument ...]`.

FILE.py runs as `python FILE.py argument ...` would; where it defines make_model() and
make_inputs(), that model is run once then. At the end a line for every kernel says what it served,
on standard error. In a script of one's own the same is three lines:

    from kernelforge_engine import cast
    with cast.load("X.cast") as kernels:
        ...  # any eager torch: model(x), model.generate(...), pipeline(...)
"""

import argparse
import runpy
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelforge_engine import cast
from kernelforge_engine.errors import FileMissing, KernelForgeError

if TYPE_CHECKING:
    from kernelforge_engine.dispatch.runtime import Cast


def main() -> int:
    """Run what the command line says; the exit code is the script's own, or that of our error."""
    given, arguments = _parser().parse_known_args()
    try:
        if not given.file.is_file():
            raise FileMissing(path=given.file)
        loaded = [cast.load(path) for path in given.cast]
    except KernelForgeError as error:
        sys.stderr.write(f"kernelforge: {error}\n")
        return error.exit_code
    try:
        with ExitStack() as enabled:
            for one in loaded:
                enabled.enter_context(one)
            _run(given.file, arguments)
    finally:
        for path, one in zip(given.cast, loaded, strict=True):
            sys.stderr.write(_told(path, one))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m kernelforge_engine.cast.run",
        usage="%(prog)s FILE.py --cast X.cast [--cast Y.cast] [argument ...]",
        description="Run a script, or a model file once, with the kernels of casts.",
        epilog="Everything else on the command line is the script's own.",
        allow_abbrev=False,
    )
    parser.add_argument("file", type=Path, metavar="FILE.py")
    parser.add_argument(
        "--cast",
        type=Path,
        action="append",
        required=True,
        metavar="X.cast",
        help="may be repeated",
    )
    return parser


def _run(file: Path, arguments: list[str]) -> None:
    sys.argv = [str(file), *arguments]
    sys.path.insert(0, str(file.absolute().parent))
    found = runpy.run_path(str(file), run_name="__main__")
    if {"make_model", "make_inputs"} <= set(found):
        _run_once(found)


def _run_once(found: Mapping[str, Any]) -> None:
    """One forward of a model file, as it is captured."""
    import torch

    model: Callable[..., Any] = found["make_model"]()
    if isinstance(model, torch.nn.Module):
        model.eval()
    inputs = found["make_inputs"]()
    with torch.no_grad():
        if isinstance(inputs, Mapping):
            model(**inputs)
        else:
            model(*(inputs if isinstance(inputs, tuple | list) else (inputs,)))


def _told(path: Path, one: "Cast") -> str:
    counters = one.counters()
    if counters.disabled_by:
        return f"kernelforge: {path}: switched off by {counters.disabled_by}\n"
    lines = [f"kernelforge: {path}: {counters.hits} calls ran a kernel"]
    for kernel in counters.served:
        state = f"not used: {kernel.inactive}" if kernel.inactive else f"{kernel.hits} calls"
        lines.append(f"  {kernel.node_id} {kernel.operator}: {state}")
    for operator, reasons in counters.fallbacks.items():
        lines += [f"  {operator} stayed eager: {n} calls ({why})" for why, n in reasons.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
