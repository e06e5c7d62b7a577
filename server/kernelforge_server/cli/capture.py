"""`kernelforge capture`: record a model."""

from kernelforge_engine import codec
from kernelforge_engine.engine import Engine
from kernelforge_engine.errors import KernelForgeError
from kernelforge_engine.records import Capture, Card
from kernelforge_server.cli.options import (
    DeviceOption,
    DtypeOption,
    ExamplesOption,
    GenerateOption,
    InputsOption,
    JsonOption,
    MaxBytesOption,
    ModelArgument,
    ProjectOption,
    RandomWeightsOption,
)
from kernelforge_server.cli.overview import show_capture
from kernelforge_server.cli.session import Session
from kernelforge_tools.entries import capture_request, size_bytes
from kernelforge_tools.load import busy_now
from kernelforge_tools.views import CardRow


def capture(  # noqa: PLR0913  an option is an argument
    model: ModelArgument,
    inputs: InputsOption = None,
    device: DeviceOption = "cpu",
    random_weights: RandomWeightsOption = False,
    dtype: DtypeOption = None,
    generate: GenerateOption = 0,
    examples_per_variant: ExamplesOption = 1,
    max_bytes: MaxBytesOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a model once on its example inputs and record every operator it calls."""
    session = Session(project=project, as_json=as_json)
    try:
        request = capture_request(
            model,
            inputs or (),
            device=device,
            random_weights=random_weights,
            dtype=dtype,
            generate_tokens=generate,
            examples_per_variant=examples_per_variant,
            max_bytes=None if max_bytes is None else size_bytes(max_bytes),
        )
    except KernelForgeError as error:
        session.fail(error)

    busy = busy_now() if device == "cpu" else None

    async def work(engine: Engine) -> tuple[Capture, tuple[Card, ...]]:
        with session.progress("capture") as notice:
            made = await engine.capture(request, notice)
        return made, await engine.cards(made.id)

    made, cards = session.run(work)
    if as_json:
        rows = [CardRow.of(card).model_dump() for card in cards]
        session.emit({"capture": codec.dump(made), "cards": rows})
        return
    show_capture(session, made, cards, busy)
