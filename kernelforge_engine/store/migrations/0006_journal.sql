-- What the search of a variant saw and chose, in the order it happened. Rows are only ever added:
-- the trees and choices of a run can be made again from them alone.
CREATE TABLE journal (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    variant_id INTEGER NOT NULL REFERENCES variants (id),
    kind TEXT NOT NULL,
    node_id INTEGER,
    parent_id INTEGER,
    lease_id INTEGER,
    policy TEXT,
    visits INTEGER NOT NULL DEFAULT 0,
    latency_us REAL,
    at REAL,
    expires_at REAL
);
CREATE INDEX journal_by_variant ON journal (variant_id);

-- Trees that are older than the journal begin as they are; their open leases were chosen unrecorded.
INSERT INTO journal (variant_id, kind, node_id, parent_id, visits, latency_us)
SELECT variant_id, 'filed', id, parent_id, visits,
       CASE WHEN valid = 1 AND outcome <> 'implausible' THEN candidate_us END
FROM nodes ORDER BY id;
INSERT INTO journal (variant_id, kind, node_id, lease_id, at, expires_at)
SELECT variant_id, 'leased', parent_id, id, 0, expires_at
FROM leases WHERE closed_at IS NULL ORDER BY id;

-- How many proposals under a lease may fail before it ends, beside the first.
ALTER TABLE leases ADD COLUMN max_repairs INTEGER NOT NULL DEFAULT 3;
