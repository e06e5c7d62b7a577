"""What clients see of the tools before any is called."""

import json
import re

import pytest

from kernelforge_tools import guide
from kernelforge_tools.registry import tools

CHARACTERS_PER_TOKEN = 4
TOOLS = {tool.name: tool for tool in tools()}


def test_the_tools_the_product_is_named_by_are_all_there():
    assert set(TOOLS) == {
        "capture_model", "list_cards", "get_card", "mcts_select", "compile_and_validate",
        "benchmark", "get_node", "get_tree", "export_cast", "inspect_cast", "measure_model",
        "get_status", "profile_node", "record_usage", "wait_job", "cancel_job",
    }  # fmt: skip


@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_fits_the_limits_of_every_client(name):
    tool = TOOLS[name]
    assert re.fullmatch(r"[a-z_]{1,24}", name)
    assert 100 < len(tool.description) < 1200
    assert tool.output_schema is not None
    assert tool.parameters["additionalProperties"] is False
    hints = tool.annotations.model_dump(exclude={"title"})
    assert all(isinstance(hint, bool) for hint in hints.values()), hints


def test_what_an_agent_reads_before_its_first_call_is_short():
    read = sum(len(json.dumps(t.parameters)) + len(t.description) for t in TOOLS.values())
    assert read < 14_400
    assert len(guide.LOOP.encode()) < 2048


def test_the_list_of_tools_costs_an_agent_less_than_6000_tokens():
    listed = [
        {
            "name": tool.name,
            "description": tool.description,
            "inputSchema": tool.parameters,
            "outputSchema": tool.output_schema,
            "annotations": tool.annotations.model_dump(by_alias=True, exclude_none=True),
        }
        for tool in TOOLS.values()
    ]
    assert len(json.dumps(listed)) / CHARACTERS_PER_TOKEN < 6_000


@pytest.mark.parametrize("name", TOOLS)
def test_what_a_tool_answers_has_one_envelope(name):
    schema = TOOLS[name].output_schema
    assert set(schema["properties"]) == {"status", "summary", "data", "next", "job_id"}
    assert schema["properties"]["data"]["type"] == "object"


def test_the_tools_speak_no_language_of_the_command_line():
    shown = json.dumps([[t.description, t.parameters] for t in TOOLS.values()]) + guide.TEXT
    assert set(re.findall(r" --[a-z]+|`kernelforge [a-z]+", shown)) == set()


def test_the_guide_says_what_one_candidate_replaces():
    assert "replaces ONE operator call" in " ".join(guide.LOOP.split())


def test_the_guide_names_no_tool_that_does_not_exist():
    called = set(re.findall(r"`([a-z_]+)\(", guide.TEXT))
    assert called - set(TOOLS) <= {"ceil_div", "next_pow2"}
