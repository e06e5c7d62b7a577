"""What a capture records of a model, through the engine."""

import pytest
from safetensors.torch import load_file

from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import CaptureRequest
from kernelforge_server.settings import resolve

pytestmark = pytest.mark.calm

HEAD = """
import torch
import torch.nn.functional as F
"""


def silent(_progress):
    pass


async def captured(tmp_path, body, **changes):
    """Every variant of a model file, by operator name, and the capture."""
    file = tmp_path / "model.py"
    file.write_text(HEAD + body)
    async with Engine.open(resolve(tmp_path / "project")) as engine:
        capture = await engine.capture(
            CaptureRequest(model=f"{file}:make_model", **changes), silent
        )
        variants: dict[str, list] = {}
        for card in await engine.cards(capture.id):
            for variant in card.variants:
                variants.setdefault(variant.call.name, []).append(variant)
    return capture, variants


async def test_operators_are_seen_whole_whatever_their_spelling(tmp_path):
    capture, variants = await captured(
        tmp_path,
        """
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        y = self.linear(x) + x
        return torch.softmax(y, -1) + y.softmax(dim=-1) + F.softmax(y, dim=1) @ x.T @ x


def make_model():
    return Model()


def make_inputs():
    torch.manual_seed(0)
    return torch.randn(4, 8)
""",
    )
    (linear,) = variants["aten::linear"]
    (softmax,) = [v for v in variants["aten::softmax.int"] if v.call.arguments[1].value == -1]
    assert (linear.calls, linear.target, linear.module) == (1, True, "linear (Linear)")
    assert softmax.calls == 2
    assert len(variants["aten::add.Tensor"]) == 1
    counted = [v for name, vs in variants.items() if "region::" not in name for v in vs]
    assert sum(v.share for v in counted if v.family is None) == pytest.approx(1)
    assert capture.output_drift == 0
    assert capture.calls == sum(v.calls for v in counted if v.family is None)


async def test_what_cannot_be_a_target_is_counted_with_its_reason(tmp_path):
    _, variants = await captured(
        tmp_path,
        """
class Model(torch.nn.Module):
    def forward(self, x):
        mean, var = torch.zeros(4), torch.ones(4)
        y = F.batch_norm(x, mean, var, training=True)
        y = y + torch.rand_like(x) + F.dropout(x, 0.5, training=True)
        return y[y > 0].sum() + x.transpose(0, 1).reshape(-1)[0] + (x * 1j).real.sum()


def make_model():
    return Model()


def make_inputs():
    torch.manual_seed(0)
    return torch.randn(16, 4)
""",
    )
    reasons = {name: vs[0].reason for name, vs in variants.items() if not vs[0].target}
    assert "does not declare" in reasons["aten::batch_norm"]
    assert "random" in reasons["aten::dropout"]
    assert "random" in reasons["aten::rand_like"]
    assert "depends on data" in reasons["aten::index.Tensor"]
    assert "view" in reasons["aten::transpose.int"]


async def test_the_inputs_of_an_in_place_operator_are_those_from_before_the_call(tmp_path):
    _, variants = await captured(
        tmp_path,
        """
class Model(torch.nn.Module):
    def forward(self, x):
        return (x * 1).relu_()


def make_model():
    return Model()


def make_inputs():
    return torch.tensor([-1.0, 2.0, -3.0, 4.0])
""",
    )
    (relu,) = variants["aten::relu_"]
    (blob,) = relu.examples[0]
    file = tmp_path / "project" / "blobs" / blob[:2] / f"{blob}.safetensors"
    assert load_file(file)["data"].tolist() == [-1.0, 2.0, -3.0, 4.0]
    assert (relu.call.mutated, relu.call.outputs[0].alias) == ((0,), 0)


async def test_a_model_that_writes_its_inputs_or_keeps_a_state_is_still_captured(tmp_path):
    capture, variants = await captured(
        tmp_path,
        """
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = torch.zeros(0)

    def forward(self, x):
        self.seen = torch.cat([self.seen, x.mul_(10)])
        return self.seen


def make_model():
    return Model()


def make_inputs():
    return torch.ones(4)
""",
    )
    (mul,) = variants["aten::mul_.Tensor"]
    (blob,) = mul.examples[0]
    file = tmp_path / "project" / "blobs" / blob[:2] / f"{blob}.safetensors"
    assert load_file(file)["data"].tolist() == [1.0] * 4
    assert capture.output_drift is None


async def test_strides_make_another_variant(tmp_path):
    _, variants = await captured(
        tmp_path,
        """
class Model(torch.nn.Module):
    def forward(self, x):
        last = x.to(memory_format=torch.channels_last)
        return F.group_norm(x, 2) + F.group_norm(last, 2)


def make_model():
    return Model()


def make_inputs():
    torch.manual_seed(0)
    return torch.randn(1, 4, 6, 6)
""",
    )
    strides = {v.call.inputs[0].stride for v in variants["aten::group_norm"]}
    assert strides == {(144, 36, 6, 1), (144, 1, 24, 4)}


async def test_torchscript_is_seen_from_inside(tmp_path):
    _, variants = await captured(
        tmp_path,
        """
@torch.jit.script
def inner(x):
    return torch.relu(x) + 1


class Model(torch.nn.Module):
    def forward(self, x):
        return inner(x)


def make_model():
    return Model()


def make_inputs():
    return torch.ones(4)
""",
    )
    assert variants["aten::relu"][0].target


async def test_examples_stay_within_the_budget_dearest_first(tmp_path):
    file = tmp_path / "model.py"
    file.write_text(
        HEAD
        + """
class Model:
    def __call__(self, x, y):
        return sum(torch.erfinv(x)[0] for _ in range(400)) + y.neg()[0]


def make_model():
    return Model()


def make_inputs():
    return torch.full((1 << 16,), 0.5), torch.ones(1 << 18)
"""
    )
    settings = resolve(tmp_path / "project")
    small = type(settings)(**{**vars(settings), "max_bytes": 3 << 17})
    async with Engine.open(small) as engine:
        capture = await engine.capture(CaptureRequest(model=f"{file}:make_model"), silent)
        variants = {v.call.name: v for c in await engine.cards(capture.id) for v in c.variants}
    assert variants["aten::erfinv"].target
    assert "budget" in variants["aten::neg"].reason


async def test_a_weight_that_variants_share_takes_room_once_whichever_is_called_first(recorded):
    capture, variants = await recorded(
        """
class Model:
    def __init__(self):
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(512, 512, bias=False)

    def __call__(self, x):
        first = self.linear(x[:1])
        return first + sum(self.linear(x).sum() for _ in range(4))


def make_model():
    return Model()


def make_inputs():
    return torch.ones(64, 512)
""",
        max_bytes=1_500_000,
    )
    weights = {v.examples[0][1] for v in variants["aten::linear"] if v.family is None}
    assert len(weights) == 1
    assert not weights.pop().startswith("s")  # the whole megabyte, not a sample of it
    assert 1 << 20 < capture.stored_bytes <= 1_500_000


async def test_calls_of_all_input_sets_are_counted_together(recorded):
    capture, variants = await recorded(
        """
class Model(torch.nn.Module):
    def forward(self, x):
        return x.exp()


def make_model():
    return Model()


def make_short():
    return torch.ones(4)


def make_long():
    return torch.ones(8)
""",
        inputs=("make_short", "make_long", "make_short"),
    )
    calls = {v.call.inputs[0].shape: v.calls for v in variants["aten::exp"] if v.family is None}
    assert calls == {(4,): 2, (8,): 1}
    assert len(capture.inputs) == 3
