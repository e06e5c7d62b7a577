"""Resources, prompts and completions, through the official client and a real server process."""

import json

import pytest
from mcp import MCPError, StdioServerParameters
from mcp.client import Client
from mcp.types import PromptReference, ResourceTemplateReference

from kernelforge_tools import guide

RELU = """/* kernelforge
[[launch]]
kernel = "rectify"
args = ["in0", "out0", "i64:in0.numel"]
*/
extern "C" void rectify(const float* x, float* y, long long n) {
  for (long long i = 0; i < n; ++i) y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
"""


@pytest.fixture
def server(tmp_path, python_command):
    return StdioServerParameters(
        command=python_command[0],
        args=[*python_command[1:], "mcp", "--project", str(tmp_path / "project")],
        cwd=str(tmp_path),
    )


async def text_of(client, uri):
    (content,) = (await client.read_resource(uri)).contents
    return content.text


async def answer(client, tool, **arguments):
    return (await client.call_tool(tool, arguments)).structured_content


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_what_the_tools_say_can_be_read_by_its_address(server, user_projects, mode):
    async with Client(server, mode=mode) as client:
        listed = {str(r.uri) for r in (await client.list_resources()).resources}
        assert listed == {"kernelforge://guide", "kernelforge://environment"}
        templates = (await client.list_resource_templates()).resource_templates
        assert all(t.description for t in templates)
        assert await text_of(client, "kernelforge://guide") == guide.TEXT
        model = str(user_projects / "small_mlp" / "model.py")
        await answer(client, "capture_model", model=model, wait_s=120)
        cards = (await answer(client, "list_cards"))["data"]["cards"]
        relu = next(card for card in cards if card["operator"] == "aten::relu")
        read = json.loads(await text_of(client, f"kernelforge://cards/{relu['id']}"))
        variant = read["data"]["header"]["variant_id"]
        asked = {"variant_id": variant, "source": RELU, "wait_s": 120}
        node = (await answer(client, "compile_and_validate", **asked))["data"]["node_id"]
        assert await text_of(client, f"kernelforge://nodes/{node}/source") == RELU
        verdict = json.loads(await text_of(client, f"kernelforge://nodes/{node}/verdict"))
        assert verdict["data"]["verdict"]["status"] == "valid"
        tree = json.loads(await text_of(client, f"kernelforge://variants/{variant}/tree"))
        assert node in [row["id"] for row in tree["data"]["nodes"]]
        assert await text_of(client, "kernelforge://jobs/j1/log") == "j1 capture_model: done"
        await _ids_are_completed(client, relu["id"], node)


async def _ids_are_completed(client, card, node):
    place = ResourceTemplateReference(type="ref/resource", uri="kernelforge://cards/{card_id}")
    found = await client.complete(place, {"name": "card_id", "value": card[:1]})
    assert card in found.completion.values
    prompt = PromptReference(type="ref/prompt", name="explain_result")
    found = await client.complete(prompt, {"name": "node_id", "value": node})
    assert found.completion.values == [node]


async def test_an_address_that_leads_nowhere_says_what_there_is(server):
    async with Client(server) as client:
        with pytest.raises(MCPError, match="n99"):
            await client.read_resource("kernelforge://nodes/n99/source")


async def test_prompts_carry_the_guide_and_what_to_do_it_on(server):
    async with Client(server) as client:
        prompts = {p.name: p for p in (await client.list_prompts()).prompts}
        assert set(prompts) == {
            "optimize_model", "optimize_card", "explain_result", "triage_failure",
        }  # fmt: skip
        assert all(p.description for p in prompts.values())
        for name, prompt in prompts.items():
            (argument,) = prompt.arguments
            got = await client.get_prompt(name, {argument.name: "x7"})
            text = got.messages[0].content.text
            assert "x7" in text
            assert "{" not in text.replace("{card_id}", "")
        whole = await client.get_prompt("optimize_model", {"model": "net.py"})
        assert guide.LOOP.strip() in whole.messages[0].content.text
