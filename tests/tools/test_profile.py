"""A node is profiled through the official client and a real server process."""

import json

import pytest
from mcp import StdioServerParameters
from mcp.client import Client

RELU = """/* kernelforge
[[launch]]
kernel = "rectify"
args = ["in0", "out0", "i64:in0.numel"]
*/
extern "C" void rectify(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
"""
BYTES = 2 * 4 * 16 * 256


@pytest.fixture
def server(tmp_path, python_command):
    return StdioServerParameters(
        command=python_command[0],
        args=[*python_command[1:], "mcp", "--project", str(tmp_path / "project")],
        cwd=str(tmp_path),
    )


async def answer(client, tool, **arguments):
    given = await client.call_tool(tool, {"wait_s": 240, **arguments})
    assert not given.is_error, given.content[0].text
    assert len(given.content[0].text) < 6_000
    return given.structured_content


async def relu_node(client, model):
    await answer(client, "capture_model", model=str(model))
    listed = (await client.call_tool("list_cards", {})).structured_content["data"]["cards"]
    variant = next(c for c in listed if c["operator"] == "aten::relu")["targets"][0]
    judged = await answer(client, "compile_and_validate", variant_id=variant, source=RELU)
    return judged["data"]["node_id"]


async def test_an_agent_learns_how_far_a_cpu_node_is_from_its_floor(server, user_projects):
    async with Client(server) as client:
        node = await relu_node(client, user_projects / "small_mlp" / "model.py")
        await eager_itself_has_none(client, node)
        early = await answer(client, "profile_node", node_id=node)
        assert early["next"][0] == f'benchmark(node_id="{node}")'
        assert f'benchmark(node_id="{node}")' in early["data"]["not_measured"]["call_us"]
        assert early["data"]["roofline"]["bytes"] == BYTES
        assert "call_us" not in early["data"]["roofline"]
        timed = (await answer(client, "benchmark", node_id=node))["data"]["timing"]
        later = await answer(client, "profile_node", node_id=node)
        assert later["data"]["measured_at"] == early["data"]["measured_at"]
        place = later["data"]["roofline"]
        assert place["call_us"] == timed["candidate_us"]
        assert place["times_floor"] == pytest.approx(place["call_us"] / place["floor_us"], rel=1e-2)
        assert place["gb_per_s"] == pytest.approx(BYTES / place["call_us"] / 1e3, rel=1e-2)
        assert set(later["data"]["not_measured"]) == {"compute_floor_us", "counters"}
        assert later["data"]["launches"] == [{"kernel": "rectify"}]
        assert later["data"]["code"]["vector_bits"] >= 128
        await profile_is_found_again(client, node, later["data"])


async def profile_is_found_again(client, node, data):
    shown = await client.call_tool("get_node", {"node_id": node, "sections": ["profile"]})
    assert shown.structured_content["data"]["profile"] == data
    (content,) = (await client.read_resource(f"kernelforge://nodes/{node}/profile")).contents
    assert json.loads(content.text)["data"]["profile"] == data
    anew = await answer(client, "profile_node", node_id=node, refresh=True)
    assert anew["data"]["measured_at"] > data["measured_at"]
    assert anew["data"]["binary_sha256"] == data["binary_sha256"]


async def eager_itself_has_none(client, node):
    bare = await client.call_tool("get_node", {"node_id": node, "sections": ["lineage", "profile"]})
    assert "profile" not in bare.structured_content["data"]
    root = bare.structured_content["data"]["lineage"][0]["id"]
    refused = await client.call_tool("profile_node", {"node_id": root})
    assert refused.is_error
    assert "it is eager itself. Next: " in refused.content[0].text
