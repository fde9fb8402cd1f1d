-- Times are Unix milliseconds (`*_ms`) except where the contract fixes a table's columns.
-- Text compares by its bytes, as SQLite does it. `managed` marks what a directory file made: `tollkeeper apply` removes it when the file drops it.

CREATE TABLE workspaces (
  id            TEXT COLLATE "C" PRIMARY KEY,
  name          TEXT COLLATE "C" NOT NULL,
  managed       BIGINT NOT NULL DEFAULT 0,
  created_at_ms BIGINT NOT NULL
);

-- Written by others too. NULL inherits the environment's value, 0 disables.
CREATE TABLE workspace_limits (
  workspace_id       TEXT COLLATE "C" PRIMARY KEY,
  rate_per_minute    BIGINT NULL CHECK (rate_per_minute BETWEEN 0 AND 2147483647),
  daily_token_budget BIGINT NULL CHECK (daily_token_budget BETWEEN 0 AND 9007199254740991),
  updated_at         TIMESTAMPTZ NOT NULL DEFAULT now()
);

-- Counters only. Written by others too.
CREATE TABLE llm_usage (
  workspace_id            TEXT COLLATE "C" NOT NULL,
  day                     DATE NOT NULL,
  route                   TEXT COLLATE "C" NOT NULL,
  model                   TEXT COLLATE "C" NOT NULL,
  input_tokens            BIGINT NOT NULL DEFAULT 0,
  output_tokens           BIGINT NOT NULL DEFAULT 0,
  requests                BIGINT NOT NULL DEFAULT 0,
  estimated_input_tokens  BIGINT NOT NULL DEFAULT 0,
  estimated_output_tokens BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (workspace_id, day, route, model)
);
CREATE INDEX llm_usage_by_day ON llm_usage (day, workspace_id);

-- The sum of llm_usage over all days, kept by triggers so that /metrics need not read the history
-- and stays true when another program edits the ledger.
CREATE TABLE llm_usage_totals (
  workspace_id  TEXT COLLATE "C" NOT NULL,
  route         TEXT COLLATE "C" NOT NULL,
  model         TEXT COLLATE "C" NOT NULL,
  input_tokens  BIGINT NOT NULL DEFAULT 0,
  output_tokens BIGINT NOT NULL DEFAULT 0,
  requests      BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (workspace_id, route, model)
);

CREATE FUNCTION llm_usage_follow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP IN ('UPDATE', 'DELETE') THEN
    UPDATE llm_usage_totals SET
      input_tokens = input_tokens - old.input_tokens,
      output_tokens = output_tokens - old.output_tokens,
      requests = requests - old.requests
    WHERE workspace_id = old.workspace_id AND route = old.route AND model = old.model;
  END IF;
  IF TG_OP IN ('INSERT', 'UPDATE') THEN
    INSERT INTO llm_usage_totals (workspace_id, route, model, input_tokens, output_tokens, requests)
    VALUES (new.workspace_id, new.route, new.model, new.input_tokens, new.output_tokens, new.requests)
    ON CONFLICT (workspace_id, route, model) DO UPDATE SET
      input_tokens = llm_usage_totals.input_tokens + excluded.input_tokens,
      output_tokens = llm_usage_totals.output_tokens + excluded.output_tokens,
      requests = llm_usage_totals.requests + excluded.requests;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER llm_usage_follow AFTER INSERT OR UPDATE OR DELETE ON llm_usage
  FOR EACH ROW EXECUTE FUNCTION llm_usage_follow();

CREATE TABLE llm_usage_by_user (
  workspace_id  TEXT COLLATE "C" NOT NULL,
  day           DATE NOT NULL,
  user_id       TEXT COLLATE "C" NOT NULL,
  input_tokens  BIGINT NOT NULL DEFAULT 0,
  output_tokens BIGINT NOT NULL DEFAULT 0,
  requests      BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (workspace_id, day, user_id)
);

-- `kind` is 'rate' or 'budget'.
CREATE TABLE llm_refusals (
  workspace_id TEXT COLLATE "C" NOT NULL,
  day          DATE NOT NULL,
  kind         TEXT COLLATE "C" NOT NULL,
  refused      BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (workspace_id, day, kind)
);
CREATE INDEX llm_refusals_by_day ON llm_refusals (day, workspace_id);

-- The provider keys' sliding windows. Written by others too. `kind` is 'request' or 'tokens'.
CREATE TABLE rate_limit_usage (
  platform      TEXT COLLATE "C" NOT NULL,
  model_id      TEXT COLLATE "C" NOT NULL,
  key_id        TEXT COLLATE "C" NOT NULL,
  kind          TEXT COLLATE "C" NOT NULL,
  tokens        BIGINT NOT NULL DEFAULT 0,
  created_at_ms BIGINT NOT NULL
);
CREATE INDEX rate_limit_usage_by_time ON rate_limit_usage (created_at_ms);

CREATE TABLE users (
  id            TEXT COLLATE "C" PRIMARY KEY,
  email         TEXT COLLATE "C" NOT NULL UNIQUE,          -- lower case
  password_hash TEXT COLLATE "C" NULL,                     -- argon2id, PHC string
  admin         BIGINT NOT NULL DEFAULT 0,    -- platform admin
  managed       BIGINT NOT NULL DEFAULT 0,
  removed_at_ms BIGINT NULL,                  -- can't sign in any more; the usage keeps its name
  created_at_ms BIGINT NOT NULL
);
CREATE INDEX users_admins ON users (admin) WHERE admin = 1;

CREATE TABLE memberships (
  user_id      TEXT COLLATE "C" NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  workspace_id TEXT COLLATE "C" NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
  role         TEXT COLLATE "C" NOT NULL,                  -- source-admin | editor | viewer
  managed      BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (user_id, workspace_id)
);
CREATE INDEX memberships_by_workspace ON memberships (workspace_id);

CREATE TABLE sessions (
  id_hash       TEXT COLLATE "C" PRIMARY KEY,              -- SHA-256 of the cookie's id, hex
  user_id       TEXT COLLATE "C" NULL REFERENCES users (id) ON DELETE CASCADE,
  data          TEXT COLLATE "C" NOT NULL,                 -- JSON
  created_at_ms BIGINT NOT NULL,
  last_seen_ms  BIGINT NOT NULL,
  expires_at_ms BIGINT NOT NULL
);
CREATE INDEX sessions_by_expiry ON sessions (expires_at_ms);
CREATE INDEX sessions_by_user ON sessions (user_id, created_at_ms);

CREATE TABLE api_keys (
  id              TEXT COLLATE "C" PRIMARY KEY,
  hash            TEXT COLLATE "C" NOT NULL UNIQUE,        -- SHA-256 of the whole key, hex
  hint            TEXT COLLATE "C" NOT NULL,               -- its first characters, to tell keys apart
  user_id         TEXT COLLATE "C" NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  workspace_id    TEXT COLLATE "C" NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
  name            TEXT COLLATE "C" NOT NULL,
  created_at_ms   BIGINT NOT NULL,
  expires_at_ms   BIGINT NULL,
  last_used_at_ms BIGINT NULL,
  revoked_at_ms   BIGINT NULL
);
CREATE INDEX api_keys_by_user ON api_keys (user_id, id);
CREATE INDEX api_keys_revoked ON api_keys (revoked_at_ms) WHERE revoked_at_ms IS NOT NULL;
CREATE INDEX api_keys_by_workspace ON api_keys (workspace_id);

CREATE TABLE sources (
  id            TEXT COLLATE "C" PRIMARY KEY,
  workspace_id  TEXT COLLATE "C" NOT NULL REFERENCES workspaces (id),
  name          TEXT COLLATE "C" NOT NULL,
  kind          TEXT COLLATE "C" NOT NULL,                 -- csv | json | postgres
  columns       TEXT COLLATE "C" NOT NULL,                 -- JSON [{name,type}], apart from the rows so that lists don't read them
  inline_rows   TEXT COLLATE "C" NULL,                     -- JSON [[…]], where the definition has rows
  managed       BIGINT NOT NULL DEFAULT 0,
  created_at_ms BIGINT NOT NULL
);
CREATE INDEX sources_by_workspace ON sources (workspace_id, id);

CREATE TABLE dashboards (
  id            TEXT COLLATE "C" PRIMARY KEY,
  workspace_id  TEXT COLLATE "C" NOT NULL REFERENCES workspaces (id),
  source_id     TEXT COLLATE "C" NOT NULL REFERENCES sources (id),
  name          TEXT COLLATE "C" NOT NULL,
  spec          TEXT COLLATE "C" NULL,                     -- JSON, once there is one
  managed       BIGINT NOT NULL DEFAULT 0,
  created_at_ms BIGINT NOT NULL
);
CREATE INDEX dashboards_by_workspace ON dashboards (workspace_id, id);
CREATE INDEX dashboards_by_source ON dashboards (source_id);

CREATE TABLE platforms (
  id       TEXT COLLATE "C" PRIMARY KEY,
  base_url TEXT COLLATE "C" NOT NULL,
  position BIGINT NOT NULL DEFAULT 0,         -- the file's order
  managed  BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE platform_keys (
  id          TEXT COLLATE "C" PRIMARY KEY,
  platform_id TEXT COLLATE "C" NOT NULL REFERENCES platforms (id) ON DELETE CASCADE,
  label       TEXT COLLATE "C" NOT NULL,
  sealed      TEXT COLLATE "C" NOT NULL,                   -- AES-256-GCM under the secret key, base64 of nonce and ciphertext; the row's id is bound in
  enabled     BIGINT NOT NULL DEFAULT 1,
  position    BIGINT NOT NULL DEFAULT 0,
  managed     BIGINT NOT NULL DEFAULT 0,
  UNIQUE (platform_id, label)
);

CREATE TABLE platform_models (
  platform_id TEXT COLLATE "C" NOT NULL REFERENCES platforms (id) ON DELETE CASCADE,
  model_id    TEXT COLLATE "C" NOT NULL,
  alias       TEXT COLLATE "C" NOT NULL,
  rpm         BIGINT NULL,                    -- NULL is unlimited, here and below
  rpd         BIGINT NULL,
  tpm         BIGINT NULL,
  tpd         BIGINT NULL,
  priority    BIGINT NOT NULL DEFAULT 1,      -- lower is tried first
  position    BIGINT NOT NULL DEFAULT 0,
  managed     BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (platform_id, model_id)
);

-- Bumped in the transaction of every change of platforms, keys and models, so that a running
-- server notices what another process changed.
CREATE TABLE pool_version (
  id      BIGINT PRIMARY KEY CHECK (id = 1),
  version BIGINT NOT NULL
);
INSERT INTO pool_version (id, version) VALUES (1, 1);

CREATE TABLE audit_log (
  id            BIGINT PRIMARY KEY,
  at_ms         BIGINT NOT NULL,
  actor         TEXT COLLATE "C" NOT NULL,
  action        TEXT COLLATE "C" NOT NULL,
  workspace_id  TEXT COLLATE "C" NULL,
  before        TEXT COLLATE "C" NULL,                     -- JSON
  after         TEXT COLLATE "C" NULL,                     -- JSON
  previous_hash TEXT COLLATE "C" NOT NULL,
  hash          TEXT COLLATE "C" NOT NULL
);
CREATE INDEX audit_log_by_workspace ON audit_log (workspace_id, id);
CREATE INDEX audit_log_by_actor ON audit_log (actor, id);
CREATE INDEX audit_log_by_time ON audit_log (at_ms, id);

CREATE FUNCTION audit_log_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the audit trail is append-only';
END $$;
CREATE TRIGGER audit_log_is_append_only BEFORE UPDATE OR DELETE ON audit_log
  FOR EACH ROW EXECUTE FUNCTION audit_log_is_append_only();
