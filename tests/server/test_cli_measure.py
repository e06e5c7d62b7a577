"""What `kernelforge measure` and `export` say to people about a whole model."""

import re

import pytest

pytestmark = pytest.mark.calm


def test_a_measurement_has_a_row_for_every_mode_and_a_line_for_every_figure(forged):
    ended = forged.run(
        "measure", "model.py", "--cast", "good.cast", "--modes", "cuda_graph, eager",
        "--attribution",
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    said = ended.stdout
    assert re.search(r"^mode +outcome +original +with cast", said, re.MULTILINE)
    assert re.search(r"^eager +(faster|slower|no clear difference) ", said, re.MULTILINE)
    assert "cuda_graph was not measured: it is for CUDA devices only." in said
    assert re.search(
        r"should save [\d.]+ us by their own timings; the model saved -?[\d.]+ us", said
    )
    assert "In one run 1 call ran a kernel" in said
    assert re.search(rf"^{forged.node} +aten::roll +1 ", said, re.MULTILINE)


def test_a_measurement_without_a_row_failed(forged):
    ended = forged.run("measure", "model.py", "--cast", "good.cast", "--modes", "cuda_graph")
    assert ended.returncode == 1
    assert "cuda_graph was not measured" in ended.stdout


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--modes", "eager,fast"), "modes = 'fast' is not accepted"),
        (("--modes", ""), "modes = '' is not accepted"),
        (("--seconds", "0"), "seconds = 0.0 is not accepted"),
    ],
)
def test_what_cannot_be_measured_is_refused(forged, sentence, options, why):
    ended = forged.run("measure", "model.py", "--cast", "good.cast", *options, "--json")
    assert why in sentence(ended, 2)


def test_an_export_says_what_the_whole_model_came_to(forged, tmp_path):
    path = tmp_path / "x.cast"
    ended = forged.run("export", "-o", path, "--node", forged.node, "--keep-all")
    assert ended.returncode == 0, ended.stderr
    assert re.search(r"The captured model: [\d.]+ us without and [\d.]+ us with", ended.stdout)
    cut = forged.run(
        "export", "-o", path, "--node", forged.node, "--overwrite", "--seconds", "0.000001"
    )
    assert f"Kept, and not measured in the model: {forged.node}: 8 quartets" in cut.stdout
    assert "The whole model was not compared: 8 quartets" in cut.stdout


def test_an_export_that_does_not_measure_says_what_is_not_known(forged, tmp_path):
    path = tmp_path / "x.cast"
    ended = forged.run("export", "-o", path, "--node", forged.node, "--no-measure")
    assert "whether the whole model is faster with this cast" in ended.stdout


def test_an_export_of_a_model_that_is_gone_writes_nothing(forged, tmp_path, sentence):
    hidden = (forged.folder / "model.py").rename(forged.folder / "hidden.py")
    try:
        ended = forged.run("export", "-o", tmp_path / "x.cast", "--node", forged.node, "--json")
    finally:
        hidden.rename(forged.folder / "model.py")
    assert "or export with --no-measure" in sentence(ended, 1)
    assert list(tmp_path.iterdir()) == []
