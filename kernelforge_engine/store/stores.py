"""What the searches of a project are kept in."""

from dataclasses import dataclass

from kernelforge_engine.store.captures import Captures
from kernelforge_engine.store.database import Database
from kernelforge_engine.store.leases import Leases
from kernelforge_engine.store.trees import Trees


@dataclass(frozen=True, kw_only=True)
class Stores:
    """Captures, revision trees and leases of one database."""

    captures: Captures
    trees: Trees
    leases: Leases

    @classmethod
    def of(cls, database: Database) -> "Stores":
        """Those of a database."""
        return cls(captures=Captures(database), trees=Trees(database), leases=Leases(database))
