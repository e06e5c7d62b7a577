"""How the command line names models and inputs, and which options it refuses."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file
from transformers import LlamaConfig

MODEL = """
import torch


def build():
    return torch.nn.Linear(4, 2)


def small():
    return torch.ones(3, 4)


def large():
    return torch.ones(9, 4)
"""


@pytest.fixture
def folder(tmp_path):
    """A package, an input file and a configuration, beside each other."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").write_text("")
    (tmp_path / "mine" / "model.py").write_text(MODEL)
    save_file({"input": np.ones((5, 4), np.float32)}, tmp_path / "x.safetensors")
    LlamaConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
        vocab_size=120,
    ).to_json_file(tmp_path / "config.json")  # fmt: skip
    return tmp_path


def shapes(captured, operator):
    assert captured.returncode == 0, captured
    document = json.loads(captured.stdout)
    return document["capture"], {row["operator"]: row for row in document["cards"]}[operator]


def test_a_package_and_several_input_sets_make_one_capture(kernelforge, folder):
    ended = kernelforge(
        "capture", "mine.model:build", "--inputs", "small", "--inputs", "large",
        "--inputs", "x.safetensors", "--json",
    )  # fmt: skip
    capture, row = shapes(ended, "aten::linear")
    assert capture["model"] == "mine.model:build"
    assert capture["inputs"] == ["small", "large", str(folder / "x.safetensors")]
    assert row["calls"] == 3


def test_a_configuration_makes_a_model_that_generates(kernelforge, folder):
    ended = kernelforge(
        "capture", "hf:config.json", "--random-weights", "--dtype", "bfloat16", "--generate", "3",
        "--examples-per-variant", "2", "--max-bytes", "1MiB", "--json",
    )  # fmt: skip
    capture, row = shapes(ended, "aten::embedding")
    assert capture["model"] == f"hf:{folder}/config.json"
    assert row["calls"] == 3
    assert capture["stored_bytes"] <= 1 << 20


REFUSED = {
    "a size": (["--max-bytes", "much"], "max_bytes = 'much' is not accepted"),
    "a dtype": (["--dtype", "float8"], "dtype = 'float8' is not accepted"),
    "a count of examples": (["--examples-per-variant", "0"], "examples_per_variant = 0"),
    "a count of tokens": (["--generate", "-1"], "generate_tokens = -1"),
    "random weights for user code": (["--random-weights"], "random_weights = True"),
    "a function": (["--inputs", "other"], "no function other()"),
    "a file": (["--inputs", "missing.wav"], "no readable file at"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_option_for_this_model_is_refused(kernelforge, folder, sentence, name):
    more, words = REFUSED[name]
    assert words in sentence(kernelforge("capture", "mine.model:build", *more), 2)


def test_a_module_that_is_nowhere_is_told_how_to_be_found(kernelforge, folder, sentence):
    text = sentence(kernelforge("capture", "yours.model:build", "--json"), 2)
    assert "There is no module yours.model" in text


def test_a_measurement_takes_the_options_of_a_capture(forged, sentence):
    ended = forged.run("measure", "model.py", "--cast", "good.cast", "--dtype", "int8", "--json")
    assert "dtype = 'int8' is not accepted" in sentence(ended, 2)


def test_a_measurement_runs_every_input_set(forged):
    (forged.folder / "two.py").write_text(
        (forged.folder / "model.py").read_text() + "\n\ndef same():\n    return torch.zeros(8, 8)\n"
    )
    once, twice = (
        json.loads(forged.run("measure", "two.py", "--cast", "good.cast", "--json", *more).stdout)[
            "rows"
        ][0]
        for more in ((), ("--inputs", "make_inputs", "--inputs", "same"))
    )
    assert once["fallbacks"] == twice["fallbacks"] == {}
    assert once["max_abs"] == twice["max_abs"] == 0.0
    assert twice["hits"] > 0
