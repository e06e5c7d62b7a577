"""`kernelforge profile`, read by a person and by a program."""

import json


def test_a_node_is_profiled_for_people_and_for_programs(forged):
    shown = forged.run("profile", forged.node)
    assert shown.returncode == 0, shown
    assert f"{forged.node} on " in shown.stdout
    assert "not measured: counters: " in shown.stdout
    ended = forged.run("profile", forged.node, "--json")
    view = json.loads(ended.stdout)
    assert view["node_id"] == forged.node
    assert [launch["kernel"] for launch in view["launches"]] == ["k"]
    assert view["roofline"]["bytes"] == 2 * 4 * 64
    assert view["summary"] in shown.stdout
    assert None not in view.values()
    again = json.loads(forged.run("profile", forged.node, "--refresh", "--json").stdout)
    assert again["measured_at"] > view["measured_at"]
    assert again["binary_sha256"] == view["binary_sha256"]


def test_an_unknown_node_is_refused(forged, sentence):
    assert "There is no node 'n99'" in sentence(forged.run("profile", "n99", "--json"), 2)
