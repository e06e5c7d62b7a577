"""What the command line says when it is asked for something that cannot be done."""

import json

import pytest


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["capture", "missing.py"], 2, "missing.py"),
        (["cards"], 2, "capture"),
        (["evaluate", "--variant", "v1", "missing.cpp"], 2, "missing.cpp"),
        (["tree", "--variant", "v99"], 2, "'v99'"),
        (["tree", "--variant", "banana"], 2, "'banana'"),
        (["cast", "verify", "missing.cast"], 2, "missing.cast"),
        (["measure", "missing.py", "--cast", "missing.cast"], 2, "missing"),
    ],
)
def test_one_sentence_says_what_is_wrong_and_what_to_do(kernelforge, arguments, code, words):
    ended = kernelforge(*arguments)
    assert (ended.returncode, ended.stdout) == (code, "")
    assert ended.stderr.startswith("kernelforge: ")
    assert words in ended.stderr
    assert "Next:" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_with_json_the_sentence_is_a_document(kernelforge):
    ended = kernelforge("capture", "missing.py", "--json")
    assert ended.returncode == 2
    assert "missing.py" in json.loads(ended.stdout)["error"]


def test_a_file_without_a_factory_is_a_usage_error(kernelforge, user_projects):
    ended = kernelforge("capture", user_projects / "broken" / "no_factory.py")
    assert ended.returncode == 2
    assert "make_model" in ended.stderr


def test_a_model_that_raises_is_a_failure(kernelforge, user_projects):
    ended = kernelforge("capture", user_projects / "broken" / "raises.py", "--json")
    assert ended.returncode == 1
    assert "Next:" in json.loads(ended.stdout)["error"]


def test_garbage_is_no_cast(kernelforge, tmp_path):
    (tmp_path / "garbage.cast").write_bytes(b"PK\x03\x04 not a cast")
    ended = kernelforge("cast", "inspect", "garbage.cast", "--json")
    assert ended.returncode == 2
    assert "garbage.cast" in json.loads(ended.stdout)["error"]


@pytest.mark.parametrize("arguments", [[], ["capture"], ["evaluate", "a.cpp"], ["nonsense"]])
def test_a_wrong_command_line_exits_with_2(kernelforge, arguments):
    assert kernelforge(*arguments).returncode == 2


def test_a_project_that_cannot_be_written_is_named(kernelforge, tmp_path):
    (tmp_path / "file").write_text("in the way")
    ended = kernelforge("cards", "--project", tmp_path / "file")
    assert ended.returncode == 1
    assert str(tmp_path / "file") in ended.stderr
