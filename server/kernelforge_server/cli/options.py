"""The options that commands share."""

from pathlib import Path
from typing import Annotated

import typer

ProjectOption = Annotated[
    Path | None,
    typer.Option(
        "--project",
        metavar="DIR",
        help="Project folder. Default: $KERNELFORGE_PROJECT or ./.kernelforge.",
        show_default=False,
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", metavar="", help="Print one JSON document on standard output.")
]
DeviceOption = Annotated[str, typer.Option(metavar="cpu|cuda|cuda:N", help="Where the model runs.")]
EntryArgument = Annotated[
    str,
    typer.Argument(
        metavar="FILE.py[:make_model]", help="The file that defines the model and its inputs."
    ),
]
InputsOption = Annotated[
    str, typer.Option(metavar="FUNCTION", help="The function that returns example inputs.")
]
CaptureOption = Annotated[
    str | None,
    typer.Option(
        "--capture", metavar="ID", help="A capture. Default: the newest.", show_default=False
    ),
]
VariantOption = Annotated[
    str, typer.Option("--variant", metavar="ID", help="A variant, as `kernelforge cards` shows it.")
]
CastArgument = Annotated[Path, typer.Argument(metavar="X.cast", help="A cast.")]
