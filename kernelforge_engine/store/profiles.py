"""Profiles on disk, by node, binary, plan and device."""

from kernelforge_engine import codec
from kernelforge_engine.profiles import Profile
from kernelforge_engine.store.database import Database, Row
from kernelforge_engine.store.ids import row


class Profiles:
    """The profiles of a project."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def file(self, node_id: str, profile: Profile) -> None:
        """Keep a profile in place of an older one of the same binary, plan and device."""
        async with self._database.transaction():
            await self._database.execute(
                """INSERT OR REPLACE INTO profiles
                   (node_id, binary_sha256, plan_sha256, device, profile, measured_at)
                   VALUES (?, ?, ?, ?, ?, ?)""",
                (
                    row("n", node_id),
                    profile.binary_sha256,
                    profile.plan_sha256,
                    profile.device,
                    codec.dumps(profile),
                    profile.measured_at,
                ),
            )

    async def of(
        self, node_id: str, binary_sha256: str, plan_sha256: str, device: str
    ) -> Profile | None:
        """The profile of a node's binary and plan on a device."""
        return _read(
            await self._database.row(
                """SELECT profile FROM profiles WHERE node_id = ? AND binary_sha256 = ?
                   AND plan_sha256 = ? AND device = ?""",
                (row("n", node_id), binary_sha256, plan_sha256, device),
            )
        )

    async def latest(self, node_id: str) -> Profile | None:
        """The profile of a node that was made last."""
        return _read(
            await self._database.row(
                "SELECT profile FROM profiles WHERE node_id = ? ORDER BY measured_at DESC",
                (row("n", node_id),),
            )
        )


def _read(found: Row | None) -> Profile | None:
    if found is None:
        return None
    profile: Profile = codec.loads(Profile, found["profile"])
    return profile
