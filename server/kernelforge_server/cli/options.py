"""The options that commands share."""

from pathlib import Path
from typing import Annotated

import typer

from kernelforge_engine.records import Tier

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
ModelArgument = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="FILE.py[:make_model], package.module[:factory], hf:org/name, hf:FOLDER or "
        "hf:config.json (hf:...#PART for a part of a pipeline), a TorchScript file (.pt) or a "
        "torch.export file (.pt2).",
        show_default=False,
    ),
]
InputsOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="WHAT",
        help="An input set; may be repeated. A function beside the factory, FILE.py:function, or a "
        ".safetensors, .txt, .png, .jpg or .wav file. Default: make_inputs(), or what an hf: model "
        "or a torch.export file says by itself.",
        show_default=False,
    ),
]
RandomWeightsOption = Annotated[
    bool,
    typer.Option(
        "--random-weights", metavar="", help="Make the weights of an hf: model, read none."
    ),
]
DtypeOption = Annotated[
    str | None,
    typer.Option(
        metavar="bfloat16|float16|float32",
        help="The dtype of an hf: model. Default: its own.",
        show_default=False,
    ),
]
GenerateOption = Annotated[
    int,
    typer.Option(
        "--generate", metavar="N", help="Run generate() for N new tokens; 0 is one forward."
    ),
]
ExamplesOption = Annotated[
    int, typer.Option(metavar="N", help="Examples kept of a variant, if their contents differ.")
]
MaxBytesOption = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="What a capture may store, as 2GiB; of what does not fit, a sample is kept.",
        show_default=False,
    ),
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
TierOption = Annotated[
    Tier,
    typer.Option(
        metavar="quick|full|promotion",
        help="How thoroughly: quick for feedback (never exported), full, or promotion with "
        "sanitizers and the evidence bundle.",
    ),
]
CastArgument = Annotated[Path, typer.Argument(metavar="X.cast", help="A cast.")]
