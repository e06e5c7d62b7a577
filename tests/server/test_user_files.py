"""User files that do not do what a capture needs: each is told why, in one sentence."""

import json

import pytest

BASE = """
import os, sys, torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def make_model():
    return Model()


def make_inputs():
    return torch.ones(4, 4)


"""


def forward(body):
    return f"def _forward(self, x):\n    {body}\n\n\nModel.forward = _forward\n"


USER_FILES = {
    "raises when imported": ("raise ValueError('no\\nluck')", 2, "ValueError: no"),
    "exits when imported": ("sys.exit(3)", 2, "cannot be imported: SystemExit: 3"),
    "has an error of syntax": ("def f(:", 2, "SyntaxError"),
    "exits in make_model": ("def make_model(): sys.exit()", 2, "make_model() in"),
    "returns no model": ("def make_model(): return 7", 2, "returned int"),
    "makes no inputs": ("del make_inputs", 2, "defines no function make_inputs()"),
    "has inputs on another device": (
        "def make_inputs(): return torch.ones(2, device='meta')",
        2,
        "inputs[0] from make_inputs() cannot be used: it is on meta",
    ),
    "has a model that cannot be moved": (
        "def make_model(): return torch.nn.Linear(2, 2, device='meta')",
        2,
        "cannot be moved to cpu",
    ),
    "raises in forward": (forward("raise ValueError('wrong shape')"), 1, "wrong shape"),
    "exits in forward": (forward("sys.exit(0)"), 1, "The model raised SystemExit: 0"),
    "ends its process": (forward("os._exit(0)"), 1, "ended with exit code 0"),
    "calls no operator": (forward("return x"), 1, "called no operator"),
}


@pytest.mark.parametrize("name", USER_FILES)
def test_a_user_file_that_fails_is_told_why(kernelforge, sentence, tmp_path, name):
    more, code, words = USER_FILES[name]
    (tmp_path / "model.py").write_text(BASE + more)
    assert words in sentence(kernelforge("capture", "model.py", "--json"), code)


def test_a_user_file_may_print_what_it_wants(kernelforge, tmp_path):
    noise = "print('{' * 100_000, flush=True)\nos.write(2, b'\\xff\\xfe')\nos.write(1, b'\\0')\n"
    (tmp_path / "model.py").write_text(BASE + noise)
    ended = kernelforge("capture", "model.py", "--json")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert json.loads(ended.stdout)["capture"]["calls"] == 1


@pytest.mark.parametrize(
    ("entry", "code", "words"),
    [("no_factory.py", 2, "make_model"), ("raises.py", 1, "The model raised")],
)
def test_a_broken_project_is_told_why(kernelforge, sentence, user_projects, entry, code, words):
    assert words in sentence(kernelforge("capture", user_projects / "broken" / entry), code)
