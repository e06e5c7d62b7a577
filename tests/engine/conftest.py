"""A real engine on a real captured model, shared by the tests of a module."""

import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import region_cases
import torch
import ways_shelf

from kernelforge_engine import cast as casts
from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import CaptureRequest, Proposal, Settings, Submission
from kernelforge_engine.records import Variant
from kernelforge_server.settings import resolve

BACKENDS = [
    pytest.param("cpu"),
    pytest.param("cuda", marks=pytest.mark.gpu),
]


def settings(project: Path, **changes) -> Settings:
    return replace(resolve(project), **changes)


def silent(_progress) -> None:
    pass


@dataclass(frozen=True)
class Forge:
    """An engine with a capture in it."""

    engine: Engine
    variants: dict[str, Variant]

    async def submit(self, operator: str, text: str, **more) -> Submission:
        proposal = Proposal(text=text, variant_id=self.variants[operator].id, **more)
        return await self.engine.submit(proposal, silent)


async def captured(engine: Engine, file: Path, device: str) -> Forge:
    capture = await engine.capture(
        CaptureRequest(model=f"{file}:make_model", device=device), silent
    )
    cards = await engine.cards(capture.id)
    exact = [v for c in cards for v in c.variants if v.target and v.family is None]
    return Forge(engine, {v.call.name: v for v in exact})


@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    """One of each kind: elementwise, in place, a reduction, an index, a channels-last image."""
    file = tmp_path_factory.mktemp("model") / "model.py"
    file.write_text(
        """
import torch


class Model(torch.nn.Module):
    def forward(self, x, index):
        y = torch.nn.functional.gelu(x)
        y = torch.nn.functional.layer_norm(y, (64,))
        z = torch.relu(x + y)
        z.mul_(y)
        return torch.softmax(z, -1) + torch.nn.functional.embedding(index, x).mean()


def make_model():
    return Model()


def make_inputs():
    torch.manual_seed(0)
    return torch.randn(48, 64), torch.tensor([3, 1, 2])
"""
    )
    return file


@pytest.fixture(scope="module", params=BACKENDS)
async def forge(request, tmp_path_factory, model_file):
    async with Engine.open(settings(tmp_path_factory.mktemp("project"))) as engine:
        yield await captured(engine, model_file, request.param)


@pytest.fixture
def recorded(tmp_path):
    """Captures a model file with this text: the capture, and its variants by operator."""

    async def recording(body: str, **changes):
        file = tmp_path / "model.py"
        file.write_text(f"import torch\nimport torch.nn.functional as F\n{body}")
        async with Engine.open(settings(tmp_path / "project")) as engine:
            request = CaptureRequest(model=f"{file}:make_model", **changes)
            capture = await engine.capture(request, silent)
            variants: dict[str, list[Variant]] = {}
            for card in await engine.cards(capture.id):
                for variant in card.variants:
                    variants.setdefault(variant.call.name, []).append(variant)
        return capture, variants

    return recording


@pytest.fixture
def without_compiler(tmp_path, monkeypatch):
    """Runs Python code in a process that sees no compiler, however it looks for one: the lines that
    it prints."""

    def run(code, *arguments):
        empty = tmp_path / "empty"
        empty.mkdir(exist_ok=True)
        for name, value in (("PATH", empty), ("CXX", "/nowhere/g++"), ("CC", "/nowhere/gcc")):
            monkeypatch.setenv(name, str(value))
        command = [sys.executable, "-c", code, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run


@pytest.fixture(scope="session")
def shelf(tmp_path_factory):
    """A folder with a model and inputs of every kind."""
    return ways_shelf.filled(tmp_path_factory.mktemp("ways"))


@pytest.fixture
def put_back():
    """What loading adds to this process goes again."""
    path, known = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - known:
        if name.startswith(("kernelforge_user_model", "ways_package")):
            del sys.modules[name]


@pytest.fixture
def code(tmp_path):
    """A fresh module with the classes and functions of region_cases."""
    torch.manual_seed(0)
    yield region_cases.model_code(tmp_path)
    del sys.modules["region_model"]


@pytest.fixture
def x():
    """What the regions of `code` are called with."""
    return torch.randn(6, 16)


@pytest.fixture
def norms(code, x, tmp_path):
    """A cast with a kernel for RMSNorm at one size."""
    call = region_cases.call_of(code.RMSNorm(), hidden_states=x)
    cast = casts.load(region_cases.write(tmp_path / "norms.cast", (call, region_cases.RMS)))
    yield cast
    cast.disable()


@pytest.fixture
def every(code, x, tmp_path):
    """A cast with a kernel for each region of Model."""
    ada = region_cases.call_of(code.AdaNorm(), x=x, emb=torch.randn(x.shape[-1]), gain=1.0)
    pairs = [
        (region_cases.call_of(code.RMSNorm(), hidden_states=x), region_cases.RMS),
        (region_cases.call_of(code.Residual(), x=x), region_cases.RESIDUAL),
        (ada, region_cases.ADA),
        (region_cases.call_of(code.rotate, q=x, cos=x + 1, sin=x + 2), region_cases.ROTATE),
    ]
    cast = casts.load(region_cases.write(tmp_path / "every.cast", *pairs))
    yield cast
    cast.disable()
