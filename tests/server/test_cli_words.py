"""What the command line tells people about a candidate, a wrong command line and an early end."""

import json
import signal
import subprocess
import sys
import time
from functools import partial

import pytest

BROKEN = """/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel", "i32:1"]
*/
extern "C" void k(const float* x, float* y, long n) { y[0] = nope; }
"""


def _evaluated(forged, name, text, *more):
    (forged.folder / name).write_text(text)
    return forged.run("evaluate", "--variant", forged.variant, name, *more)


def test_a_candidate_that_does_not_compile_is_shown_why(forged):
    said = _evaluated(forged, "broken.cpp", BROKEN).stdout
    assert "'nope' was not declared" in said
    assert "kf_" not in said
    (document,) = map(
        json.loads, _evaluated(forged, "broken.cpp", BROKEN, "--json").stdout.splitlines()
    )
    assert set(document) == {"file", "status", "reason", "log", "node_id", "timing"}
    assert "nope" in document["log"]
    assert "'nope' was not declared" in forged.run("tree", "--variant", forged.variant).stdout


def test_a_candidate_with_wrong_values_is_shown_the_evidence(forged):
    wrong = (forged.folder / "roll.cpp").read_text().replace("= x[i]", "= 2 * x[i]")
    said = _evaluated(forged, "wrong.cpp", wrong).stdout
    assert "evidence: " in said
    assert "exact: nothing is rounded here" in said


def test_a_source_that_is_a_node_already_is_named(forged):
    text = (forged.folder / "roll.cpp").read_text() + "// known\n"
    first = json.loads(_evaluated(forged, "known.cpp", text, "--json").stdout)
    said = _evaluated(forged, "known.cpp", text).stdout
    assert f"This very source was node {first['node_id']} already" in said


def test_a_measurement_is_summed_up_in_a_word(forged):
    said = json.loads(forged.run("measure", "model.py", "--cast", "good.cast", "--json").stdout)
    (row,) = said["rows"]
    assert row["outcome"] in {"faster", "slower", "no clear difference"}


def test_the_name_of_a_cast_must_say_so(forged, sentence):
    assert "ends in .cast" in sentence(forged.run("export", "-o", "m.zip"), 2)


def test_a_project_without_a_capture_says_so(kernelforge, sentence):
    assert "no capture yet" in sentence(kernelforge("cards"), 2)


@pytest.mark.parametrize("line", ["cards --bogus --json", "evaluate a.cpp --json", "--json"])
def test_a_wrong_command_line_under_json_is_a_document(kernelforge, sentence, line):
    sentence(kernelforge(*line.split()), 2)


@pytest.mark.parametrize("line", ["--help", "demo --help", "cast verify --help"])
def test_help_names_no_type_for_a_flag(kernelforge, line):
    said = kernelforge(*line.split()).stdout
    assert "--help" in said
    assert "<bool>" not in said


def test_the_demo_names_its_own_folder(kernelforge):
    assert "./.demo" in kernelforge("demo", "--help").stdout


def test_an_interrupted_command_says_so_in_one_line(forged, python_command):
    (forged.folder / "slow.py").write_text((forged.folder / "model.py").read_text() + SLOW)
    with subprocess.Popen(
        [*python_command, "capture", "slow.py"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=forged.folder,
        # A shell that runs this suite in the background has its children ignore the signal.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    ) as running:
        marker = forged.folder / "started"
        while not marker.exists():
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        printed, said = running.communicate(timeout=60)
    assert (running.returncode, printed) == (130, "")
    assert said == "kernelforge: stopped; what was filed is kept\n"


SLOW = "\n\nimport pathlib, time\n\npathlib.Path('started').touch()\ntime.sleep(60)\n"


@pytest.mark.parametrize(("load", "is_busy"), [(0.5, False), (400.0, True)])
def test_who_captures_on_a_busy_machine_is_told(forged, load, is_busy):
    script = f"import os; os.getloadavg = lambda: ({load},) * 3\n"
    script += "from kernelforge_server.cli.app import app; app()"
    ended = subprocess.run(
        [sys.executable, "-c", script, "capture", "model.py", "--project", "busy"],
        cwd=forged.folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ("\nWarning: The machine is busy (load 400.0 on " in ended.stdout) == is_busy


def test_a_command_starts_without_the_sdk_of_the_server_and_without_torch():
    script = "import kernelforge_server.cli.app, sys; print(*sys.modules)"
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert not {"mcp", "torch", "anthropic"} & set(ended.stdout.split())
