"""A model or inputs that cannot be used: the answer says why, and what to do next."""

import json
import re
import sys
import wave

import pytest
import torch
import ways_shelf

from kernelforge_engine.errors import UsageError
from kernelforge_engine.pool.orders import ModelOrder
from kernelforge_engine.worker.load import load

pytestmark = pytest.mark.usefixtures("put_back")


def loaded(model, *inputs, **more):
    return load(ModelOrder(model=str(model), inputs=tuple(map(str, inputs)), device="cpu", **more))


REFUSED = {
    "a module that is not there": ("nothing.here:build", (), {}, "There is no module nothing.here"),
    "a module without the function": ("ways_package.model:other", (), {}, "no function other"),
    "a module that raises": ("ways_broken:build", (), {}, "ways_broken cannot be imported: Zero"),
    "a function that is not there": (
        "ways_package.model:build", ("other",), {}, "no function other",
    ),
    "an id that is not cached": ("hf:nobody/nothing", (), {}, "hf download nobody/nothing"),
    "an id that is none": ("hf:a b/c", (), {}, "not in the local Hugging Face cache"),
    "a folder that is not there": ("hf:DIR/none", (), {}, "no readable file at DIR/none"),
    "a folder that is no model": ("hf:DIR/ways_package", (), {}, "config.json cannot be read"),
    "a configuration without weights": (
        "hf:DIR/llama/config.json", (), {}, "a configuration holds no weights",
    ),
    "pickled weights": ("hf:DIR/pickled", (), {}, "save_pretrained (safetensors)"),
    "an architecture that nobody knows": (
        "hf:DIR/unknown.json", (), {"random_weights": True}, "knows neither its architectures",
    ),
    "a part that is not there": ("hf:DIR/ddim#vae", (), {}, "its parts are: unet"),
    "a configuration that fits nothing": (
        "hf:DIR/wrong.json", (), {"random_weights": True}, "wrong.json cannot be loaded",
    ),
    "a class that diffusers does not have": (
        "hf:DIR/strange.json", (), {"random_weights": True}, "never run",
    ),
    "a model that does not generate": (
        "hf:DIR/resnet", (), {"generate_tokens": 2}, "leave --generate out",
    ),
    "random weights for a file": (
        "DIR/model.py:build", (), {"random_weights": True}, "random_weights = True",
    ),
    "a dtype for a saved program": ("DIR/plain.pt2", (), {"dtype": "float16"}, "dtype = "),
    "a pickled file": ("DIR/weights.pt", (), {}, "pickled models and weights are never read"),
    "an export that is none": ("DIR/fake.pt2", (), {}, "no torch.export file"),
    "a file that is not there": ("DIR/none.pt", (), {}, "no readable file"),
    "a TorchScript file without inputs": ("DIR/plain.pt", (), {}, "give FILE.safetensors"),
    "a function beside nothing": ("DIR/plain.pt", ("pair",), {}, "no Python file beside it"),
    "a text without a tokenizer": (
        "hf:DIR/resnet", ("DIR/text.txt",), {}, "needs a tokenizer",
    ),
    "a text for a user's model": ("DIR/model.py:build", ("DIR/text.txt",), {}, "a tokenizer"),
    "an empty text": ("hf:DIR/llama", ("DIR/empty.txt",), {}, "it is empty"),
    "a sound without an extractor": (
        "hf:DIR/llama", ("DIR/sound.wav",), {}, "no feature extractor",
    ),
    "a sound at another rate": ("hf:DIR/whisper", ("DIR/fast.wav",), {}, "sampling rate"),
    "a picture that is none": ("hf:DIR/resnet", ("DIR/broken.png",), {}, "as PNG or JPEG"),
    "a sound that is none": ("hf:DIR/wav2vec", ("DIR/broken.wav",), {}, "uncompressed WAV"),
    "tensors that are none": ("hf:DIR/llama", ("DIR/broken.safetensors",), {}, "save_file"),
    "inputs that are not there": ("hf:DIR/llama", ("DIR/none.txt",), {}, "no readable file"),
    "a prompt for a pipeline of pictures": (
        "hf:DIR/ddim", ("DIR/text.txt",), {}, "takes no prompt",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def wrong(shelf):
    """Files that are not what their names say."""
    (shelf / "ways_broken.py").write_text("1 / 0")
    (shelf / "fake.pt2").write_text("nothing")
    (shelf / "empty.txt").write_text(" \n")
    (shelf / "pickled").mkdir()
    (shelf / "pickled" / "config.json").write_text((shelf / "llama" / "config.json").read_text())
    torch.save(ways_shelf.llama().state_dict(), shelf / "pickled" / "pytorch_model.bin")
    unknown = {"model_type": "unheard_of", "architectures": ["UnheardOf"]}
    (shelf / "unknown.json").write_text(json.dumps(unknown))
    (shelf / "wrong.json").write_text(json.dumps({"model_type": "llama", "hidden_size": "wide"}))
    (shelf / "strange.json").write_text(json.dumps({"_class_name": "MyOwnModel"}))
    with wave.open(str(shelf / "fast.wav"), "wb") as file:
        file.setparams((2, 2, 44_100, 0, "NONE", "none"))
        file.writeframes(bytes(4000))
    return shelf


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_used_is_told_why_and_what_to_do(wrong, monkeypatch, name):
    model, inputs, more, words = REFUSED[name]
    monkeypatch.chdir(wrong)
    here = str(wrong)
    with pytest.raises(UsageError) as refused:
        loaded(model.replace("DIR", here), *(i.replace("DIR", here) for i in inputs), **more)
    text = str(refused.value)
    assert words.replace("DIR", here) in text
    assert re.fullmatch(r".+\. Next: \S.+\S", text), text
    assert "\n" not in text


@pytest.mark.parametrize(("package", "model"), [("transformers", "llama"), ("diffusers", "vae")])
def test_a_package_that_is_not_installed_is_named(shelf, monkeypatch, package, model):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UsageError, match=f"needs the package {package}.*Next: pip install"):
        loaded(f"hf:{shelf}/{model}")
