"""What was spent on every node and every attempt, in a few queries for all of them."""

from collections.abc import Iterable
from typing import Literal

from kernelforge_engine.store.database import Database, Row
from kernelforge_engine.store.ids import tag
from kernelforge_engine.usage import Tally

Noun = Literal["node", "attempt"]


async def tallies(database: Database, noun: Noun) -> dict[str, Tally]:
    """The sums of the reports and of the device work that name a node, or an attempt, by id."""
    column = f"{noun}_id"
    sums = await database.rows(
        f"""SELECT {column} AS id, count(*) AS reports, total(calls) AS calls,
                   total(dollars) AS dollars, sum(wall_seconds) AS wall
            FROM usage WHERE {column} IS NOT NULL GROUP BY {column}"""
    )
    tokens = await database.rows(
        f"""SELECT u.{column} AS id, u.model, u.dollars IS NULL AS unpriced, t.kind,
                   sum(t.tokens) AS tokens
            FROM usage u JOIN usage_tokens t ON t.usage_id = u.id WHERE u.{column} IS NOT NULL
            GROUP BY u.{column}, u.model, unpriced, t.kind"""
    )
    work = await database.rows(
        f"""SELECT {column} AS id, device, sum(seconds) AS seconds FROM device_work
            WHERE {column} IS NOT NULL GROUP BY {column}, device"""
    )
    reported, kinds, devices = _by_id(sums), _by_id(tokens), _by_id(work)
    return {
        tag(noun[0], number): _tally(
            reported.get(number, []), kinds.get(number, []), devices.get(number, [])
        )
        for number in sorted(reported | devices)
    }


def token_sums(rows: Iterable[Row]) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    """Tokens by kind, and those that come without dollars by model and kind, of rows that have each
    model and kind once with dollars and once without."""
    tokens: dict[str, int] = {}
    unpriced: dict[str, dict[str, int]] = {}
    for found in rows:
        tokens[found["kind"]] = tokens.get(found["kind"], 0) + found["tokens"]
        if found["unpriced"]:
            unpriced.setdefault(found["model"], {})[found["kind"]] = found["tokens"]
    return tokens, unpriced


def _by_id(rows: Iterable[Row]) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = {}
    for one in rows:
        found.setdefault(one["id"], []).append(one)
    return found


def _tally(sums: list[Row], kinds: list[Row], work: list[Row]) -> Tally:
    tokens, unpriced = token_sums(kinds)
    return Tally(
        reports=sum(s["reports"] for s in sums),
        calls=sum(int(s["calls"]) for s in sums),
        tokens=tokens,
        dollars=sum(s["dollars"] for s in sums),
        unpriced=unpriced,
        wall_seconds=next((s["wall"] for s in sums), None),
        device_seconds={w["device"]: w["seconds"] for w in work},
    )
