"""Two authors at work at once in processes that are killed at every kind of step: nothing is lost,
nothing is filed twice, and the trees are those that their journal gives."""

import json
import re
import signal

import pytest
from killable import Run
from parts import hopeless, searching
from played import Played

pytestmark = pytest.mark.calm


@pytest.fixture
def run(tmp_path, python_command, processes):
    played = Played({1: searching, 2: hopeless})
    made = Run(tmp_path, python_command, processes, played)
    yield made
    made.close()
    played.close()


RUNNING = "SELECT id FROM jobs WHERE kind = ? AND state = 'running'"
BEGUN = "SELECT id FROM jobs WHERE kind = ? AND id > ?"
ANSWERED = f"{BEGUN} AND answered"
LEASED = "SELECT id FROM leases WHERE id > ?"


async def before_a_proposal(run):
    await run.kill(also_its_server=False)


async def while_a_candidate_is_built(run):
    run.hold_compiler()
    run.played.let(1, "write")
    run.until(RUNNING, "compile_and_validate")
    await run.compiling()
    await run.kill(also_its_server=True)


async def between_a_verdict_and_a_benchmark(run):
    await run.kill(also_its_server=False)


async def while_a_node_is_timed(run):
    with run.device():
        run.played.let(1, "time")
        run.until(RUNNING, "benchmark")
        await run.kill(also_its_server=True)


async def after_an_unheard_lease(run):
    (last,) = run.rows("SELECT max(id) FROM leases")
    run.signal(signal.SIGSTOP)
    run.played.let(1, "widen")
    await run.stopped_while_asking(LEASED, *last)
    await run.kill(also_its_server=False)


def after_an_unheard_answer(label, kind):
    async def killed(run):
        (last,) = run.rows("SELECT max(id) FROM jobs")
        run.signal(signal.SIGSTOP)
        run.played.let(1, label)
        await run.stopped_while_asking(BEGUN, kind, *last)
        run.until(ANSWERED, kind, *last)
        await run.kill(also_its_server=False)

    return killed


# Where the first author is held, where the second is, and how the run ends there.
KILLS = (
    ("write", "first 0", before_a_proposal),
    ("write", "last 0", while_a_candidate_is_built),
    ("time", "late 0", between_a_verdict_and_a_benchmark),
    ("time", "first 1", while_a_node_is_timed),
    ("widen", "last 1", after_an_unheard_lease),
    (
        "write another",
        "lease 2",
        after_an_unheard_answer("write another", "compile_and_validate"),
    ),
    ("export", "plan", after_an_unheard_answer("export", "export_cast")),
)
OPTIONS = ("--agents", "2", "--arm", "opt5", "--price", "input=1,output=1", "--output-format",
           "json", "-o", "model.cast")  # fmt: skip


@pytest.mark.timeout(600)
async def test_two_agents_that_are_killed_at_every_step_lose_nothing_and_file_nothing_twice(run):
    before = {}
    arguments = ("run", "model.py", "--model", "openai:played", "--base-url", run.played.url)
    for first, second, kill in KILLS:
        run.played.hold(1, first)
        run.played.hold(2, second)
        run.start(*arguments, *(OPTIONS if arguments[0] == "run" else ()))
        run.played.reached(1, first)
        run.played.reached(2, second)
        await kill(run)
        run.played.forget()
        before = _only_longer(run, before)
        arguments = ("resume", "--output-format", "json")
    run.start(*arguments)
    code, document, words = run.ended()
    _only_longer(run, before)
    assert (code, document["outcome"]) == (0, "finished"), words
    # Of a capture on a busy machine the plan may say that the second target was never worth it.
    stopped = r"0 more: not (near eager: 0x at best of 6 tried|worth it: .*)"
    assert re.fullmatch(rf"roll is faster\.\n\n{stopped}", document["report"])
    assert (document["candidates"], document["valid"]) == (11, 3)
    assert document["casts"] == [str(run.folder / "model.cast")]
    _everything_is_filed_once(run)
    _every_turn_is_counted_once(run, document)
    _every_call_is_answered_once(run)
    _a_fork_ends_when_what_was_found_is_enough(run)
    _a_run_ends_when_so_many_candidates_were_judged(run)
    for variant in ("v1", "v2"):
        _tree_is_that_of_the_journal(run, variant)


def _only_longer(run, before):
    """The transcripts, of which nothing that was there has changed."""
    after = {author: run.records(author) for author in (1, 2)}
    for author, records in before.items():
        assert after[author][: len(records)] == records
    return after


def _everything_is_filed_once(run):
    """What the two parts file when nobody is killed: two roots, a first version, another, and a
    revision; two proposals that were mended, and six that were not; six leases, all ended."""
    parents = [parent for (parent,) in run.rows("SELECT parent_id FROM nodes ORDER BY id")]
    (root,) = run.rows("SELECT id FROM nodes WHERE variant_id = 1 AND parent_id IS NULL")
    assert sorted(parents, key=str) == sorted([None, None, *root, *root, parents[-1]], key=str)
    assert parents[-1] not in (None, *root)
    assert run.rows("SELECT variant_id, count(*) FROM attempts GROUP BY 1") == [(1, 2), (2, 6)]
    notes = run.rows("SELECT note FROM attempts UNION ALL SELECT note FROM nodes")
    assert len(set(notes)) == len(notes) - 1  # both roots are called eager
    assert run.rows("SELECT count(*), count(closed_at) FROM leases") == [(6, 6)]
    assert run.rows("SELECT count(*) FROM captures") == [(1,)]
    assert run.rows("SELECT count(*) FROM jobs WHERE state <> 'done'") == [(3,)]  # late proposals


def _every_turn_is_counted_once(run, document):
    messages = [r for author in (1, 2) for r in run.records(author) if r["type"] == "message"]
    assert document["turns"] == len(messages)
    tokens = {"input": 100 * len(messages), "output": 7 * len(messages)}
    assert {kind: count for kind, count in document["tokens"].items() if count} == tokens
    assert run.rows("SELECT count(*), sum(calls), count(DISTINCT key) FROM usage") == [
        (len(messages),) * 3
    ]
    summed = "SELECT kind, sum(tokens) FROM usage_tokens WHERE tokens > 0 GROUP BY 1"
    assert dict(run.rows(summed)) == tokens
    assert run.rows("SELECT DISTINCT arm FROM usage") == [("opt5",)]
    for noun, number in (("attempt", 8), ("node", 3)):  # each was made by a turn of its own
        query = f"SELECT count(DISTINCT {noun}_id) FROM usage"
        assert run.rows(query) == [(number,)]
    # A card: read once, leased three times; and refused three times, for the second author.
    assert run.rows("SELECT count(*) FROM usage WHERE card_id IS NOT NULL") == [(11,)]


def _every_call_is_answered_once(run):
    for author in (1, 2):
        records = run.records(author)
        turns = [r for r in records if r["type"] == "message"]
        called = [(n, c["id"]) for n, r in enumerate(turns, 1) for c in r["calls"]]
        assert [(r["turn"], r["id"]) for r in records if r["type"] == "tool_result"] == called
        assert [r["type"] for r in records].count("resume") == len(KILLS)


def _a_fork_ends_when_what_was_found_is_enough(run):
    asked = len(run.rows("SELECT key FROM usage"))
    run.start("fork", "--stop-at-speedup", "1.0001", "--output-format", "json")
    code, document, words = run.ended()
    assert (code, document["outcome"], document["turns"]) == (0, "enough", 0), words
    assert "x eager (" in document["report"]
    assert len(run.rows("SELECT key FROM usage")) == asked


def _a_run_ends_when_so_many_candidates_were_judged(run):
    given = {"variant_id": "v1", "source": "// no header"}
    call = {"tool": "compile_and_validate", "arguments": given}
    script = [{"calls": [call]}, {"calls": [call, call]}, {"say": "Never said."}]
    (run.folder / "script.json").write_text(json.dumps(script))
    run.start("run", "model.py", "--model", "scripted:script.json", "--max-candidates", "2",
              "--output-format", "json")  # fmt: skip
    code, document, words = run.ended()
    assert (code, document["outcome"], document["candidates"]) == (4, "budget", 3), words
    assert document["report"] == "candidates: 3 of 2"


def _tree_is_that_of_the_journal(run, variant):
    said = run.command("tree", "--variant", variant, "--replay", "--json")
    found = json.loads(said)
    assert (found["choices"], found["differing"]) == (3, [])
    assert json.dumps(found["filed"]).encode() == json.dumps(found["replayed"]).encode()
