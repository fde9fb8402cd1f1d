-- Cooldowns are each process's own; that one was cleared is everybody's business. The number goes up with each
-- clear, so whoever reads a higher one than before has a cooldown to end.
CREATE TABLE cooldown_clears (
  platform_id TEXT NOT NULL,
  model_id    TEXT NOT NULL,
  key_id      TEXT NOT NULL REFERENCES platform_keys (id) ON DELETE CASCADE,
  clears      INTEGER NOT NULL,
  PRIMARY KEY (key_id, platform_id, model_id)
) STRICT;
