"""What a run may spend, what it reports, and how it goes on."""

from dataclasses import replace

from kernelforge_agent.budget import Budget, Price
from kernelforge_agent.run import run
from kernelforge_agent.sessions import Sessions

STATUS = ("get_status", "{}")
PRICE = Price(per_million={"input": 1_000, "cache_read": 0, "output": 0})
TURN_DOLLARS = 0.06


async def test_every_turn_is_reported_to_the_server_which_knows_the_price(messages):
    wire = messages.dialect
    result = await messages.run(wire.answer("", [STATUS]), wire.answer("Done."))
    before = await messages.usage()
    again = await messages.run()  # it has ended, so nothing is asked and nothing reported
    assert again.document["report"] == "Done."
    assert await messages.usage() == before
    assert before["tokens"]["output"] >= 14
    # 60 new, 40 cached and 7 written tokens at 5, 0.5 and 25 dollars a million, twice
    assert result.document["dollars"] == 0.00099


async def test_a_turn_is_reported_for_the_card_that_it_read(stage, user_projects):
    wire = stage.dialect
    model = str(user_projects / "small_mlp" / "model.py")
    capture = ("capture_model", f'{{"model": "{model}"}}')
    card = ("get_card", '{"card_id": "k1"}')
    await stage.run(wire.answer("", [capture]), wire.answer("", [card]), wire.answer("Done."))
    reports = [event["report"] for event in stage.heard("usage")]
    assert [report.get("about") for report in reports] == [None, "k1", None]
    assert all(event["error"] == "" for event in stage.heard("cost"))


async def test_a_report_that_was_sent_and_not_heard_of_is_counted_once(messages):
    wire = messages.dialect
    await messages.run(wire.answer("", [STATUS]), wire.answer("Done."))
    before = await messages.usage()
    lines = messages.transcript.splitlines()
    cost = max(n for n, line in enumerate(lines) if '"type":"cost"' in line)
    kept = "\n".join(lines[:cost])
    (messages.folder / "1.jsonl").write_text(f'{kept}\n{{"type":"cost","torn')
    result = await messages.run()
    assert result.document["report"] == "Done."
    assert await messages.usage() == before
    assert result.document["dollars"] == 0.00099
    assert len(messages.endpoint.asked) == 2


async def test_no_request_is_made_that_may_pass_the_dollars(stage):
    wire = stage.dialect
    budget = Budget(dollars=2.5 * TURN_DOLLARS)
    result = await stage.run(
        wire.answer("", [STATUS]), wire.answer("", [STATUS]), budget=budget, price=PRICE
    )
    assert result.exit_code == 4
    assert result.document["dollars"] == 2 * TURN_DOLLARS
    (event,) = stage.heard("budget")
    assert event["limit"] == "dollars: 0.12 spent and 0.06 for the next request of 0.15"


async def test_dollars_bound_nothing_where_nobody_knows_the_price(completions):
    wire = completions.dialect
    result = await completions.run(wire.answer("", [STATUS]), budget=Budget(dollars=1))
    assert result.exit_code == 2
    assert "nobody knows what some-model costs" in result.document["errors"][0]
    assert result.document["dollars"] == "unknown"


async def test_an_endpoint_that_counts_no_tokens_costs_an_unknown_sum_and_not_nothing(completions):
    wire = completions.dialect
    result = await completions.run(wire.answer("Done.", usage=False), price=PRICE)
    assert result.exit_code == 3
    assert result.document["dollars"] == "unknown"
    assert completions.heard("usage") == []


async def test_a_model_is_told_once_when_most_of_the_budget_is_used(stage):
    wire = stage.dialect
    looks = [wire.answer("", [STATUS]) for _ in range(5)]
    result = await stage.run(*looks, budget=Budget(turns=5))
    assert (result.exit_code, result.document["turns"]) == (4, 5)
    told = ["Most of the budget is used (turns: 4 of 5)" in stage.dialect.words(asked)
            for asked in stage.endpoint.asked]  # fmt: skip
    assert told == [False, False, False, False, True]


async def test_a_run_that_reached_its_budget_goes_on_with_a_larger_one(stage):
    wire = stage.dialect
    looks = [wire.answer("", [STATUS]) for _ in range(2)]
    first = await stage.run(*looks, budget=Budget(turns=2, wall_s=600))
    assert first.exit_code == 4
    job = Sessions(stage.folder.parent).job(stage.folder.name, Budget(turns=3))
    assert job.budget == Budget(turns=3, wall_s=600)
    stage.endpoint.answers.append(wire.answer("Done."))
    second = await run(job, stage.around)
    assert (second.exit_code, second.document["turns"]) == (3, 3)
    assert second.document["wall_s"] > first.document["wall_s"]
    before, after = stage.endpoint.asked[1:]
    assert after["messages"][: len(before["messages"])] == before["messages"]


async def test_a_model_that_declined_is_asked_again_when_the_run_goes_on(stage):
    wire = stage.dialect
    assert (await stage.run(wire.refusal())).exit_code == 5
    assert (await stage.run(wire.answer("Done."))).document["report"] == "Done."
    first, second = stage.endpoint.asked
    assert first == second


async def test_the_time_of_devices_is_what_the_server_counts(stage, user_projects):
    wire = stage.dialect
    entry = str(user_projects / "small_mlp" / "model.py")
    task = replace(stage.job().task, model=entry)
    result = await stage.run(wire.answer("Done."), task=task, budget=Budget(gpu_s=60))
    assert result.exit_code == 3
    assert result.document["device_s"] == 0.0
