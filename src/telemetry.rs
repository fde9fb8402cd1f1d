//! Logs and metrics. Neither ever holds a key, a password, a prompt or an output.

use std::fmt::Write as _;

use tracing_subscriber::EnvFilter;

use crate::model::{Error, Kept};
use crate::redis::{Mode, Redis};
use crate::services::Services;

/// Logs to stderr: lines for people in development, JSON in production.
///
/// # Errors
/// What `RUST_LOG` accepts, as a sentence.
pub fn log(filter: &str, json: bool) -> Result<(), String> {
    let filter = EnvFilter::builder().parse(filter).map_err(|_| {
        "RUST_LOG: is not accepted; it takes a filter like info or tollkeeper=debug,info".to_owned()
    })?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Fails only when a test has set one already.
    let _ =
        if json { lines.json().flatten_event(true).try_init() } else { lines.with_ansi(false).try_init() };
    Ok(())
}

/// The text of `/metrics`. Usage is read from the ledger, so it equals it, also after a restart.
pub async fn render(services: &Services) -> Result<String, Error> {
    let usage = crate::ledger::read::totals(&services.store).await?;
    let mut tokens =
        Metric::counter("tollkeeper_llm_tokens_total", "Tokens of finished model requests, by the ledger.");
    let mut requests =
        Metric::counter("tollkeeper_llm_requests_total", "Finished model requests, by the ledger.");
    for row in &usage {
        let labels = [
            ("workspace", row.workspace.as_str()),
            ("route", row.route.as_str()),
            ("model", row.model.as_str()),
        ];
        let [workspace, route, model] = labels;
        tokens.sample(&[workspace, route, model, ("direction", "input")], row.input_tokens);
        tokens.sample(&[workspace, route, model, ("direction", "output")], row.output_tokens);
        requests.sample(&labels, row.requests);
    }
    let mut refusals = Metric::counter(
        "tollkeeper_llm_refusals_total",
        "Model requests that a limit refused, since this process started.",
    );
    for (workspace, limit, count) in services.ledger.refusals() {
        refusals.sample(&[("workspace", workspace.as_str()), ("limit", limit.as_str())], count);
    }
    let mode = services.modes.now();
    let mut replicas =
        Metric::gauge("tollkeeper_replicas", "Server processes that share the database, this one included.");
    replicas.sample(&[], mode.replicas.into());
    let mut kept = Metric::gauge(
        "tollkeeper_limits_mode",
        "Where rates and reservations are kept: 1 at the mode in force.",
    );
    for each in Kept::ALL {
        kept.sample(&[("mode", each.as_str())], (each == mode.kept).into());
    }
    let redis = services.redis.as_ref().map(redis).into_iter().flatten();
    let all =
        [tokens, requests, refusals, replicas, kept].into_iter().chain(of_providers(services)).chain(redis);
    Ok(all.map(|metric| metric.0).collect())
}

fn redis(redis: &Redis) -> [Metric; 3] {
    let mut up = Metric::gauge(
        "tollkeeper_redis_up",
        "1 while limits are held in Redis; 0 while it is away and each replica holds its share.",
    );
    up.sample(&[], (redis.mode() == Mode::Up).into());
    let mut failures = Metric::counter(
        "tollkeeper_redis_failures_total",
        "Calls of Redis that got no answer in time, since this process started.",
    );
    failures.sample(&[], redis.failures());
    let mut local = Metric::counter(
        "tollkeeper_redis_local_decisions_total",
        "Decisions on limits that this process made without Redis, since it started.",
    );
    local.sample(&[], redis.local_decisions());
    [up, failures, local]
}

/// How the provider keys stand. Keys are named by their labels.
fn of_providers(services: &Services) -> [Metric; 5] {
    let mut unserved = Metric::counter(
        "tollkeeper_provider_unserved_total",
        "Model requests that no provider key could serve, since this process started.",
    );
    for (alias, reason, count) in services.pool.unserved_totals() {
        unserved.sample(&[("alias", alias.as_str()), ("reason", reason.as_str())], count);
    }
    let mut used =
        Metric::gauge("tollkeeper_provider_used", "What counts in a provider key's window or day.");
    let mut limit =
        Metric::gauge("tollkeeper_provider_limit", "The limit of that count; absent where it is unlimited.");
    let mut in_flight = Metric::gauge("tollkeeper_provider_in_flight", "Calls begun and not ended.");
    let mut cooling = Metric::gauge(
        "tollkeeper_provider_cooling",
        "1 while a model under a key is left alone after a failure.",
    );
    for row in services.pool.status() {
        let labels = [
            ("platform", row.platform.as_str()),
            ("model", row.model.as_str()),
            ("key", row.key_label.as_str()),
        ];
        let [platform, model, key] = labels;
        let counts = [
            ("rpm", row.rpm),
            ("rpd", row.rpd),
            ("tpm", row.tpm),
            ("tpd", row.tpd),
            ("provider_day", row.provider_day),
        ];
        for (kind, quota) in counts {
            let labels = [platform, model, key, ("kind", kind)];
            used.sample(&labels, quota.used);
            if let Some(value) = quota.limit {
                limit.sample(&labels, value);
            }
        }
        in_flight.sample(&labels, row.in_flight);
        cooling.sample(&labels, u64::from(row.cooldown_until.is_some()));
    }
    [unserved, used, limit, in_flight, cooling]
}

/// One metric in Prometheus' text format.
struct Metric(String, &'static str);

impl Metric {
    fn counter(name: &'static str, help: &str) -> Self {
        Self(format!("# HELP {name} {help}\n# TYPE {name} counter\n"), name)
    }

    fn gauge(name: &'static str, help: &str) -> Self {
        Self(format!("# HELP {name} {help}\n# TYPE {name} gauge\n"), name)
    }

    fn sample(&mut self, labels: &[(&str, &str)], value: u64) {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "{}{labels} {value}", self.1);
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_in_the_text_format() {
        let mut metric = Metric::counter("x_total", "Help.");
        metric.sample(&[("model", "a\"b\\c"), ("limit", "rate")], 7);
        assert_eq!(
            metric.0,
            "# HELP x_total Help.\n# TYPE x_total counter\nx_total{model=\"a\\\"b\\\\c\",limit=\"rate\"} 7\n"
        );
    }
}
