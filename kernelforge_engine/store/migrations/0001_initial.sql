CREATE TABLE captures (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    record TEXT NOT NULL,
    created_at REAL NOT NULL
);

CREATE TABLE cards (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    capture_id INTEGER NOT NULL REFERENCES captures (id),
    operator TEXT NOT NULL
);

-- A variant is one key of one operator; a later capture that meets it again adds a sighting.
CREATE TABLE variants (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    digest TEXT NOT NULL UNIQUE,
    call TEXT NOT NULL
);

CREATE TABLE sightings (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    variant_id INTEGER NOT NULL REFERENCES variants (id),
    card_id INTEGER NOT NULL REFERENCES cards (id),
    calls INTEGER NOT NULL,
    eager_us REAL NOT NULL,
    share REAL NOT NULL,
    floor_us REAL NOT NULL,
    module TEXT NOT NULL,
    target INTEGER NOT NULL,
    reason TEXT,
    examples TEXT NOT NULL,
    UNIQUE (variant_id, card_id)
);
CREATE INDEX sightings_by_card ON sightings (card_id);

CREATE TABLE sources (
    digest TEXT PRIMARY KEY,
    backend TEXT NOT NULL,
    text TEXT NOT NULL
);

CREATE TABLE nodes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    variant_id INTEGER NOT NULL REFERENCES variants (id),
    parent_id INTEGER REFERENCES nodes (id),
    source_digest TEXT REFERENCES sources (digest),
    artifact_digest TEXT,
    label TEXT NOT NULL,
    author TEXT NOT NULL,
    note TEXT NOT NULL,
    visits INTEGER NOT NULL DEFAULT 0,
    timing TEXT,
    verdict TEXT,
    created_at REAL NOT NULL
);
CREATE INDEX nodes_by_variant ON nodes (variant_id);
CREATE UNIQUE INDEX one_root_per_variant ON nodes (variant_id) WHERE parent_id IS NULL;

CREATE TABLE attempts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    variant_id INTEGER NOT NULL REFERENCES variants (id),
    parent_id INTEGER NOT NULL REFERENCES nodes (id),
    lease_id INTEGER REFERENCES leases (id),
    source_digest TEXT NOT NULL REFERENCES sources (digest),
    author TEXT NOT NULL,
    note TEXT NOT NULL,
    verdict TEXT NOT NULL,
    created_at REAL NOT NULL
);
CREATE INDEX attempts_by_variant ON attempts (variant_id);

-- An open lease is a virtual visit of its parent until it is closed or expires.
CREATE TABLE leases (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    variant_id INTEGER NOT NULL REFERENCES variants (id),
    parent_id INTEGER NOT NULL REFERENCES nodes (id),
    node_id INTEGER REFERENCES nodes (id),
    holder TEXT NOT NULL,
    policy TEXT NOT NULL,
    expires_at REAL NOT NULL,
    closed_at REAL
);
CREATE INDEX leases_open ON leases (variant_id) WHERE closed_at IS NULL;

CREATE TABLE jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    owner INTEGER NOT NULL,
    state TEXT NOT NULL,
    result TEXT,
    error TEXT,
    created_at REAL NOT NULL
);
CREATE INDEX jobs_by_key ON jobs (key);
