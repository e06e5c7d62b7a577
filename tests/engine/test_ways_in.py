"""Every way to name a model and its inputs, through the engine and through what its child does."""

import json
import os
import sys

import pytest
import torch
import ways_shelf

from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import CaptureRequest
from kernelforge_engine.pool.orders import ModelOrder
from kernelforge_engine.worker.load import imported, load
from kernelforge_server.settings import resolve

pytestmark = pytest.mark.usefixtures("put_back")

RATE = 16_000  # of the sound on the shelf: one second


@pytest.fixture(scope="module")
async def engine(tmp_path_factory):
    async with Engine.open(resolve(tmp_path_factory.mktemp("project"))) as opened:
        yield opened


async def captured(engine, model, *inputs, **more):
    request = CaptureRequest(model=model, inputs=inputs, **more)
    made = await engine.capture(request, lambda _: None)
    cards = {card.operator: card for card in await engine.cards(made.id)}
    return made, cards


def loaded(model, *inputs, **more):
    return load(ModelOrder(model=str(model), inputs=tuple(map(str, inputs)), device="cpu", **more))


async def test_a_saved_language_model_is_captured_on_made_up_tokens(engine, shelf):
    made, cards = await captured(engine, f"hf:{shelf}/llama")
    assert made.model == f"hf:{shelf}/llama"
    assert made.inputs == ()
    (embedding,) = cards["aten::embedding"].variants
    assert [t.shape for t in embedding.call.inputs] == [(120, 32), (1, 64)]


async def test_a_configuration_alone_is_captured_in_another_dtype(engine, shelf):
    name = f"hf:{shelf}/llama/config.json"
    _, cards = await captured(engine, name, random_weights=True, dtype="bfloat16")
    assert {v.call.inputs[0].dtype for v in cards["aten::linear"].variants} == {"bfloat16"}


async def test_a_generation_loop_is_captured_token_by_token(engine, shelf):
    _, cards = await captured(engine, f"hf:{shelf}/llama", generate_tokens=4)
    exact = [v for v in cards["aten::embedding"].variants if not v.family]
    assert {v.call.inputs[1].shape[-1] for v in exact} == {1, 64}
    assert sum(v.calls for v in exact) == 4


async def test_a_torchscript_file_is_captured_on_named_and_on_placed_tensors(engine, shelf):
    sets = [str(shelf / "named.safetensors"), str(shelf / "placed.safetensors")]
    made, cards = await captured(engine, str(shelf / "plain.pt"), *sets)
    assert made.inputs == tuple(sets)
    shapes = {v.call.inputs[0].shape for v in cards["aten::relu"].variants if not v.family}
    assert shapes == {(2, 2), (5, 2)}


async def test_an_exported_program_brings_its_inputs(engine, shelf):
    _, cards = await captured(engine, str(shelf / "plain.pt2"))
    assert [v.call.inputs[0].shape for v in cards["aten::relu"].variants] == [(3, 4)]


async def test_a_package_is_imported_from_the_folder_that_one_is_in(engine, shelf, monkeypatch):
    monkeypatch.chdir(shelf)
    _, cards = await captured(engine, "ways_package.model:build", "make_inputs", "larger")
    variants = [v for v in cards["ways_in::double"].variants if not v.family]
    assert {v.call.inputs[0].shape for v in variants} == {(2, 3), (4, 5)}
    assert {v.requires for v in variants} == {f"{shelf}:ways_package.model"}


async def test_a_part_of_a_pipeline_and_the_whole_are_captured(engine, shelf):
    part, _ = await captured(engine, f"hf:{shelf}/ddim#unet")
    whole, _ = await captured(engine, f"hf:{shelf}/ddim", random_weights=True)
    assert whole.calls > part.calls


def test_random_weights_are_finite_and_the_same_each_time(shelf):
    first, second = (
        loaded(f"hf:{shelf}/{name}", random_weights=True).model
        for name in ("whisper", "whisper/config.json")
    )
    for (name, a), b in zip(first.named_parameters(), second.parameters(), strict=True):
        assert a.isfinite().all(), name
        assert torch.equal(a, b), name
    assert first.model.decoder.layer_norm.weight.eq(1).all()
    rotary = loaded(f"hf:{shelf}/llama", random_weights=True, dtype="float16").model.model
    assert torch.equal(rotary.rotary_emb.inv_freq, ways_shelf.llama().model.rotary_emb.inv_freq)


def test_an_autoencoder_decodes_latents(shelf):
    ready = loaded(f"hf:{shelf}/vae")
    assert ready.sets[0][0][0].shape == (1, 4, 16, 16)
    assert ready.run()[0].shape == (1, 3, 32, 32)


INPUTS = {
    "text by the tokenizer": ("llama", "text.txt", {"input_ids": (1, 6)}),
    "picture as it is": ("resnet", "picture.png", {"pixel_values": (1, 3, 30, 40)}),
    "sound by the feature extractor": ("whisper", "sound.wav", {"input_features": (1, 16, 100)}),
    "sound as it is": ("wav2vec", "sound.wav", {"input_values": (1, RATE)}),
}


@pytest.mark.parametrize("name", INPUTS)
def test_a_file_becomes_what_the_model_takes(shelf, name):
    model, file, shapes = INPUTS[name]
    ready = loaded(f"hf:{shelf}/{model}", shelf / file)
    _, made = ready.sets[0]
    assert {key: tuple(made[key].shape) for key in shapes} == shapes
    assert ready.run()


def test_a_picture_is_from_0_to_1_and_a_sound_from_minus_1_to_1(shelf):
    picture = loaded(f"{shelf}/model.py:build", shelf / "picture.png").sets[0][0][0]
    assert picture[0, :, 0, 0].tolist() == pytest.approx([1.0, 0.0, 128 / 255])
    sound = loaded(f"{shelf}/model.py:build", shelf / "sound.wav").sets[0][0][0]
    assert sound.shape == (1, RATE)
    assert 0.6 < sound.abs().max() < 0.62


def test_inputs_may_come_from_another_file(shelf):
    ready = loaded(shelf / "plain.pt", f"{shelf}/inputs.py:pair", shelf / "named.safetensors")
    assert [out.shape for out in ready.run()] == [(7, 1), (2, 2)]


def test_what_a_model_requires_brings_its_operators_to_another_process(shelf):
    requires = loaded(f"{shelf}/model.py:build").requires
    script = (
        "import sys, torch\n"
        "from kernelforge_engine.worker.load import imported\n"
        "imported(sys.argv[1]); imported(sys.argv[1])\n"
        "torch.ops.ways_in_file.double(torch.ones(1))\n"
    )
    assert os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", script, requires]) == 0


def test_a_grey_picture_is_made_for_a_model_of_one_channel(shelf):
    config = {
        "model_type": "vit", "image_size": 16, "patch_size": 8, "num_channels": 1,
        "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 32,
    }  # fmt: skip
    (shelf / "grey.json").write_text(json.dumps(config))
    ready = loaded(f"hf:{shelf}/grey.json", shelf / "picture.png", random_weights=True)
    assert ready.sets[0][1]["pixel_values"].shape == (1, 1, 16, 16)
    assert ready.run()


def test_a_module_found_in_a_folder_is_found_again_from_elsewhere(shelf, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    imported(f"{shelf}:ways_package.model")
    assert sys.modules["ways_package.model"].__file__ == str(shelf / "ways_package" / "model.py")
