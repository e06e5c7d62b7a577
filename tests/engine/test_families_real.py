"""Families and the Judge on what real models bring: a growing cache, operators of their own."""

import pytest

from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import CaptureRequest, Proposal
from kernelforge_engine.families import instance
from kernelforge_engine.records import Status
from kernelforge_server.settings import resolve

LLAMA = """
import torch
from transformers import LlamaConfig, LlamaForCausalLM


def make_model():
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
    )
    model = LlamaForCausalLM(config).eval()

    def generate(tokens):
        return model.generate(tokens, max_new_tokens=12, min_new_tokens=12, do_sample=False)

    return generate


def make_inputs():
    return torch.arange(1, 6)[None]
"""
OWN = """
import torch


@torch.library.custom_op("kernelforge_test::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x):
    return torch.empty_like(x)


class Model(torch.nn.Module):
    def forward(self, x):
        return twice(x)


def make_model():
    return Model()


def make_inputs():
    return torch.randn(7, 5)
"""
TWICE = """/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
extern "C" void k(const float* x, float* y, long n) {
  for (long i = 0; i < n; ++i) y[i] = x[i] * FACTOR;
}
"""


def silent(_progress):
    pass


async def test_cache_of_a_language_model_grows_within_few_families(tmp_path):
    pytest.importorskip("transformers")
    file = tmp_path / "model.py"
    file.write_text(LLAMA)
    async with Engine.open(resolve(tmp_path / "project")) as engine:
        await engine.capture(CaptureRequest(model=f"{file}:make_model"), silent)
        targets = [v for c in await engine.cards() for v in c.variants if v.target]
    grouped = [v for v in targets if v.family]
    exact = [v for v in targets if not v.family]
    members = {m.call.words for v in grouped for m in v.family.members}
    alone = [v for v in exact if v.call.words not in members]
    print(f"{len(exact)} variants: {len(grouped)} families and {len(alone)} others")
    assert len(grouped) + len(alone) < 0.6 * len(exact)
    lengths = [v for v in grouped if len(v.family.members) >= 10]
    assert {v.call.operator for v in lengths} >= {"aten::cat"}
    for variant in grouped:
        for member in variant.family.members:
            assert instance(variant.family, variant.call, member.sizes) == member.call


async def test_kernel_for_an_operator_of_the_users_own_file_is_judged(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(OWN)
    async with Engine.open(resolve(tmp_path / "project")) as engine:
        await engine.capture(CaptureRequest(model=f"{file}:make_model"), silent)
        cards = await engine.cards()
        [variant] = [
            v for c in cards for v in c.variants if v.call.operator == "kernelforge_test::twice"
        ]
        assert variant.requires == str(file)
        for factor, status in (("2.f", Status.VALID), ("3.f", Status.WRONG_VALUES)):
            proposal = Proposal(text=TWICE.replace("FACTOR", factor), variant_id=variant.id)
            submission = await engine.submit(proposal, silent)
            assert submission.verdict.status == status, submission.verdict


async def test_kernel_is_held_against_the_users_operator_as_it_is_now(tmp_path):
    file = tmp_path / "own.py"
    async with Engine.open(resolve(tmp_path / "project")) as engine:
        for factor in ("2", "3"):
            file.write_text(OWN.replace("x * 2", f"x * {factor}"))
            await engine.capture(CaptureRequest(model=f"{file}:make_model"), silent)
            [card] = [c for c in await engine.cards() if c.operator == "kernelforge_test::twice"]
            text = TWICE.replace("FACTOR", f"{factor}.f")
            proposal = Proposal(text=text, variant_id=card.variants[0].id)
            submission = await engine.submit(proposal, silent)
            assert submission.verdict.status == Status.VALID, submission.verdict


async def test_every_kept_example_is_judged(tmp_path):
    file = tmp_path / "own.py"
    own = OWN.replace("return twice(x)", "return torch.relu(torch.relu(x) - x.mean())")
    file.write_text(own)
    text = TWICE.replace("x[i] * FACTOR", "x[i] < 0.f ? 0.f : x[i]")
    async with Engine.open(resolve(tmp_path / "project")) as engine:
        request = CaptureRequest(model=f"{file}:make_model", examples_per_variant=2)
        await engine.capture(request, silent)
        cards = await engine.cards()
        [variant] = [v for c in cards for v in c.variants if v.call.operator == "aten::relu"]
        assert len(variant.examples) == 2
        submission = await engine.submit(Proposal(text=text, variant_id=variant.id), silent)
    assert submission.verdict.status == Status.VALID, submission.verdict
    assert submission.verdict.evidence["draws"][:2] == ["captured", "captured 2"]
