-- Times are Unix milliseconds (`*_ms`) except where the contract fixes a table's columns.
-- `managed` marks what a directory file made: `tollkeeper apply` removes it when the file drops it.

CREATE TABLE workspaces (
  id            TEXT PRIMARY KEY,
  name          TEXT NOT NULL,
  managed       INTEGER NOT NULL DEFAULT 0,
  created_at_ms INTEGER NOT NULL
) STRICT;

-- Written by others too. NULL inherits the environment's value, 0 disables.
CREATE TABLE workspace_limits (
  workspace_id       TEXT PRIMARY KEY,
  rate_per_minute    INTEGER NULL CHECK (rate_per_minute BETWEEN 0 AND 2147483647),
  daily_token_budget INTEGER NULL CHECK (daily_token_budget BETWEEN 0 AND 9007199254740991),
  updated_at         TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
) STRICT;

-- Counters only. Written by others too.
CREATE TABLE llm_usage (
  workspace_id            TEXT NOT NULL,
  day                     TEXT NOT NULL,
  route                   TEXT NOT NULL,
  model                   TEXT NOT NULL,
  input_tokens            INTEGER NOT NULL DEFAULT 0,
  output_tokens           INTEGER NOT NULL DEFAULT 0,
  requests                INTEGER NOT NULL DEFAULT 0,
  estimated_input_tokens  INTEGER NOT NULL DEFAULT 0,
  estimated_output_tokens INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (workspace_id, day, route, model)
) STRICT, WITHOUT ROWID;
CREATE INDEX llm_usage_by_day ON llm_usage (day, workspace_id);

-- The sum of llm_usage over all days, kept by triggers so that /metrics need not read the history
-- and stays true when another program edits the ledger.
CREATE TABLE llm_usage_totals (
  workspace_id  TEXT NOT NULL,
  route         TEXT NOT NULL,
  model         TEXT NOT NULL,
  input_tokens  INTEGER NOT NULL DEFAULT 0,
  output_tokens INTEGER NOT NULL DEFAULT 0,
  requests      INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (workspace_id, route, model)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER llm_usage_added AFTER INSERT ON llm_usage BEGIN
  INSERT INTO llm_usage_totals (workspace_id, route, model, input_tokens, output_tokens, requests)
  VALUES (new.workspace_id, new.route, new.model, new.input_tokens, new.output_tokens, new.requests)
  ON CONFLICT (workspace_id, route, model) DO UPDATE SET
    input_tokens = input_tokens + excluded.input_tokens,
    output_tokens = output_tokens + excluded.output_tokens,
    requests = requests + excluded.requests;
END;

CREATE TRIGGER llm_usage_changed AFTER UPDATE ON llm_usage BEGIN
  UPDATE llm_usage_totals SET
    input_tokens = input_tokens - old.input_tokens,
    output_tokens = output_tokens - old.output_tokens,
    requests = requests - old.requests
  WHERE workspace_id = old.workspace_id AND route = old.route AND model = old.model;
  INSERT INTO llm_usage_totals (workspace_id, route, model, input_tokens, output_tokens, requests)
  VALUES (new.workspace_id, new.route, new.model, new.input_tokens, new.output_tokens, new.requests)
  ON CONFLICT (workspace_id, route, model) DO UPDATE SET
    input_tokens = input_tokens + excluded.input_tokens,
    output_tokens = output_tokens + excluded.output_tokens,
    requests = requests + excluded.requests;
END;

CREATE TRIGGER llm_usage_removed AFTER DELETE ON llm_usage BEGIN
  UPDATE llm_usage_totals SET
    input_tokens = input_tokens - old.input_tokens,
    output_tokens = output_tokens - old.output_tokens,
    requests = requests - old.requests
  WHERE workspace_id = old.workspace_id AND route = old.route AND model = old.model;
END;

CREATE TABLE llm_usage_by_user (
  workspace_id  TEXT NOT NULL,
  day           TEXT NOT NULL,
  user_id       TEXT NOT NULL,
  input_tokens  INTEGER NOT NULL DEFAULT 0,
  output_tokens INTEGER NOT NULL DEFAULT 0,
  requests      INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (workspace_id, day, user_id)
) STRICT, WITHOUT ROWID;

-- `kind` is 'rate' or 'budget'.
CREATE TABLE llm_refusals (
  workspace_id TEXT NOT NULL,
  day          TEXT NOT NULL,
  kind         TEXT NOT NULL,
  refused      INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (workspace_id, day, kind)
) STRICT, WITHOUT ROWID;
CREATE INDEX llm_refusals_by_day ON llm_refusals (day, workspace_id);

-- The provider keys' sliding windows. Written by others too. `kind` is 'request' or 'tokens'.
CREATE TABLE rate_limit_usage (
  platform      TEXT NOT NULL,
  model_id      TEXT NOT NULL,
  key_id        TEXT NOT NULL,
  kind          TEXT NOT NULL,
  tokens        INTEGER NOT NULL DEFAULT 0,
  created_at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX rate_limit_usage_by_time ON rate_limit_usage (created_at_ms);

CREATE TABLE users (
  id            TEXT PRIMARY KEY,
  email         TEXT NOT NULL UNIQUE,          -- lower case
  password_hash TEXT NULL,                     -- argon2id, PHC string
  admin         INTEGER NOT NULL DEFAULT 0,    -- platform admin
  managed       INTEGER NOT NULL DEFAULT 0,
  removed_at_ms INTEGER NULL,                  -- can't sign in any more; the usage keeps its name
  created_at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX users_admins ON users (admin) WHERE admin = 1;

CREATE TABLE memberships (
  user_id      TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
  role         TEXT NOT NULL,                  -- source-admin | editor | viewer
  managed      INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (user_id, workspace_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX memberships_by_workspace ON memberships (workspace_id);

CREATE TABLE sessions (
  id_hash       TEXT PRIMARY KEY,              -- SHA-256 of the cookie's id, hex
  user_id       TEXT NULL REFERENCES users (id) ON DELETE CASCADE,
  data          TEXT NOT NULL,                 -- JSON
  created_at_ms INTEGER NOT NULL,
  last_seen_ms  INTEGER NOT NULL,
  expires_at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_by_expiry ON sessions (expires_at_ms);
CREATE INDEX sessions_by_user ON sessions (user_id, created_at_ms);

CREATE TABLE api_keys (
  id              TEXT PRIMARY KEY,
  hash            TEXT NOT NULL UNIQUE,        -- SHA-256 of the whole key, hex
  hint            TEXT NOT NULL,               -- its first characters, to tell keys apart
  user_id         TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  workspace_id    TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
  name            TEXT NOT NULL,
  created_at_ms   INTEGER NOT NULL,
  expires_at_ms   INTEGER NULL,
  last_used_at_ms INTEGER NULL,
  revoked_at_ms   INTEGER NULL
) STRICT;
CREATE INDEX api_keys_by_user ON api_keys (user_id, id);
CREATE INDEX api_keys_revoked ON api_keys (revoked_at_ms) WHERE revoked_at_ms IS NOT NULL;
CREATE INDEX api_keys_by_workspace ON api_keys (workspace_id);

CREATE TABLE sources (
  id            TEXT PRIMARY KEY,
  workspace_id  TEXT NOT NULL REFERENCES workspaces (id),
  name          TEXT NOT NULL,
  kind          TEXT NOT NULL,                 -- csv | json | postgres
  columns       TEXT NOT NULL,                 -- JSON [{name,type}], apart from the rows so that lists don't read them
  inline_rows   TEXT NULL,                     -- JSON [[…]], where the definition has rows
  managed       INTEGER NOT NULL DEFAULT 0,
  created_at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX sources_by_workspace ON sources (workspace_id, id);

CREATE TABLE dashboards (
  id            TEXT PRIMARY KEY,
  workspace_id  TEXT NOT NULL REFERENCES workspaces (id),
  source_id     TEXT NOT NULL REFERENCES sources (id),
  name          TEXT NOT NULL,
  spec          TEXT NULL,                     -- JSON, once there is one
  managed       INTEGER NOT NULL DEFAULT 0,
  created_at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX dashboards_by_workspace ON dashboards (workspace_id, id);
CREATE INDEX dashboards_by_source ON dashboards (source_id);

CREATE TABLE platforms (
  id       TEXT PRIMARY KEY,
  base_url TEXT NOT NULL,
  position INTEGER NOT NULL DEFAULT 0,         -- the file's order
  managed  INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE platform_keys (
  id          TEXT PRIMARY KEY,
  platform_id TEXT NOT NULL REFERENCES platforms (id) ON DELETE CASCADE,
  label       TEXT NOT NULL,
  sealed      TEXT NOT NULL,                   -- AES-256-GCM under the secret key, base64 of nonce and ciphertext; the row's id is bound in
  enabled     INTEGER NOT NULL DEFAULT 1,
  position    INTEGER NOT NULL DEFAULT 0,
  managed     INTEGER NOT NULL DEFAULT 0,
  UNIQUE (platform_id, label)
) STRICT;

CREATE TABLE platform_models (
  platform_id TEXT NOT NULL REFERENCES platforms (id) ON DELETE CASCADE,
  model_id    TEXT NOT NULL,
  alias       TEXT NOT NULL,
  rpm         INTEGER NULL,                    -- NULL is unlimited, here and below
  rpd         INTEGER NULL,
  tpm         INTEGER NULL,
  tpd         INTEGER NULL,
  priority    INTEGER NOT NULL DEFAULT 1,      -- lower is tried first
  position    INTEGER NOT NULL DEFAULT 0,
  managed     INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (platform_id, model_id)
) STRICT, WITHOUT ROWID;

-- Bumped in the transaction of every change of platforms, keys and models, so that a running
-- server notices what another process changed.
CREATE TABLE pool_version (
  id      INTEGER PRIMARY KEY CHECK (id = 1),
  version INTEGER NOT NULL
) STRICT;
INSERT INTO pool_version (id, version) VALUES (1, 1);

CREATE TABLE audit_log (
  id            INTEGER PRIMARY KEY,
  at_ms         INTEGER NOT NULL,
  actor         TEXT NOT NULL,
  action        TEXT NOT NULL,
  workspace_id  TEXT NULL,
  before        TEXT NULL,                     -- JSON
  after         TEXT NULL,                     -- JSON
  previous_hash TEXT NOT NULL,
  hash          TEXT NOT NULL
) STRICT;
CREATE INDEX audit_log_by_workspace ON audit_log (workspace_id, id);
CREATE INDEX audit_log_by_actor ON audit_log (actor, id);
CREATE INDEX audit_log_by_time ON audit_log (at_ms, id);

CREATE TRIGGER audit_log_is_append_only_u BEFORE UPDATE ON audit_log BEGIN
  SELECT RAISE(ABORT, 'the audit trail is append-only');
END;
CREATE TRIGGER audit_log_is_append_only_d BEFORE DELETE ON audit_log BEGIN
  SELECT RAISE(ABORT, 'the audit trail is append-only');
END;
