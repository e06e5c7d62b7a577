"""The tool that records a model."""

from typing import Annotated

from mcp.server.mcpserver import Context
from pydantic import Field

from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import CaptureRequest, Notice
from kernelforge_tools.answer import Answer, View, call
from kernelforge_tools.entries import model_name
from kernelforge_tools.views import CardRow, rounded
from kernelforge_tools.waiting import DEFAULT_WAIT_S, Wait, slow
from kernelforge_tools.wording import counted, left_out

SHOWN = 8


class CaptureView(View):
    """What a capture found; `wall_us` is the model's clock, `busy_us` the sum of its operators."""

    capture_id: str
    device: str
    calls: int
    wall_us: float | None
    busy_us: float
    cards: list[CardRow]
    left_out: str | None = None


async def capture_model(
    ctx: Context[Engine],
    entry: Annotated[
        str,
        Field(description="FILE.py or FILE.py:function, the function that returns the model"),
    ],
    inputs: Annotated[
        str, Field(description="the function in that file that returns example inputs")
    ] = "make_inputs",
    device: Annotated[str, Field(description="cpu, cuda or cuda:N")] = "cpu",
    wait_s: Wait = DEFAULT_WAIT_S,
) -> Answer[CaptureView]:
    """Run a PyTorch model once on its example inputs and record every operator it calls.

    The model stays as it is: FILE.py needs make_model() -> nn.Module and make_inputs() -> a tensor,
    a tuple, a list, or a dict of keyword arguments. A model in training mode is switched to eval.
    The answer lists cards, one per operator, by their share of run time. Everything is kept in the
    project, so capture once, and again only when the model, its inputs or the device change. Takes
    seconds to a minute: it also times eager.
    """
    request = CaptureRequest(model=model_name(entry), inputs=(inputs,), device=device)

    async def work(engine: Engine, notice: Notice) -> Answer[CaptureView]:
        capture = await engine.capture(request, notice)
        cards = await engine.cards(capture.id)
        rows = [CardRow.of(card) for card in cards]
        best = [call("get_card", card_id=row.id) for row in rows if row.targets][:1]
        return Answer(
            status="ok",
            summary=f"Capture {capture.id}: {counted(capture.calls, 'call')} of "
            f"{counted(len(cards), 'operator')} on {capture.device_name}.",
            data=CaptureView(
                capture_id=capture.id,
                device=capture.device_name,
                calls=capture.calls,
                wall_us=None if capture.wall_us is None else rounded(capture.wall_us),
                busy_us=rounded(capture.busy_us),
                cards=rows[:SHOWN],
                left_out=left_out(min(SHOWN, len(rows)), len(rows), "list_cards()"),
            ),
            next=[*best, call("list_cards", capture_id=capture.id)],
        )

    arguments = {"entry": entry, "inputs": inputs, "device": device}
    return await slow(ctx, "capture_model", arguments, wait_s, work)
