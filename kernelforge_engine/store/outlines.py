"""Trees as the search sees them, held in memory while they are what the disk has."""

from collections import OrderedDict
from dataclasses import dataclass, replace

from kernelforge_engine.records import Outcome
from kernelforge_engine.search.tree import Tree, TreeNode
from kernelforge_engine.store.database import Database, Row
from kernelforge_engine.store.ids import row, tag

MOST_NODES = 200_000  # of all trees that are held, at some 500 bytes each
# A row for every node with open leases, or one without a node.
LEASED = """
SELECT revision, leases.parent_id, count(leases.id) AS number FROM variants
LEFT JOIN leases ON variant_id = variants.id AND closed_at IS NULL AND expires_at > ?
WHERE variants.id = ? GROUP BY leases.parent_id
"""
# What the search may believe of a node: nothing below what physics allows, nor of one found wrong.
SEEN = """
SELECT id, parent_id, visits,
       CASE WHEN valid = 1 AND outcome <> :implausible THEN candidate_us END AS latency_us
FROM nodes WHERE variant_id = :variant ORDER BY id
"""


@dataclass(frozen=True, kw_only=True)
class _Held:
    revision: int
    eager_us: float
    tree: Tree


class Outlines:
    """The trees of a project; the least used ones are let go."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._held: OrderedDict[int, _Held] = OrderedDict()

    async def tree(self, variant_id: str, eager_us: float, at: float) -> Tree:
        """A tree with the virtual visits of the leases that are open at `at`."""
        variant = row("v", variant_id)
        rows = await self._database.rows(LEASED, (at, variant))
        held = await self._nodes(variant, rows[0]["revision"], eager_us)
        tree = held.tree.holding(
            {tag("n", r["parent_id"]): int(r["number"]) for r in rows if r["number"]}
        )
        self._held[variant] = replace(held, tree=tree)  # the next one differs by a lease or two
        return tree

    async def _nodes(self, variant: int, revision: int, eager_us: float) -> _Held:
        """A tree, whatever is leased. Its revision was read before: what changes while the nodes
        are read makes them be read again the next time."""
        held = self._held.get(variant)
        if held is None or (held.revision, held.eager_us) != (revision, eager_us):
            given = {"variant": variant, "implausible": Outcome.IMPLAUSIBLE}
            rows = await self._database.rows(SEEN, given)
            tree = Tree(_seen(r, eager_us) for r in rows)
            held = _Held(revision=revision, eager_us=eager_us, tree=tree)
            self._held[variant] = held
        self._held.move_to_end(variant)
        while len(self._held) > 1 and sum(len(h.tree) for h in self._held.values()) > MOST_NODES:
            self._held.popitem(last=False)
        return held


def _seen(found: Row, eager_us: float) -> TreeNode:
    parent, latency = found["parent_id"], found["latency_us"]
    known = None if latency is None else float(latency)
    return TreeNode(
        id=tag("n", found["id"]),
        parent_id=None if parent is None else tag("n", parent),
        visits=found["visits"],
        pending=0,
        latency_us=eager_us if parent is None else known,
    )
