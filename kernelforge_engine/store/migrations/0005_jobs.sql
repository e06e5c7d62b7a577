-- A job is taken up again after its process ended: the arguments of its call, when it was started
-- last, when it ended, and whether its end was told. Whoever asked for the jobs of before is gone.
ALTER TABLE jobs RENAME COLUMN created_at TO started_at;
ALTER TABLE jobs ADD COLUMN arguments TEXT;
ALTER TABLE jobs ADD COLUMN ended_at REAL;
ALTER TABLE jobs ADD COLUMN answered INTEGER NOT NULL DEFAULT 1;
