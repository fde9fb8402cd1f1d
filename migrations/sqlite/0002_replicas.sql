-- The server processes that share this database. `beat` goes up with every sign of life: others tell by its change
-- that a process lives, whatever their clocks say; the times are for people.
CREATE TABLE replicas (
  id            TEXT PRIMARY KEY,
  started_at_ms INTEGER NOT NULL,
  seen_at_ms    INTEGER NOT NULL,
  beat          INTEGER NOT NULL
) STRICT;

-- Which process wrote a row, and as its how-manieth: a process commits its rows in this order, so whoever has read up
-- to a number has missed none. Rows of other programs have neither.
ALTER TABLE rate_limit_usage ADD COLUMN replica TEXT NOT NULL DEFAULT '';
ALTER TABLE rate_limit_usage ADD COLUMN seq INTEGER NULL;
CREATE UNIQUE INDEX rate_limit_usage_by_writer ON rate_limit_usage (replica, seq);
