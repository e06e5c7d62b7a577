-- What is asked of a node most, read out of its verdict and timing, so that an index can hold it.
-- candidate_us stays JSON text: SQLite itself would read its digits with another rounding.
ALTER TABLE nodes ADD COLUMN valid INTEGER
    GENERATED ALWAYS AS (json_extract(verdict, '$.status') IS 'valid') VIRTUAL;
ALTER TABLE nodes ADD COLUMN outcome TEXT
    GENERATED ALWAYS AS (json_extract(timing, '$.outcome')) VIRTUAL;
ALTER TABLE nodes ADD COLUMN faster INTEGER
    GENERATED ALWAYS AS (json_extract(timing, '$.outcome') IS 'faster') VIRTUAL;
ALTER TABLE nodes ADD COLUMN low REAL
    GENERATED ALWAYS AS (json_extract(timing, '$.low')) VIRTUAL;
ALTER TABLE nodes ADD COLUMN candidate_us TEXT
    GENERATED ALWAYS AS (timing -> '$.candidate_us') VIRTUAL;
CREATE INDEX nodes_outline ON nodes
    (variant_id, id, parent_id, visits, valid, outcome, candidate_us);
CREATE INDEX nodes_best ON nodes (variant_id, faster DESC, low DESC)
    WHERE valid = 1 AND outcome <> 'implausible';
CREATE INDEX nodes_by_parent ON nodes (parent_id);
CREATE INDEX nodes_by_source ON nodes (variant_id, source_digest);
CREATE INDEX attempts_by_parent ON attempts (parent_id);

-- How often the tree of a variant has changed, by whichever process: who holds one can tell whether
-- it is still the same.
ALTER TABLE variants ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
CREATE TRIGGER a_node_was_filed AFTER INSERT ON nodes
BEGIN
    UPDATE variants SET revision = revision + 1 WHERE id = NEW.variant_id;
END;
CREATE TRIGGER a_node_has_changed AFTER UPDATE OF visits, timing, verdict ON nodes
BEGIN
    UPDATE variants SET revision = revision + 1 WHERE id = NEW.variant_id;
END;
