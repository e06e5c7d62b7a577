"""The agent with models over real wire formats: what it asks, what it makes of the answers."""

import json
from dataclasses import replace

import pytest

from kernelforge_agent.budget import Budget, Price
from kernelforge_agent.errors import ServerFailed
from kernelforge_agent.run import run

STATUS = ("get_status", "{}")


async def test_a_model_calls_a_tool_reads_its_answer_and_reports(stage):
    wire = stage.dialect
    result = await stage.run(wire.answer("I look around.", [STATUS]), wire.answer("Nothing to do."))
    assert (result.exit_code, result.document["outcome"]) == (3, "finished")
    assert result.document["report"] == "Nothing to do."
    (answer,) = wire.results(stage.endpoint.asked[1])
    assert json.loads(answer)["status"] == "ok"
    assert [event["text"] for event in stage.heard("text")] == [
        "I look ", "around.", "Nothing", " to do.",
    ]  # fmt: skip
    assert result.document["turns"] == 2
    assert {k: n for k, n in result.document["tokens"].items() if n} == {
        "input": 120, "cache_read": 80, "output": 14,
    }  # fmt: skip


async def test_what_a_model_is_told_first_is_the_same_in_every_request(stage):
    wire = stage.dialect
    await stage.run(wire.answer("", [STATUS]), wire.answer("", [STATUS]), wire.answer("Done."))
    first, *rest = stage.endpoint.asked
    assert len(rest) == 2
    names = [tool.get("name") or tool["function"]["name"] for tool in first["tools"]]
    assert names[:-1] == sorted(names[:-1])
    assert names[-1] == "read_guidance"
    assert not {"record_usage", "wait_job"} & set(names)
    for asked in rest:
        assert asked["tools"] == first["tools"]
        assert asked.get("system") == first.get("system")
        assert asked["messages"][: len(first["messages"])] == first["messages"]


@pytest.mark.parametrize(
    ("status", "kind"), [(429, "rate_limit_error"), (529, "overloaded_error"), (503, "api_error")]
)
async def test_an_overloaded_model_is_asked_again_after_the_time_it_names(stage, status, kind):
    wire = stage.dialect
    busy = wire.error(status, kind, **{"retry-after": "0.01"})
    result = await stage.run(busy, busy, wire.answer("Done."))
    assert result.document["outcome"] == "finished"
    assert [event["after_s"] for event in stage.heard("api_retry")] == [0.01, 0.01]
    assert all(kind in event["why"] for event in stage.heard("api_retry"))
    assert result.document["turns"] == 1


async def test_a_wait_that_is_longer_than_what_is_left_ends_the_run(stage):
    busy = stage.dialect.error(429, "rate_limit_error", **{"retry-after": "900"})
    result = await stage.run(busy, budget=Budget(wall_s=600))
    assert result.exit_code == 5
    (error,) = result.document["errors"]
    assert "takes no requests now: it is rate_limit_error (HTTP 429)" in error


async def test_a_refused_key_ends_the_run_at_once_and_is_written_nowhere(stage):
    refused = stage.dialect.error(401, "authentication_error")
    result = await stage.run(refused)
    assert result.exit_code == 5
    (error,) = result.document["errors"]
    assert f"set {stage.dialect.variable} to a key" in error
    assert "it is authentication_error" in error
    assert len(stage.endpoint.asked) == 1
    (header,) = (headers["authorization"] for headers in stage.endpoint.headers)
    assert header.startswith("Bearer sk-")
    assert header.removeprefix("Bearer ") not in stage.transcript + json.dumps(stage.events)


async def test_a_key_that_a_server_echoes_is_not_written_down(stage):
    wire = stage.dialect
    key = "sk-not-to-be-written-down"
    await stage.run(wire.answer(f"Your key is {key}."))
    assert key not in stage.transcript
    assert key not in json.dumps([e for e in stage.events if e["type"] != "text"])
    assert "Your key is [secret]." in stage.transcript


async def test_a_request_that_cannot_be_served_ends_the_run_with_what_the_maker_said(stage):
    result = await stage.run(stage.dialect.error(400, "invalid_request_error"))
    assert result.exit_code == 5
    assert "did not answer: it is invalid_request_error (HTTP 400)" in result.document["errors"][0]
    assert stage.heard("api_retry") == []


async def test_a_model_that_declines_ends_the_run_with_its_words_and_its_cost(stage):
    price = Price(per_million={"input": 1e4, "cache_read": 0, "output": 0})
    result = await stage.run(stage.dialect.refusal(), price=price)
    assert result.exit_code == 5
    assert "it declined: I would rather not." in result.document["errors"][0]
    assert result.document["dollars"] == 0.6


@pytest.mark.parametrize("ended", [False, True], ids=["broken off", "without its end"])
async def test_a_cut_stream_is_asked_for_again_from_the_last_whole_turn(stage, ended):
    wire = stage.dialect
    whole = wire.answer("I look around.", [STATUS])
    result = await stage.run(whole, whole.cut(4, ended=ended), wire.answer("Done."))
    assert result.document["report"] == "Done."
    _, cut, again = stage.endpoint.asked
    assert cut == again
    assert result.document["turns"] == 2
    assert len(stage.heard("api_retry")) == 1


async def test_a_stream_that_is_cut_twice_ends_the_run(stage):
    cut = stage.dialect.answer("I look around.", [STATUS]).cut(4)
    result = await stage.run(cut, cut)
    assert result.exit_code == 5
    assert "broke off" in result.document["errors"][0]
    assert len(stage.endpoint.asked) == 2


async def test_calls_in_an_answer_that_was_cut_off_at_its_length_are_not_carried_out(stage):
    wire = stage.dialect
    long = wire.answer("I begin", [("cancel_job", '{"job_id": "j')], stop=wire.stops["length"])
    result = await stage.run(long, wire.answer("Done."))
    assert result.document["report"] == "Done."
    assert stage.heard("tool_use") == []
    assert "cut off" in wire.words(stage.endpoint.asked[1])


async def test_a_tool_that_refuses_is_answered_with_its_words(stage):
    wire = stage.dialect
    wrong = ("get_card", '{"card_id": "k999"}')
    result = await stage.run(wire.answer("", [wrong]), wire.answer("Done."))
    assert result.exit_code == 3
    (text,) = wire.results(stage.endpoint.asked[1])
    assert "k999" in text
    assert "Next:" in text


async def test_guidance_is_read_when_it_is_asked_for(stage):
    wire = stage.dialect
    asked = ("read_guidance", '{"bottleneck": "reduction"}')
    wrong = ("read_guidance", '{"bottleneck": "luck"}')
    await stage.run(wire.answer("", [asked]), wire.answer("", [wrong]), wire.answer("Done."))
    (text,) = wire.results(stage.endpoint.asked[1])
    assert "One row per warp" in text
    (text,) = wire.results(stage.endpoint.asked[2])
    assert "Next: ask for one of memory_bound" in text


async def test_the_beginning_of_a_conversation_is_cached_and_no_state_is_left_with_the_maker(
    messages,
):
    wire = messages.dialect
    await messages.run(wire.answer("", [STATUS], thinking="Hm."), wire.answer("Done."))
    first, second = messages.endpoint.asked
    assert first["cache_control"] == second["cache_control"] == {"type": "ephemeral"}
    assert not [name for name in (*first, *second) if "thread" in name or "container" in name]
    assert all(
        "thread" not in headers.get("anthropic-beta", "") for headers in messages.endpoint.headers
    )
    assert second["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "Hm.", "signature": "signed"},
        {"type": "tool_use", "id": "toolu_0", "name": "get_status", "input": {}},
    ]


async def test_an_overload_in_the_middle_of_a_stream_is_waited_out(messages):
    wire = messages.dialect
    whole = wire.answer("I look around.")
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "too many"}}
    pieces = (*whole.pieces[:4], f"event: error\ndata: {json.dumps(error)}\n\n")
    broken = type(whole)(headers={"retry-after": "0.01"}, pieces=pieces)
    result = await messages.run(broken, wire.answer("Done."))
    assert result.document["report"] == "Done."
    assert messages.heard("api_retry")[0]["after_s"] == 0.01


async def test_arguments_that_are_no_json_are_said_to_be_none_and_never_sent_back(completions):
    wire = completions.dialect
    result = await completions.run(
        wire.answer("", [("get_card", '{"card_id": ')]), wire.answer("Done.")
    )
    assert result.exit_code == 3
    assert "are no JSON object" in wire.results(completions.endpoint.asked[1])[0]
    (call,) = completions.endpoint.asked[1]["messages"][-2]["tool_calls"]
    assert call["function"]["arguments"] == "{}"


async def test_several_calls_of_one_answer_are_all_answered_in_order(stage):
    wire = stage.dialect
    calls = [STATUS, ("get_card", '{"card_id": "k999"}')]
    await stage.run(wire.answer("", calls), wire.answer("Done."))
    assert [event["tool"] for event in stage.heard("tool_result")] == ["get_status", "get_card"]
    assert [event["status"] for event in stage.heard("tool_result")] == ["ok", "error"]
    said = json.dumps(stage.endpoint.asked[1]["messages"][-2:])
    assert -1 < said.find("newest_captures") < said.rfind("k999")


async def test_a_server_that_wants_another_token_lets_nobody_in(stage):
    with pytest.raises(ServerFailed, match="set KERNELFORGE_TOKEN") as refused:
        await run(stage.job(), replace(stage.around, token="another"))
    assert refused.value.exit_code == 6
    assert stage.server in str(refused.value)
    assert not stage.folder.exists()
