"""Models at their published sizes, random weights, on a GPU: what a capture of each must show."""

from pathlib import Path

import pytest

import kernelforge_server
from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import CaptureRequest
from kernelforge_server.settings import resolve

PUBLISHED = Path(__file__).parent.parent / "user_projects" / "published"
EXAMPLES = Path(kernelforge_server.__file__).parent / "examples"
BUDGET = 1 << 30
STEPS = 17  # the prompt, then 16 tokens

# Calls that follow from the architecture alone, and regions that must appear by themselves.
MODELS = [
    pytest.param(
        EXAMPLES / "resnet50.py",
        {"aten::conv2d": 53, "aten::batch_norm": 53, "aten::linear": 1},
        {"Bottleneck"},
        id="resnet50",
    ),
    pytest.param(
        EXAMPLES / "vae_decoder.py",
        {"aten::group_norm": 30, "aten::conv2d": 35, "aten::silu": 29},
        {"ResnetBlock2D"},
        id="vae",
    ),
    pytest.param(
        PUBLISHED / "sd35_transformer.py",
        {"aten::scaled_dot_product_attention": 24 + 13, "aten::gelu": 24 + 23},
        {"RMSNorm", "AdaLayerNormZero", "SD35AdaLayerNormZeroX"},
        id="sd35",
    ),
    pytest.param(
        PUBLISHED / "whisper_small.py",
        {"aten::conv1d": 2, "aten::gelu": 2 + 12 + 12 * 16},
        {"WhisperEncoderLayer"},
        id="whisper",
    ),
    pytest.param(
        PUBLISHED / "gemma4_e2b.py",
        {"aten::softmax.int": 35 * STEPS, "aten::linear": 277 * STEPS},
        {"Gemma4RMSNorm", "Gemma4TextMLP", "apply_rotary_pos_emb"},
        id="gemma",
    ),
    pytest.param(
        PUBLISHED / "qwen35_moe.py",
        {"aten::_grouped_mm": 2 * 40 * STEPS},
        {"Qwen3_5MoeRMSNorm", "Qwen3_5MoeSparseMoeBlock", "Qwen3_5MoeRMSNormGated"},
        id="qwen",
    ),
]


@pytest.mark.gpu
@pytest.mark.parametrize(("file", "counts", "regions"), MODELS)
async def test_a_published_model_is_captured_whole(file, counts, regions, tmp_path):
    request = CaptureRequest(model=f"{file}:make_model", device="cuda", max_bytes=BUDGET)
    async with Engine.open(resolve(tmp_path / "project")) as engine:
        capture = await engine.capture(request, lambda _progress: None)
        cards = {card.operator: card for card in await engine.cards(capture.id)}
    assert (capture.coverage, capture.unseen, capture.error) == (1.0, {}, None)
    assert capture.output_drift == 0
    assert capture.stored_bytes <= BUDGET
    operators = [card for card in cards.values() if not card.is_region]
    assert sum(card.share for card in operators) == pytest.approx(1)
    assert {name: cards[name].calls for name in counts} == counts
    for name in regions:
        assert any(variant.target for variant in cards[f"region::{name}"].variants), name
