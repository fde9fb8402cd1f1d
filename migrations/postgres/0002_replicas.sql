-- The server processes that share this database. `beat` goes up with every sign of life: others tell by its change
-- that a process lives, whatever their clocks say; the times are for people.
CREATE TABLE replicas (
  id            TEXT COLLATE "C" PRIMARY KEY,
  started_at_ms BIGINT NOT NULL,
  seen_at_ms    BIGINT NOT NULL,
  beat          BIGINT NOT NULL
);

-- Which process wrote a row, and as its how-manieth: a process commits its rows in this order, so whoever has read up
-- to a number has missed none. Rows of other programs have neither.
ALTER TABLE rate_limit_usage ADD COLUMN replica TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE rate_limit_usage ADD COLUMN seq BIGINT NULL;
CREATE UNIQUE INDEX rate_limit_usage_by_writer ON rate_limit_usage (replica, seq);

-- Tells every server at once what pages may show anew. Statements of other programs tell it too.
CREATE FUNCTION tollkeeper_tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('tollkeeper', TG_TABLE_NAME);
  RETURN NULL;
END $$;
CREATE TRIGGER tell AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON workspaces
  FOR EACH STATEMENT EXECUTE FUNCTION tollkeeper_tell();
CREATE TRIGGER tell AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON workspace_limits
  FOR EACH STATEMENT EXECUTE FUNCTION tollkeeper_tell();
CREATE TRIGGER tell AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON llm_usage
  FOR EACH STATEMENT EXECUTE FUNCTION tollkeeper_tell();
CREATE TRIGGER tell AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON llm_refusals
  FOR EACH STATEMENT EXECUTE FUNCTION tollkeeper_tell();
CREATE TRIGGER tell AFTER INSERT ON audit_log
  FOR EACH STATEMENT EXECUTE FUNCTION tollkeeper_tell();
-- Heard every other second, which proves that notifications arrive at all.
CREATE TRIGGER tell AFTER INSERT OR UPDATE ON replicas
  FOR EACH STATEMENT EXECUTE FUNCTION tollkeeper_tell();
