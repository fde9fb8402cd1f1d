//! Puts the pool together from the configuration.

use std::sync::Arc;

use async_trait::async_trait;

use super::{
    DemoModel, Endpoint, Failure, ModelRequest, Operation, Pace, Pool, PoolConfig, Secret, SecretKey, Sent,
    SentBody, SharedLeases, StatedLimits, Target, Timeouts, Upstream, UpstreamAnswer, UpstreamBody,
    UsageSink, WireClient, Wiring, estimate,
};
use crate::clock::SharedClock;
use crate::config::Config;
use crate::ledger::{Ledger, WindowRow};
use crate::store::Store;

/// The pool of this server. With `demo`, the built-in model answers where nothing is configured.
///
/// # Errors
/// A sentence for the operator.
pub async fn start(
    config: &Config,
    store: &Store,
    clock: &SharedClock,
    ledger: &Ledger,
    demo: bool,
    shared: Option<Arc<dyn SharedLeases>>,
) -> Result<Pool, String> {
    let timeouts = Timeouts { first_byte: config.first_byte_timeout, idle: config.idle_timeout };
    let upstream = Both {
        wire: WireClient::new(clock.clone(), timeouts)?,
        demo: DemoModel::new(clock.clone(), Pace::HUMAN),
    };
    Pool::open(Wiring {
        store: store.clone(),
        clock: clock.clone(),
        secret: secret_key(config)?,
        config: PoolConfig {
            single: config.single_model.clone(),
            demo,
            caps: config.daily_request_caps.clone(),
        },
        upstream: Arc::new(upstream),
        sink: Arc::new(ledger.clone()),
        shared,
        replica: ledger.replica().clone(),
    })
    .await
}

/// The key that provider keys are sealed with: from the environment, or from the file beside the
/// database, which is made on the first start.
///
/// # Errors
/// A sentence for the operator.
pub fn secret_key(config: &Config) -> Result<SecretKey, String> {
    match &config.secret_key {
        Some(text) => SecretKey::from_base64(text)
            .map_err(|accepted| format!("TOLLKEEPER_SECRET_KEY: it takes {accepted}")),
        None => SecretKey::load_or_create(&config.secret_key_file()),
    }
}

/// Providers over HTTP, and the demo model.
struct Both {
    wire: WireClient,
    demo: DemoModel,
}

#[async_trait]
impl Upstream for Both {
    async fn send(&self, target: &Target, model: &str, request: &ModelRequest) -> Result<Sent, Failure> {
        let answer = match target {
            Target::Demo if request.operation() != Operation::Chat => return Err(Failure::NotOffered),
            Target::Demo => self.demo.send(request).await,
            Target::Provider { base_url, key } => {
                let key = (!key.is_empty()).then(|| Secret::new(key.clone()));
                let endpoint = Endpoint { base_url: base_url.to_string(), key };
                self.wire.send(&endpoint, model, request).await?
            }
        };
        Ok(answer.into())
    }

    fn estimate(&self, request: &ModelRequest, typical_output: u64) -> u64 {
        estimate::estimate_call(request, typical_output)
    }
}

impl From<UpstreamAnswer> for Sent {
    fn from(answer: UpstreamAnswer) -> Self {
        let stated =
            StatedLimits { requests: answer.limits.requests.limit, tokens: answer.limits.tokens.limit };
        let body = match answer.body {
            UpstreamBody::Whole { completion, text, step } => SentBody::Whole { completion, text, step },
            UpstreamBody::Stream(events, tally) => {
                SentBody::Stream { events, so_far: Box::new(move || tally.step()) }
            }
        };
        Sent { stated, request_id: answer.request_id, body }
    }
}

impl UsageSink for Ledger {
    fn record(&self, rows: Vec<WindowRow>) {
        self.record_window_rows(rows);
    }
}
