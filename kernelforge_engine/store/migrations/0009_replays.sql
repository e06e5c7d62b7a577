-- A replay of the project on one machine; finished_at is empty while something is left to do.
CREATE TABLE replays (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    machine TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    started_at REAL NOT NULL,
    finished_at REAL
);

-- What became of a node or an attempt in a replay. What the project knew of it stays as it was.
CREATE TABLE replayed (
    replay_id INTEGER NOT NULL REFERENCES replays (id),
    subject TEXT NOT NULL,
    record TEXT NOT NULL,
    PRIMARY KEY (replay_id, subject)
);
