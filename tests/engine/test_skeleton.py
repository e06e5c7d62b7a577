"""The candidate an agent begins with is accepted and built as it is, for whatever call."""

import shutil
import subprocess

import pytest

from kernelforge_engine.calls import Argument, Call, OutputSpec, TensorSpec
from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import CaptureRequest, Proposal
from kernelforge_engine.launch.header import parse_source
from kernelforge_engine.launch.resolve import resolve as resolved
from kernelforge_engine.launch.skeleton import skeleton
from kernelforge_engine.records import Status
from kernelforge_server.settings import resolve

BACKENDS = [pytest.param("cpu"), pytest.param("cuda", marks=pytest.mark.gpu)]
MODEL = """
import torch
import torch.nn.functional as F


class ScaledNorm(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.linspace(0.5, 1.5, size))
        self.variance_epsilon = 1e-6

    def forward(self, hidden_states):
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        return self.weight * (hidden_states * torch.rsqrt(variance + self.variance_epsilon))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = ScaledNorm(64)

    def forward(self, x, image):
        y = self.norm(x)
        half, brain = y.half(), y.bfloat16()
        total = F.gelu(half).float().sum() + F.layer_norm(brain, (64,)).float().sum()
        total = total + (brain.t() + brain.t().contiguous()).float().sum()
        values, indices = torch.topk(y, 3)
        total = total + values.sum() + torch.where(y > 0.5, y, -y).sum() + indices.sum()
        total = total + torch.cat([x[:, :5]] * 70, 1).sum()
        pixels = F.hardtanh(image, -0.5, float("inf")) + F.avg_pool2d(image, 3, 1, 1)
        y.mul_(2.0)
        return total + pixels.sum() + y.double().cumsum(0).sum()


def make_model():
    return Model()


def make_inputs():
    torch.manual_seed(0)
    image = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
    return torch.randn(48, 64), image
"""
OPERATORS = {
    "aten::gelu", "aten::layer_norm", "aten::add.Tensor", "aten::topk", "aten::where.self",
    "aten::cat", "aten::hardtanh", "aten::avg_pool2d", "aten::mul_.Tensor", "aten::gt.Scalar",
    "aten::cumsum", "aten::to.dtype", "aten::contiguous",
}  # fmt: skip
REGION = "region::ScaledNorm"


def silent(_progress):
    pass


@pytest.fixture(scope="module", params=BACKENDS)
async def verdicts(request, tmp_path_factory):
    """What became of the skeleton of every target, by the name of its operator."""
    folder = tmp_path_factory.mktemp("skeleton")
    (folder / "model.py").write_text(MODEL)
    asked = CaptureRequest(model=f"{folder}/model.py:make_model", device=request.param)
    async with Engine.open(resolve(folder / "project")) as engine:
        capture = await engine.capture(asked, silent)
        found = {}
        cards = [c for c in await engine.cards(capture.id) if c.operator in {*OPERATORS, REGION}]
        for card in cards:
            for variant in (v for v in card.variants if v.target):
                proposal = Proposal(text=skeleton(variant.call), variant_id=variant.id)
                submitted = await engine.submit(proposal, silent)
                found.setdefault(card.operator, []).append(submitted.verdict)
        yield found


async def test_it_is_built_for_every_operator(verdicts):
    assert verdicts.keys() >= OPERATORS
    refused = [
        (operator, verdict)
        for operator, found in verdicts.items()
        for verdict in found
        if verdict.status not in (Status.WRONG_VALUES, Status.WRONG_STRUCTURE, Status.VALID)
    ]
    assert refused == []


async def test_it_is_right_only_for_what_copies(verdicts):
    valid = {o for o, found in verdicts.items() if any(v.status == Status.VALID for v in found)}
    assert valid <= {"aten::to.dtype", "aten::contiguous"}


async def test_it_is_built_for_a_region(verdicts):
    assert [v.status for v in verdicts[REGION]] == [Status.WRONG_VALUES]


DTYPES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
)  # fmt: skip


def tensor(*shape, dtype="float32", device="cpu", strides=None):
    stride, step = [], 1
    for n in reversed(shape):
        stride.insert(0, step)
        step *= n
    return TensorSpec(dtype=dtype, shape=shape, stride=strides or tuple(stride), device=device)


def call(inputs, outputs, alias=None, **arguments):
    given = {f"t{i}": {"tensor": i} for i in range(len(inputs))} | arguments
    return Call(
        operator="aten::__made_up__",
        overload="",
        words=(),
        arguments=tuple(Argument(name=name, value=value) for name, value in given.items()),
        inputs=tuple(inputs),
        outputs=tuple(OutputSpec(tensor=spec, alias=alias) for spec in outputs),
    )


def accepted(made, text=None):
    """The launch that the skeleton of a call resolves to; on the cpu it is compiled too."""
    text = text or skeleton(made)
    (launch,) = resolved(parse_source(text, made.backend).plan, made).launches
    if made.backend == "cpu" and shutil.which("g++"):
        checked = [shutil.which("g++"), "-std=c++20", "-Werror", "-fsyntax-only", "-xc++", "-"]
        subprocess.run(checked, input=text.encode(), check=True)
    return launch


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_has_a_type_in_it(dtype, device):
    spec = tensor(3, 4, dtype=dtype, device=device)
    aside = tensor(2, 6, dtype=dtype, device=device)
    assert accepted(call([spec], [spec])).args[-1].value == 12
    assert accepted(call([aside], [spec, aside], scale=2.5)).args
    assert accepted(call([spec], [spec], alias=0)).args[0].value == 0


def test_it_takes_only_numbers_that_can_be_passed():
    spec = tensor(4)
    names = {"default": 1, "i": 2, "n": 3, "x": 4.0, "is_causal": True, "dims": [5, 6]}
    others = {"lambda": 1, "limit": {"float": "inf"}, "far": 1 << 63, "to": {"dtype": "float32"}}
    launch = accepted(call([spec], [spec], **names, **others, mode="same", bias=None))
    assert [a.value for a in launch.args[2:]] == [4, 1, 2, 3, 4.0, 1, 5, 6]


def test_it_takes_no_more_buffers_than_a_launch_can():
    launch = accepted(call([tensor(4)] * 80, [tensor(320)], dim=0))
    assert len(launch.args) == 64


def test_it_follows_strides():
    text = skeleton(call([tensor(3, 4, strides=(1, 3))], [tensor(3, 4)]))
    assert "in0[c0 * in0_s0 + c1 * in0_s1]" in text
    accepted(call([tensor(3, 4, strides=(1, 3))], [tensor(3, 4)]), text)


def test_one_text_serves_other_sizes():
    text = skeleton(call([tensor(12, 64)], [tensor(12, 64)]))
    for rows in (13, 777):
        other = call([tensor(rows, 64)], [tensor(rows, 64)])
        assert accepted(other, text).args[-1].value == rows * 64
