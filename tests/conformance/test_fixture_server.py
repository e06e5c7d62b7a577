"""The server that `make conformance` lets the official suite loose on."""

import pytest
from conformance_serving import serving, with_fixtures
from conformance_suite import EXPECTED, FIXTURE_FREE, REVISIONS, Run, Scenario, judged
from mcp.client import Client

from kernelforge_tools.registry import tools


@pytest.fixture(scope="module", params=["", "--bare"], ids=["ours", "bare"])
def served(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    options = [request.param] if request.param else []
    with serving(with_fixtures(folder / "project", *options), folder / "log") as url:
        yield url, not options


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_suite_meets_our_own_tools_beside_its_fixtures(served, mode):
    url, ours = served
    async with Client(url, mode=mode) as client:
        named = {tool.name for tool in (await client.list_tools()).tools}
        assert ({tool.name for tool in tools()} <= named) is ours
        assert "json_schema_2020_12_tool" in named
        text = (await client.call_tool("test_simple_text", {})).content[0].text
        assert text == "This is a simple text response for testing."
        (data,) = (await client.read_resource("test://template/7/data")).contents
        assert '"7"' in data.text
        status = await client.call_tool("get_status", {})
        assert status.is_error == (not ours)


def test_every_scenario_that_may_fail_has_a_reason_and_a_revision():
    assert set(EXPECTED) <= set(REVISIONS)
    for revision, reasons in EXPECTED.items():
        assert all(len(reason) > 20 for reason in reasons.values())
        assert not set(reasons) & set(FIXTURE_FREE[revision])


def run_where(failing):
    """A run of everything that may fail and of `ping`, where some checks do not hold."""
    scenarios = {
        name: Scenario(passed=1, failed=frozenset(failing.get(name, ())))
        for name in [*EXPECTED[NEWEST], "ping"]
    }
    return Run(scenarios=scenarios, clean="ping" not in failing)


NEWEST = REVISIONS[-1]
AS_EXPECTED = {name: {"a-check"} for name in EXPECTED[NEWEST]}
ONE = next(iter(AS_EXPECTED))


@pytest.mark.parametrize(
    ("ours", "bare", "words"),
    [
        (AS_EXPECTED, AS_EXPECTED, ()),
        (AS_EXPECTED | {"ping": {"a-check"}}, AS_EXPECTED, ("ping fails",)),
        (AS_EXPECTED | {ONE: ()}, AS_EXPECTED, (f"{ONE} is expected to fail and passes",)),
        (
            AS_EXPECTED,
            AS_EXPECTED | {ONE: {"another-check"}},
            (f"{ONE} is expected to fail, and a bare MCPServer does otherwise",),
        ),
    ],
)
def test_only_what_fails_as_it_may_is_let_pass(ours, bare, words):
    assert judged(NEWEST, run_where(ours), run_where(bare)).wrong == words
