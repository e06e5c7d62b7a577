-- What clients say that they spent, a row for every key. What was spent stays spent when the node
-- or the card that it went into is removed. `digest` is of the whole report.
CREATE TABLE usage (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,
    digest TEXT NOT NULL,
    reporter TEXT NOT NULL,
    model TEXT NOT NULL,
    arm TEXT,
    calls INTEGER NOT NULL,
    dollars REAL,
    wall_seconds REAL,
    card_id INTEGER REFERENCES cards (id) ON DELETE SET NULL,
    node_id INTEGER REFERENCES nodes (id) ON DELETE SET NULL,
    attempt_id INTEGER REFERENCES attempts (id) ON DELETE SET NULL,
    created_at REAL NOT NULL
);
CREATE INDEX usage_by_card ON usage (card_id) WHERE card_id IS NOT NULL;
CREATE INDEX usage_by_node ON usage (node_id) WHERE node_id IS NOT NULL;
CREATE INDEX usage_by_attempt ON usage (attempt_id) WHERE attempt_id IS NOT NULL;
CREATE INDEX usage_by_arm ON usage (arm) WHERE arm IS NOT NULL;

CREATE TABLE usage_tokens (
    usage_id INTEGER NOT NULL REFERENCES usage (id),
    kind TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    PRIMARY KEY (usage_id, kind)
) WITHOUT ROWID;

-- How long judging or timing a candidate held a device, as the engine measured.
CREATE TABLE device_work (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    device TEXT NOT NULL,
    task TEXT NOT NULL,
    seconds REAL NOT NULL,
    variant_id INTEGER REFERENCES variants (id) ON DELETE SET NULL,
    node_id INTEGER REFERENCES nodes (id) ON DELETE SET NULL,
    attempt_id INTEGER REFERENCES attempts (id) ON DELETE SET NULL
);
CREATE INDEX device_work_by_variant ON device_work (variant_id);
CREATE INDEX device_work_by_node ON device_work (node_id) WHERE node_id IS NOT NULL;
CREATE INDEX device_work_by_attempt ON device_work (attempt_id) WHERE attempt_id IS NOT NULL;
