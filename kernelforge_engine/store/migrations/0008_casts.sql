-- The casts that were exported, with their nodes, and what whole models were measured to do with a
-- cast. A cast is known by the hash of its file, so that one that was changed is another. What was
-- measured stays when the capture is removed.
CREATE TABLE casts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    sha256 TEXT NOT NULL UNIQUE,
    path TEXT NOT NULL,
    created_at REAL NOT NULL
);

CREATE TABLE cast_nodes (
    cast_id INTEGER NOT NULL REFERENCES casts (id),
    node_id INTEGER NOT NULL REFERENCES nodes (id) ON DELETE CASCADE,
    PRIMARY KEY (cast_id, node_id)
) WITHOUT ROWID;
CREATE INDEX cast_nodes_by_node ON cast_nodes (node_id);

-- An export whose model was slower with every choice of kernels has written no cast.
CREATE TABLE measurements (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    task TEXT NOT NULL,
    model TEXT NOT NULL,
    device TEXT NOT NULL,
    cast_sha256 TEXT,
    measurement TEXT NOT NULL,
    measured_at REAL NOT NULL
);
CREATE INDEX measurements_by_cast ON measurements (cast_sha256);
