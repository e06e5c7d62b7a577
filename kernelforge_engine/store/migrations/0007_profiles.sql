-- The digest of a node's kernels, one for each binary, plan and device that it was made on.
CREATE TABLE profiles (
    node_id INTEGER NOT NULL REFERENCES nodes (id),
    binary_sha256 TEXT NOT NULL,
    plan_sha256 TEXT NOT NULL,
    device TEXT NOT NULL,
    profile TEXT NOT NULL,
    measured_at REAL NOT NULL,
    PRIMARY KEY (node_id, binary_sha256, plan_sha256, device)
);
