"""Exported casts, and what whole models were measured to do with a cast, on disk."""

import json
from collections.abc import Sequence

from kernelforge_engine import codec
from kernelforge_engine.exchanges import CastSummary
from kernelforge_engine.measurements import Exported, Measured, Measurement
from kernelforge_engine.store.database import Database, Row
from kernelforge_engine.store.ids import row, tag

# The newest comparison of every cast, model and mode counts: a later one may take a win back.
WON = """
SELECT cast_sha256 FROM (
    SELECT m.cast_sha256, r.value ->> '$.low' AS low, row_number() OVER (
        PARTITION BY m.cast_sha256, m.model, m.device, r.value ->> '$.mode' ORDER BY m.id DESC
    ) AS age
    FROM measurements m, json_each(m.measurement, '$.rows') AS r WHERE m.cast_sha256 NOT NULL
) WHERE age = 1 AND low > 1
"""
# The same of what one kernel saves: one that the model was found slower with has won nothing.
SLOWING = """
SELECT cast_sha256, node_id FROM (
    SELECT m.cast_sha256, k.value ->> '$.node_id' AS node_id, k.value ->> '$.high_us' AS high,
           row_number() OVER (
               PARTITION BY m.cast_sha256, m.model, m.device, k.value ->> '$.node_id'
               ORDER BY m.id DESC
           ) AS age
    FROM measurements m, json_each(m.measurement, '$.kernels') AS k WHERE m.cast_sha256 NOT NULL
) WHERE age = 1 AND high < 0
"""
# A kernel in an exported cast with which a whole model is faster, beyond its interval.
WINNERS = f"""
SELECT e.node_id FROM cast_nodes e JOIN casts c ON c.id = e.cast_id
WHERE c.sha256 IN ({WON}) AND (c.sha256, 'n' || e.node_id) NOT IN ({SLOWING})
"""


class Casts:
    """The casts of a project, and the measurements of whole models."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, cast: CastSummary, at: float) -> None:
        """File a cast that was written, with the nodes in it."""
        nodes = {row("n", entry.node_id) for entry in cast.entries}
        async with self._database.transaction():
            number = await self._database.insert(
                "INSERT INTO casts (sha256, path, created_at) VALUES (?, ?, ?)",
                (cast.sha256, cast.path, at),
            )
            await self._database.execute(
                "INSERT INTO cast_nodes (cast_id, node_id) SELECT ?, value FROM json_each(?)",
                (number, json.dumps(sorted(nodes))),
            )

    async def file(self, measured: Measured) -> None:
        """File what a model was measured to do with a cast."""
        async with self._database.transaction():
            await self._database.insert(
                """INSERT INTO measurements (task, model, device, cast_sha256, measurement,
                                             measured_at) VALUES (?, ?, ?, ?, ?, ?)""",
                (
                    measured.task,
                    measured.model,
                    measured.device,
                    measured.cast_sha256,
                    codec.dumps(measured.measurement),
                    measured.at,
                ),
            )

    async def all(self) -> tuple[Exported, ...]:
        """Every cast that was exported, newest first; nodes that were removed are not named."""
        rows = await self._database.rows(
            """SELECT c.*, json_group_array(e.node_id) FILTER (WHERE e.node_id) AS nodes
               FROM casts c LEFT JOIN cast_nodes e ON e.cast_id = c.id
               GROUP BY c.id ORDER BY c.id DESC"""
        )
        return tuple(_exported(r) for r in rows)

    async def measured(self) -> tuple[Measured, ...]:
        """Every measurement of a whole model, newest first."""
        rows = await self._database.rows("SELECT * FROM measurements ORDER BY id DESC")
        return tuple(_measured(r) for r in rows)

    async def winners(self) -> tuple[str, ...]:
        """The nodes in an exported cast with which a whole model is faster beyond its interval."""
        rows = await self._database.rows(f"SELECT DISTINCT node_id FROM ({WINNERS}) ORDER BY 1")
        return tuple(tag("n", r["node_id"]) for r in rows)


def _exported(found: Row) -> Exported:
    nodes: Sequence[int] = json.loads(found["nodes"])
    return Exported(
        sha256=found["sha256"],
        path=found["path"],
        node_ids=tuple(tag("n", n) for n in sorted(nodes)),
        at=found["created_at"],
    )


def _measured(found: Row) -> Measured:
    return Measured(
        task=found["task"],
        model=found["model"],
        device=found["device"],
        cast_sha256=found["cast_sha256"],
        measurement=codec.loads(Measurement, found["measurement"]),
        at=found["measured_at"],
    )
