"""The tool that records a model."""

from typing import Annotated

from mcp.server.mcpserver import Context
from pydantic import Field

from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import Notice
from kernelforge_engine.records import Capture, Card
from kernelforge_tools.answer import Answer, call
from kernelforge_tools.entries import CaptureOptions, capture_request
from kernelforge_tools.findings import OVERLAP, Findings, findings
from kernelforge_tools.load import busy_now
from kernelforge_tools.ranking import has_targets, ranked
from kernelforge_tools.views import CardBrief
from kernelforge_tools.waiting import DEFAULT_WAIT_S, Wait, slow
from kernelforge_tools.wording import counted, left_out

SHOWN = 5


class CaptureView(Findings):
    """What a capture found."""

    cards: list[CardBrief]
    note: str | None = None
    left_out: str | None = None


async def capture_model(  # noqa: PLR0913  what an agent may say about a model
    ctx: Context[Engine],
    model: Annotated[
        str,
        Field(
            description="FILE.py:make_model, package.module:factory, hf:org/name, hf:FOLDER, "
            "hf:config.json, a TorchScript or a torch.export file"
        ),
    ],
    inputs: Annotated[
        tuple[str, ...],
        Field(
            description="one entry for every input set: a function beside the factory, a "
            ".safetensors, .txt, .png, .jpg or .wav file; default: make_inputs, or made-up ones"
        ),
    ] = (),
    device: Annotated[str, Field(description="cpu, cuda or cuda:N")] = "cpu",
    random_weights: Annotated[
        bool, Field(description="hf: make weights; a configuration is enough")
    ] = False,
    dtype: Annotated[str | None, Field(description="hf: bfloat16, float16 or float32")] = None,
    generate_tokens: Annotated[
        int, Field(ge=0, description="hf: record a generation of so many tokens")
    ] = 0,
    examples_per_variant: Annotated[int, Field(ge=1)] = 1,
    max_bytes: Annotated[
        int | None, Field(ge=0, description="of example tensors that are kept")
    ] = None,
    wait_s: Wait = DEFAULT_WAIT_S,
) -> Answer[CaptureView]:
    """Run a PyTorch model on its example inputs and record what can be made faster.

    The model stays as it is; FILE.py needs make_model() -> nn.Module and make_inputs() -> a tensor,
    a tuple, a list, or a dict of keyword arguments. Training mode is switched to eval. The answer
    says what holds the model back and lists the cards with the most to gain: operators, and regions
    (a module's forward or a function as one target). Status `partial`: the model raised half-way
    and what ran before is kept. Capture once, and again only when the model, its inputs or the
    device change, or the answer doubts its times. Takes seconds to minutes: it also times eager.
    """
    options: CaptureOptions = {
        "device": device,
        "random_weights": random_weights,
        "dtype": dtype,
        "generate_tokens": generate_tokens,
        "examples_per_variant": examples_per_variant,
        "max_bytes": max_bytes,
    }
    request = capture_request(model, inputs, **options)

    async def work(engine: Engine, notice: Notice) -> Answer[CaptureView]:
        capture = await engine.capture(request, notice)
        busy = busy_now() if capture.device == "cpu" else None
        return captured(capture, await engine.cards(capture.id), busy)

    arguments = {"model": request.model, "inputs": list(request.inputs), **options}
    return await slow(ctx, "capture_model", arguments, wait_s, work)


def captured(
    capture: Capture, cards: tuple[Card, ...], busy: str | None = None
) -> Answer[CaptureView]:
    """The answer for a capture that has just been made, on a machine that may be `busy`."""
    found = findings(capture, cards, busy)
    said = found["doubt"]
    worth = ranked(cards, "gain")
    rows = [CardBrief.of(card) for card in worth[:SHOWN]]
    best = [call("get_card", card_id=card.id) for card in worth if has_targets(card)][:1]
    rest = call("list_cards", capture_id=capture.id)
    return Answer(
        status="partial" if capture.error else "ok",
        summary=_summary(capture, cards) + (f" {said}" if said else ""),
        data=CaptureView(
            **found,
            cards=rows,
            note=OVERLAP if any(card.is_region for card in cards) else None,
            left_out=left_out(len(rows), len(cards), rest),
        ),
        next=[*best, rest],
    )


def _summary(capture: Capture, cards: tuple[Card, ...]) -> str:
    regions = sum(card.is_region for card in cards)
    found = counted(len(cards) - regions, "operator")
    found += f" and {counted(regions, 'region')}" if regions else ""
    ends = f" The model raised half-way: {capture.error}." if capture.error else ""
    return (
        f"Capture {capture.id}: {counted(capture.calls, 'call')} of {found} on "
        f"{capture.device_name}.{ends}"
    )
