-- What the calls came to that their clients gave a key: one that is made again comes to the same.
CREATE TABLE calls (
    key TEXT PRIMARY KEY,
    job_id INTEGER REFERENCES jobs (id),
    lease_id INTEGER REFERENCES leases (id) ON DELETE CASCADE,
    attempt_id INTEGER REFERENCES attempts (id) ON DELETE CASCADE
);
CREATE INDEX calls_by_lease ON calls (lease_id);
CREATE INDEX calls_by_attempt ON calls (attempt_id);
