"""What the command line says when it is asked for something that cannot be done."""

import pytest


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["capture", "missing.py"], 2, "missing.py"),
        (["capture", "."], 2, "no readable file"),
        (["capture", "~nobody-of-this-name/model.py"], 2, "no readable file"),
        (["capture", "a" * 5000], 2, "no readable file"),
        (["cards"], 2, "capture"),
        (["optimize"], 2, "capture"),
        (["evaluate", "--variant", "v1", "missing.cpp"], 2, "missing.cpp"),
        (["cast", "verify", "missing.cast"], 2, "missing.cast"),
        (["measure", "missing.py", "--cast", "missing.cast"], 2, "missing"),
    ],
)
def test_one_sentence_says_what_is_wrong_and_what_to_do(
    kernelforge, sentence, arguments, code, words
):
    ended = kernelforge(*arguments)
    assert words in sentence(ended, code)
    assert ended.stdout == ""


def test_with_json_the_sentence_is_a_document(kernelforge, sentence):
    ended = kernelforge("capture", "missing.py", "--json")
    assert "missing.py" in sentence(ended, 2)
    assert ended.stdout.startswith('{"error": ')


@pytest.mark.parametrize(
    ("device", "words"), [("meta", "only cpu and cuda"), ("a:b", "torch knows no such device")]
)
def test_a_device_that_is_none_is_named(kernelforge, sentence, forged, device, words):
    model = forged.folder / "model.py"
    assert words in sentence(kernelforge("capture", model, "--device", device), 2)


def test_cuda_on_a_machine_without_it_is_refused(kernelforge, sentence, forged, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    model = forged.folder / "model.py"
    assert "No cuda device" in sentence(kernelforge("capture", model, "--device", "cuda"), 2)
    cast = forged.folder / "good.cast"
    ended = kernelforge("measure", model, "--cast", cast, "--device", "cuda", "--json")
    assert "No cuda device" in sentence(ended, 2)


@pytest.mark.parametrize("arguments", [[], ["capture"], ["evaluate", "a.cpp"], ["nonsense"]])
def test_a_wrong_command_line_exits_with_2(kernelforge, arguments):
    assert kernelforge(*arguments).returncode == 2
