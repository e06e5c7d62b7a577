"""Which example tensors a capture keeps, and that a sample of a tensor stands in for it."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from kernelforge_engine.calls import TensorSpec
from kernelforge_engine.engine import Engine
from kernelforge_engine.errors import QuotaReached
from kernelforge_engine.exchanges import CaptureRequest, Proposal
from kernelforge_engine.pool.orders import CaptureOrder, ModelOrder
from kernelforge_engine.records import Status
from kernelforge_engine.store.blobs import sizes
from kernelforge_engine.worker.shelf import shelf
from kernelforge_engine.worker.tensors import SAMPLE_VALUES, fetch, is_sample
from kernelforge_server.settings import resolve

BACKENDS = [pytest.param("cpu"), pytest.param("cuda", marks=pytest.mark.gpu)]

WIDE = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.linspace(1, 2, 1 << 20))

    def forward(self, x):
        return x * self.scale


def make_model():
    return Model()


def make_inputs():
    torch.manual_seed(0)
    return torch.randn(2, 1 << 20)
"""
PRODUCT = {
    "cpu": """/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "in1", "out0", "i64:in0.numel", "i64:in1.numel"]
*/
extern "C" void k(const float* x, const float* s, float* y, long n, long m) {
  for (long i = 0; i < n; ++i) y[i] = x[i] * s[i % m];
}
""",
    "cuda": """/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(in0.numel, 256)", 1, 1]
block = [256, 1, 1]
args = ["in0", "in1", "out0", "i64:in0.numel", "i64:in1.numel"]
*/
extern "C" __global__ void k(const float* x, const float* s, float* y, long long n, long long m) {
  long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i < n) y[i] = x[i] * s[i % m];
}
""",
}


def silent(_progress):
    pass


async def captured(engine, folder: Path, text: str, **more):
    """A capture of a model file, and its target variants by operator."""
    file = folder / "model.py"
    file.write_text(text)
    capture = await engine.capture(CaptureRequest(model=f"{file}:make_model", **more), silent)
    cards = await engine.cards(capture.id)
    exact = [v for card in cards if not card.is_region for v in card.variants]
    return capture, {v.call.operator: v for v in exact if v.target and v.family is None}


@pytest.mark.parametrize("device", BACKENDS)
async def test_a_capture_stays_within_its_budget_and_what_it_sampled_can_be_judged(
    tmp_path, device
):
    budget = 1 << 20
    async with Engine.open(resolve(tmp_path / "project")) as engine:
        capture, variants = await captured(engine, tmp_path, WIDE, device=device, max_bytes=budget)
        mul = variants["aten::mul"]
        assert all(map(is_sample, mul.examples[0]))
        assert 0 < capture.stored_bytes <= budget
        assert sum(sizes(tmp_path / "project" / "blobs").values()) <= budget
        proposal = Proposal(text=PRODUCT[device], variant_id=mul.id)
        found = await engine.submit(proposal, silent)
        assert found.verdict.status == Status.VALID, found.verdict
        assert found.verdict.evidence["sampled"] == ["in0", "in1"]
        wrong = replace(proposal, text=PRODUCT[device].replace("s[i % m]", "s[0]"))
        assert (await engine.submit(wrong, silent)).verdict.status == Status.WRONG_VALUES
        timed = await engine.benchmark(found.node.id, silent)
        assert timed.timing is not None


async def test_the_same_capture_again_stores_nothing_more(tmp_path):
    async with Engine.open(resolve(tmp_path / "project")) as engine:
        first, before = await captured(engine, tmp_path, WIDE)
        second, after = await captured(engine, tmp_path, WIDE)
    assert first.stored_bytes > 3 << 22
    assert second.stored_bytes == 0
    assert before["aten::mul"].examples == after["aten::mul"].examples
    assert not any(map(is_sample, after["aten::mul"].examples[0]))


async def test_a_weight_that_many_variants_share_takes_its_room_once(tmp_path):
    text = WIDE.replace("x * self.scale", "(x * self.scale)[0] * self.scale + x[:1] / self.scale")
    async with Engine.open(resolve(tmp_path / "project")) as engine:
        capture, variants = await captured(engine, tmp_path, text, max_bytes=40 << 20)
    assert len({v.examples[0][1] for n, v in variants.items() if n != "aten::add"}) == 1
    assert not any(is_sample(n) for v in variants.values() for n in v.examples[0])
    assert capture.stored_bytes <= 40 << 20


LOOP = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        for _ in range(6):
            x = torch.erf(x) + 1
        return torch.sigmoid(torch.ones(4)) + torch.sigmoid(torch.ones(4)) + x.sum()


def make_model():
    return Model()


def make_inputs():
    return torch.zeros(64)
"""


async def test_further_examples_of_a_variant_differ_in_what_they_hold(tmp_path):
    async with Engine.open(resolve(tmp_path / "project")) as engine:
        _, variants = await captured(engine, tmp_path, LOOP, examples_per_variant=3)
    assert len(set(variants["aten::erf"].examples)) == 3
    assert len(variants["aten::sigmoid"].examples) == 1


async def test_a_variant_beyond_the_smallest_budget_is_no_target_and_says_so(tmp_path):
    async with Engine.open(resolve(tmp_path / "project")) as engine:
        capture, variants = await captured(engine, tmp_path, WIDE, max_bytes=1000)
        reasons = [v.reason for c in await engine.cards(capture.id) for v in c.variants]
    assert variants == {}
    assert any("do not fit into the capture's budget of 1000 bytes" in r for r in reasons if r)


def order_of(folder: Path, **changes) -> CaptureOrder:
    model = ModelOrder(model="m.py:make_model", inputs=(), device="cpu")
    blobs, cache = str(folder / "blobs"), str(folder / "cache")
    return replace(
        CaptureOrder(model=model, blobs=blobs, cache=cache, max_bytes=1 << 30), **changes
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool", "uint8"])
def test_a_tensor_made_of_a_sample_has_the_layout_and_values_of_the_tensor(tmp_path, dtype):
    torch.manual_seed(0)
    whole = torch.randint(0, 2 if dtype == "bool" else 200, (400, 512)).to(getattr(torch, dtype))
    tensor = whole[:, ::2]
    spec = TensorSpec(dtype=dtype, shape=(400, 256), stride=(512, 2), device="cpu", aligned=False)
    with shelf(order_of(tmp_path)) as kept:
        name = kept.store_sample(tensor)
        assert kept.store_sample(tensor) == name
        kept.publish({name})
    assert kept.stored_bytes <= SAMPLE_VALUES * whole.element_size() + 128
    made = fetch(name, spec, tmp_path / "blobs", torch.device("cpu"))
    assert (made.shape, made.stride(), made.dtype) == (tensor.shape, (512, 2), tensor.dtype)
    assert made.data_ptr() % 16
    assert set(made.unique().tolist()) <= set(tensor.unique().tolist())
    assert float(made.double().mean()) == pytest.approx(float(tensor.double().mean()), rel=0.05)
    assert torch.equal(made, fetch(name, spec, tmp_path / "blobs", torch.device("cpu")))


def three(order: CaptureOrder) -> None:
    with shelf(order) as kept:
        names = {kept.store(torch.full((100,), float(value))) for value in (1, 2, 3)}
        kept.publish(names)


def test_a_capture_that_fails_takes_nothing_from_one_that_found_its_tensors(tmp_path):
    ones = torch.ones(100)
    with shelf(order_of(tmp_path)) as other:
        shared = other.store(ones)
        other.publish({shared})
        with pytest.raises(QuotaReached):
            three(order_of(tmp_path, quota_bytes=1000, room_bytes=600))
        assert other.store(ones) == shared
    left = [p.name for p in (tmp_path / "blobs").rglob("*") if p.is_file()]
    assert left == [f"{shared}.safetensors"]


def test_what_a_killed_capture_had_stored_is_found_by_the_next(tmp_path, python_command):
    script = f"""
import os, torch
from kernelforge_engine.pool.orders import CaptureOrder, ModelOrder
from kernelforge_engine.worker.shelf import shelf
order = CaptureOrder(model=ModelOrder(model="", inputs=(), device="cpu"),
                     blobs={str(tmp_path / "blobs")!r}, cache="", max_bytes=1 << 30)
with shelf(order) as kept:
    kept.store(torch.ones(100))
    os.kill(os.getpid(), 9)
"""
    ended = subprocess.run([python_command[0], "-c", script], check=False)
    assert ended.returncode == -9
    assert sizes(tmp_path / "blobs") == {}
    with shelf(order_of(tmp_path)) as kept:
        name = kept.store(torch.ones(100))
        kept.publish({name})
        assert kept.stored_bytes == 0
    assert list(sizes(tmp_path / "blobs")) == [name]
