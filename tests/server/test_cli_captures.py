"""What people see of captures: their summary, the list, and taking them out again."""

import json
import os
import re
import shutil
import time

import pytest

pytestmark = pytest.mark.calm

MODEL = """
import torch
import torch.nn.functional as F


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)

    def forward(self, x):
        return x + self.two(F.gelu(self.one(x)))


def make_model():
    blocks = torch.nn.Sequential(*(Block() for _ in range(3)))
    return lambda x: blocks(x) + torch.randn_like(x)


def make_inputs():
    return torch.ones(8, 64)
"""


@pytest.fixture
def captured(kernelforge, tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    ended = kernelforge("capture", "model.py")
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_a_capture_is_summed_up_so_that_the_shares_of_operators_add_up(captured):
    said = captured.splitlines()
    assert re.match(r"c1: \d+ calls of \d+ operators on .+; the model takes [\d.]+ [um]s", said[0])
    assert re.match(
        r"(launch|memory|compute)-bound: the processor works on operators \d+%", said[1]
    )
    start, end = said.index("Operators"), next(i for i, t in enumerate(said) if t[:3] == "Not")
    assert re.match(r"card +operator +variant +inputs +calls +eager +share +wall", said[start + 1])
    rows = [line for line in said[start + 2 : end] if re.match(r"k\d+ +aten", line)]
    shares = [float(re.search(r"[um]s +([\d.]+)%", row)[1]) for row in rows]
    left = re.findall(r"\(([\d.]+)%\)", "\n".join(said))
    assert sum(shares) + sum(map(float, left)) == pytest.approx(100, abs=1.5)
    assert re.search(r"Not targets: .*it is random", said[end])


def test_cards_can_be_ordered_by_share_or_by_gain(captured, kernelforge):
    for sort, column in (("share", 0), ("gain", -1)):
        text = kernelforge("cards", "--sort", sort).stdout.partition("Regions")[0]
        rows = [re.findall(r"([\d.]+)%", line) for line in text.splitlines() if line[:1] == "k"]
        values = [float(row[column]) for row in rows]
        assert values == sorted(values, reverse=True) != []
        listed = json.loads(kernelforge("cards", "--sort", sort, "--json").stdout)["cards"]
        assert {card["operator"] for card in listed} >= {"aten::linear", "aten::gelu"}
    assert kernelforge("cards", "--sort", "name").returncode == 2


def test_captures_are_listed_with_what_they_take(captured, kernelforge):
    said = kernelforge("captures").stdout.splitlines()
    assert re.match(r"capture +model +device +inputs +age +calls +wall +bound +size", said[0])
    assert re.match(r"c1 +\S+model.py:make_model +cpu .* \d+ (s|min) +\d+ ", said[1])
    assert re.fullmatch(r"1 capture; example tensors take [\d.]+ KiB\.", said[-1])
    document = json.loads(kernelforge("captures", "--json").stdout)
    assert document["captures"][0]["id"] == "c1"
    assert 0 < document["captures"][0]["stored_bytes"] == document["stored_bytes"]


def test_a_removed_capture_is_gone_and_its_tensors_after_an_hour(captured, kernelforge, tmp_path):
    assert "c1 is removed, with" in kernelforge("captures", "delete", "c1").stdout
    assert kernelforge("captures").stdout.startswith("0 captures; example tensors take")
    assert "stay for an hour" in kernelforge("captures", "clean").stdout
    past = time.time() - 7200
    for file in (tmp_path / "project" / "blobs").rglob("*.safetensors"):
        os.utime(file, (past, past))
    cleaned = json.loads(kernelforge("captures", "clean", "--json").stdout)
    assert cleaned["blobs"] > 0
    assert "take 0 B" in kernelforge("captures").stdout
    assert kernelforge("capture", "model.py").stdout.startswith("c2: ")


def test_a_capture_with_a_kernel_is_removed_by_force_only(forged, sentence, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(forged.folder / ".kernelforge", folder)
    refused = forged.run("captures", "delete", "c1", "--project", folder)
    said = sentence(refused, 2)
    assert f"{forged.node} of {forged.variant}" in said  # and what others made of the same project
    assert "which would go with it" in said
    done = forged.run("captures", "delete", "c1", "--force", "--project", folder, "--json")
    removed = json.loads(done.stdout)
    assert removed["capture_id"] == "c1"
    assert removed["nodes"] >= 1
    assert "no capture yet" in sentence(forged.run("cards", "--project", folder), 2)


def test_a_capture_that_is_not_there_is_named(kernelforge, sentence):
    assert "no capture 'c9'" in sentence(kernelforge("captures", "delete", "c9"), 2)
    assert kernelforge("captures").stdout == "0 captures; example tensors take 0 B.\n"
