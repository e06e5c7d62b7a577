"""What was spent, on disk."""

from dataclasses import dataclass

from kernelforge_engine.errors import BadOption, KeyReused
from kernelforge_engine.store.casts import WINNERS
from kernelforge_engine.store.database import Database
from kernelforge_engine.store.ids import row, tag, unknown
from kernelforge_engine.store.usage_parts import Noun, tallies, token_sums
from kernelforge_engine.usage import Report, Tally

LETTER = "u"
ABOUT = {"k": ("cards", "card_id"), "n": ("nodes", "node_id"), "a": ("attempts", "attempt_id")}
BUILT_IN = "library"  # the author whose kernels cost no tokens

WINS = f"count(DISTINCT n.variant_id) FILTER (WHERE n.id IN ({WINNERS}))"
OF_CARD = "SELECT variant_id FROM sightings WHERE card_id = :id"
OF_ARM = "SELECT {noun} FROM usage WHERE arm = :arm"


@dataclass(frozen=True, kw_only=True)
class _Scope:
    """Conditions that choose reports (u), nodes (n) and device work (w)."""

    reports: str
    nodes: str
    work: str


PROJECT = _Scope(reports="1", nodes="1", work="1")
ARM = _Scope(
    reports="u.arm = :arm",
    nodes=f"n.id IN ({OF_ARM.format(noun='node_id')})",
    work=f"(w.node_id IN ({OF_ARM.format(noun='node_id')})"
    f" OR w.attempt_id IN ({OF_ARM.format(noun='attempt_id')}))",
)
SCOPES = {
    "k": _Scope(
        reports=f"""(u.card_id = :id
            OR u.node_id IN (SELECT id FROM nodes WHERE variant_id IN ({OF_CARD}))
            OR u.attempt_id IN (SELECT id FROM attempts WHERE variant_id IN ({OF_CARD})))""",
        nodes=f"n.variant_id IN ({OF_CARD})",
        work=f"w.variant_id IN ({OF_CARD})",
    ),
    "n": _Scope(reports="u.node_id = :id", nodes="n.id = :id", work="w.node_id = :id"),
    "a": _Scope(reports="u.attempt_id = :id", nodes="0", work="w.attempt_id = :id"),
}


class UsageBook:
    """The reports and the device work of a project."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, report: Report, at: float) -> tuple[str, bool]:
        """File a report; its id, and whether it is new: the same one is counted once.

        Raises:
            UnknownId: it is about something that is not there.
            KeyReused: its key stands for another report.
        """
        async with self._database.transaction():
            found = await self._database.row(
                "SELECT id, digest FROM usage WHERE key = ?", (report.key,)
            )
            if found is not None:
                if found["digest"] != report.digest:
                    raise KeyReused(key=report.key, usage=tag(LETTER, found["id"]))
                return tag(LETTER, found["id"]), False
            return tag(LETTER, await self._insert(report, at)), True

    async def _insert(self, report: Report, at: float) -> int:
        bound: dict[str, int | None] = {column: None for _, column in ABOUT.values()}
        if report.about is not None:
            letter, number = await self._known(report.about)
            bound[ABOUT[letter][1]] = number
        usage = await self._database.insert(
            f"""INSERT INTO usage (key, digest, reporter, model, arm, calls, dollars,
                                   wall_seconds, created_at, {", ".join(bound)})
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            (
                report.key,
                report.digest,
                report.reporter,
                report.model,
                report.arm,
                report.calls,
                report.dollars,
                report.wall_seconds,
                at,
                *bound.values(),
            ),
        )
        for kind, tokens in report.tokens.items():
            await self._database.execute(
                "INSERT INTO usage_tokens (usage_id, kind, tokens) VALUES (?, ?, ?)",
                (usage, kind, tokens),
            )
        return usage

    async def _known(self, about: str) -> tuple[str, int]:
        """The letter and the row of something that reports may be about."""
        letter = about[:1]
        if letter not in ABOUT:
            accepted = "a node (n1), an attempt (a1) or a card (k1), or leave it out"
            why = "nothing is spent on that"
            raise BadOption(field="about", value=about[:20], why=why, accepted=accepted)
        number = row(letter, about)
        if not await self._database.row(f"SELECT 1 FROM {ABOUT[letter][0]} WHERE id = ?", [number]):
            raise unknown(letter, about)
        return letter, number

    async def arms(self) -> tuple[str, ...]:
        """The arms that reports name, the latest first."""
        rows = await self._database.rows(
            "SELECT arm FROM usage WHERE arm IS NOT NULL GROUP BY arm ORDER BY max(id) DESC"
        )
        return tuple(r["arm"] for r in rows)

    async def tally(self, *, about: str | None = None, arm: str | None = None) -> Tally:
        """The sums of an arm, of a card, node or attempt, or of the whole project.

        Raises:
            UnknownId: there is no such thing.
        """
        scope, number = PROJECT if arm is None else ARM, None
        if about is not None:
            letter, number = await self._known(about)
            scope = SCOPES[letter]
        return await self._sums(scope, {"id": number, "arm": arm})

    async def parts(self, noun: Noun) -> dict[str, Tally]:
        """The sums of each node, or of each attempt, by id."""
        return await tallies(self._database, noun)

    async def _sums(self, scope: _Scope, given: dict[str, object]) -> Tally:
        (sums,) = await self._database.rows(
            f"""SELECT count(*) AS reports, total(calls) AS calls, total(dollars) AS dollars,
                       sum(wall_seconds) AS wall FROM usage u WHERE {scope.reports}""",
            given,
        )
        counted = await self._database.rows(
            f"""SELECT u.model, u.dollars IS NULL AS unpriced, t.kind, sum(t.tokens) AS tokens
                FROM usage u JOIN usage_tokens t ON t.usage_id = u.id WHERE {scope.reports}
                GROUP BY u.model, unpriced, t.kind""",
            given,
        )
        tokens, unpriced = token_sums(counted)
        return Tally(
            reports=sums["reports"],
            calls=int(sums["calls"]),
            tokens=tokens,
            dollars=sums["dollars"],
            unpriced=unpriced,
            wall_seconds=sums["wall"],
            device_seconds=await self._device_seconds(scope, given),
            accepted=await self._accepted("count(*)", scope, given),
            wins=await self._accepted(WINS, scope, given),
        )

    async def _device_seconds(self, scope: _Scope, given: dict[str, object]) -> dict[str, float]:
        rows = await self._database.rows(
            f"""SELECT w.device, sum(w.seconds) AS seconds FROM device_work w
                WHERE {scope.work} GROUP BY w.device""",
            given,
        )
        return {r["device"]: r["seconds"] for r in rows}

    async def _accepted(self, counted: str, scope: _Scope, given: dict[str, object]) -> int:
        (found,) = await self._database.rows(
            f"""SELECT {counted} FROM nodes n WHERE {scope.nodes} AND n.author != :library
                AND n.valid = 1 AND n.faster = 1""",
            {**given, "library": BUILT_IN},
        )
        return int(found[0])


async def worked(
    database: Database,
    task: str,
    seconds: float | None,
    *,
    node: int | None = None,
    attempt: int | None = None,
) -> None:
    """File for how long a candidate held its device, inside a transaction; None files nothing."""
    if seconds is None:
        return
    table, number = ("nodes", node) if attempt is None else ("attempts", attempt)
    await database.execute(
        f"""INSERT INTO device_work (device, task, seconds, variant_id, node_id, attempt_id)
            SELECT s.backend, ?, ?, c.variant_id, ?, ?
            FROM {table} c JOIN sources s ON s.digest = c.source_digest WHERE c.id = ?""",
        (task, seconds, node, attempt, number),
    )
