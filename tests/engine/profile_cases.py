"""An engine with one captured operator, whose candidates are profiled."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import CaptureRequest, Proposal
from kernelforge_engine.profiles import Profile
from kernelforge_engine.records import Node, Status
from kernelforge_server.settings import resolve


def silent(_progress):
    pass


@dataclass(frozen=True)
class Workshop:
    """One variant of one project."""

    engine: Engine
    project: Path
    variant: str

    async def node(self, text: str) -> Node:
        """The node that a valid candidate becomes."""
        proposal = Proposal(text=text, variant_id=self.variant, tier="quick")
        submission = await self.engine.submit(proposal, silent)
        assert submission.verdict.status == Status.VALID, submission.verdict
        return submission.node

    async def profile(self, text: str) -> Profile:
        """The profile of a candidate."""
        node = await self.node(text)
        return await self.engine.profile(node.id, refresh=False, notice=silent)


@asynccontextmanager
async def workshop(
    folder: Path, model: str, device: str, programs: Path | None = None
) -> AsyncIterator[Workshop]:
    """An engine that has captured the model with this text, which calls one operator; its children
    look for programs in `programs` first."""
    (folder / "model.py").write_text(model)
    settings = resolve(folder / "project")
    if programs is not None:
        path = f"{programs}{os.pathsep}{settings.environment['PATH']}"
        settings = replace(settings, environment={**settings.environment, "PATH": path})
    async with Engine.open(settings) as engine:
        request = CaptureRequest(model=f"{folder}/model.py:make_model", device=device)
        capture = await engine.capture(request, silent)
        (card,) = await engine.cards(capture.id)
        yield Workshop(engine, settings.project, card.variants[0].id)
