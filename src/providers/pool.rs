//! The one way to a model: choose a candidate that has room, call it, and move on to the next where
//! it fails, within bounds. What the call used is entered when it ends, however it ends.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use parking_lot::{Mutex, RwLock};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::book::Obstacle;
use super::catalog::{Candidate, Catalog, LoadError, ModelRow, PoolConfig};
use super::cooldown::Consequence;
use super::link::{SentBody, Upstream};
use super::metered::{Metered, Settling};
use super::quotas::{Contender, Estimate, Quotas, UsageSink};
use super::shared::SharedLeases;
use super::status::{ProviderDetail, ProviderRow};
use super::unserved::{Unservable, UnservedReason};
use super::{
    Answer, CallError, CandidateId, Failure, ModelRequest, Reply, SecretKey, catalog, estimate, history,
    outcome,
};
use crate::clock::SharedClock;
use crate::ledger::StepUsage;
use crate::limits::Admission;
use crate::model::providers::Tested;
use crate::model::{Error, Usage};
use crate::replicas::ReplicaId;
use crate::store::Store;

/// Another candidate is tried only within this time of the call's begin, and only so many are.
/// Each attempt is bounded by the upstream's own timeouts.
const FAILOVER_WITHIN: Duration = Duration::from_mins(2);
const MAX_ATTEMPTS: usize = 16;
/// How often another process's changes are looked for.
const POLL_EVERY: Duration = Duration::from_millis(500);
/// How often other replicas' calls are read. With the ledger's fifth of a second, a call made
/// elsewhere counts here within a second.
const FOLLOW_EVERY: Duration = Duration::from_millis(500);
const PRUNE_EVERY: Duration = Duration::from_mins(1);
/// Between two steps of pruning, so that others get at the writer.
const PRUNE_PAUSE: Duration = Duration::from_millis(50);

/// All candidates, and how they are called. Clones share them.
#[derive(Clone)]
pub struct Pool(Arc<Inner>);

struct Inner {
    store: Store,
    clock: SharedClock,
    secret: SecretKey,
    config: PoolConfig,
    upstream: Arc<dyn Upstream>,
    quotas: Quotas,
    /// How this process signs its own rows, and how far those of others have been counted.
    replica: ReplicaId,
    followed: tokio::sync::Mutex<history::Heads>,
    catalog: RwLock<Arc<Catalog>>,
    /// One reload at a time.
    reloading: tokio::sync::Mutex<()>,
    unservable: Unservable,
    /// What came of each candidate's last test.
    tested: Mutex<HashMap<CandidateId, Tested>>,
}

/// What a pool is made of.
pub struct Wiring {
    pub store: Store,
    pub clock: SharedClock,
    pub secret: SecretKey,
    pub config: PoolConfig,
    pub upstream: Arc<dyn Upstream>,
    pub sink: Arc<dyn UsageSink>,
    /// Where the calls of all replicas are counted together.
    pub shared: Option<Arc<dyn SharedLeases>>,
    /// How `sink` signs the rows that it writes.
    pub replica: ReplicaId,
}

impl Pool {
    /// Reads the candidates and rebuilds their windows.
    ///
    /// # Errors
    /// A sentence for the operator: the database fails, or its keys were sealed under another secret key.
    pub async fn open(wiring: Wiring) -> Result<Self, String> {
        let Wiring { store, clock, secret, config, upstream, sink, shared, replica } = wiring;
        let quotas = Quotas::new(clock.clone(), sink).with_shared(shared);
        let heads = history::restore(&store, &quotas, clock.now())
            .await
            .map_err(|e| format!("the provider keys' windows can't be read from the database: {e}"))?;
        let pool = Pool(Arc::new(Inner {
            store,
            clock,
            secret,
            config,
            upstream,
            quotas,
            replica,
            followed: tokio::sync::Mutex::new(heads),
            catalog: RwLock::default(),
            reloading: tokio::sync::Mutex::default(),
            unservable: Unservable::default(),
            tested: Mutex::default(),
        }));
        pool.load().await.map_err(|e| e.to_string())?;
        Ok(pool)
    }

    /// Keeps the pool current and the windows' table small until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let work = async {
            tokio::join!(self.watch(), self.follow(), self.prune());
        };
        stop.run_until_cancelled(work).await;
    }

    /// Reads the candidates anew: for changes made in this process, which need not wait for the poll.
    pub async fn reload(&self) -> Result<(), Error> {
        self.load().await.map_err(|error| {
            tracing::error!(%error, "the provider pool could not be reloaded");
            match error {
                LoadError::Database(error) => error.into(),
                LoadError::Sealed { .. } => Error::Internal,
            }
        })
    }

    /// Calls the model `asked` for: an alias, `PLATFORM/MODEL` or `default`.
    ///
    /// The usage is in the admission's meter before a whole answer is returned, and before a
    /// stream's last event is.
    pub async fn call(
        &self,
        admission: &Admission,
        asked: &str,
        request: ModelRequest,
    ) -> Result<Reply, CallError> {
        let pool = &*self.0;
        let catalog = self.catalog();
        let candidates =
            catalog.resolve(asked).ok_or_else(|| CallError::UnknownModel { asked: asked.to_owned() })?;
        if candidates.is_empty() {
            return Err(self.unserved(asked, UnservedReason::NoKey, 0, outcome::no_key(asked)));
        }
        let contenders: Vec<Contender<'_>> =
            candidates.iter().map(|c| Contender { id: &c.id, priority: c.priority }).collect();
        let estimate = Estimate::of(|typical| pool.upstream.estimate(&request, typical));
        let mut failures: Vec<(usize, Consequence)> = Vec::new();
        // Those that other replicas fill.
        let mut full: Vec<usize> = Vec::new();
        let begun = Instant::now();
        while failures.len() < MAX_ATTEMPTS && begun.elapsed() < FAILOVER_WITHIN {
            let tried = |at: usize| {
                full.contains(&at)
                    || failures.iter().any(|(failed, why)| failed_too(candidates, *failed, *why, at))
            };
            let only_want_of_room = failures.iter().all(|(_, consequence)| consequence.is_want_of_room());
            let Some((at, mut lease)) = pool.quotas.reserve(&contenders, tried, estimate, only_want_of_room)
            else {
                break;
            };
            if !lease.is_confirmed().await {
                full.push(at);
                continue;
            }
            let candidate = &candidates[at];
            let unheard = Unheard { admission, candidate, request: &request };
            let sent = pool.upstream.send(&candidate.target, &candidate.id.model, &request).await;
            unheard.heard();
            let failure = match sent {
                Ok(sent) => {
                    lease.answered(sent.stated);
                    let settling = Settling {
                        lease,
                        meter: admission.meter().clone(),
                        model: candidate.id.model.to_string(),
                    };
                    return Ok(reply(candidate, sent.request_id, sent.body, settling));
                }
                Err(failure) => failure,
            };
            let consequence = lease.failed(&failure);
            log(candidate, &failure);
            if let Failure::Status { status: 400, message, code, param, .. } = failure {
                return Err(outcome::rejected(message, code, param));
            }
            failures.push((at, consequence));
        }
        let not_offered = |at: usize| {
            failures
                .iter()
                .any(|(failed, why)| why.not_offered() && failed_too(candidates, *failed, *why, at))
        };
        if (0..candidates.len()).all(not_offered) {
            return Err(outcome::not_offered(asked, request.operation()));
        }
        let (reason, error) = if failures.iter().all(|(_, consequence)| consequence.is_want_of_room()) {
            let mut obstacles = pool.quotas.obstacles(&contenders, estimate);
            for at in full {
                if obstacles[at] == Obstacle::Gone {
                    obstacles[at] = Obstacle::Elsewhere;
                }
            }
            let error = outcome::no_room(candidates.iter().map(|c| &**c).zip(obstacles), pool.clock.now());
            (UnservedReason::NoRoom, error)
        } else {
            let failed = failures.iter().map(|(at, consequence)| (&*candidates[*at], *consequence));
            (UnservedReason::Failed, outcome::all_failed(failed))
        };
        Err(self.unserved(asked, reason, failures.len(), error))
    }

    /// Requests that no candidate could serve since the process started, by name and reason.
    pub fn unserved_totals(&self) -> Vec<(String, UnservedReason, u64)> {
        self.0.unservable.totals()
    }

    /// Whether a model can be asked for by this name.
    pub fn knows(&self, asked: &str) -> bool {
        self.catalog().resolve(asked).is_some()
    }

    /// What can be asked for, in the file's order: aliases and `PLATFORM/MODEL`.
    pub fn models(&self) -> Vec<ModelRow> {
        self.catalog().models().to_vec()
    }

    /// The rows of `GET /api/admin/providers`.
    pub fn status(&self) -> Vec<ProviderRow> {
        self.details().into_iter().map(|detail| detail.row).collect()
    }

    /// The same with what the page shows beside it.
    pub fn details(&self) -> Vec<ProviderDetail> {
        let catalog = self.catalog();
        let detail = |candidate: &Arc<Candidate>| {
            self.0.quotas.status(&candidate.id).map(|standing| ProviderDetail::new(candidate, &standing))
        };
        catalog.candidates.iter().filter_map(detail).collect()
    }

    /// The counts themselves.
    pub fn quotas(&self) -> &Quotas {
        &self.0.quotas
    }

    /// What came of a candidate's last test.
    pub fn tested(&self, id: &CandidateId) -> Option<Tested> {
        self.0.tested.lock().get(id).cloned()
    }

    pub(super) fn set_tested(&self, id: &CandidateId, tested: Tested) {
        self.0.tested.lock().insert(id.clone(), tested);
    }

    pub(super) fn catalog(&self) -> Arc<Catalog> {
        self.0.catalog.read().clone()
    }

    pub(super) fn store(&self) -> &Store {
        &self.0.store
    }

    pub(super) fn clock(&self) -> &SharedClock {
        &self.0.clock
    }

    pub(super) fn secret(&self) -> &SecretKey {
        &self.0.secret
    }

    pub(super) fn config(&self) -> &PoolConfig {
        &self.0.config
    }

    pub(super) fn upstream(&self) -> &dyn Upstream {
        &*self.0.upstream
    }

    pub(super) fn unservable(&self) -> &Unservable {
        &self.0.unservable
    }

    /// Counts a request that came to nothing, and says so in the log.
    fn unserved(&self, asked: &str, reason: UnservedReason, attempts: usize, error: CallError) -> CallError {
        self.0.unservable.count(self.0.clock.now(), asked, reason, &error);
        tracing::warn!(asked, reason = reason.as_str(), attempts, error = ?error, "no model provider served the request");
        error
    }

    async fn load(&self) -> Result<(), LoadError> {
        let pool = &*self.0;
        let _one_at_a_time = pool.reloading.lock().await;
        let new = Catalog::load(&pool.store, &pool.secret, &pool.config).await?;
        let old = self.catalog();
        pool.quotas.install(new.candidates.iter().map(|c| (&c.id, c.limits, c.cap)));
        for candidate in &new.candidates {
            let changed = |was: &Arc<Candidate>| {
                was.id.platform == candidate.id.platform
                    && was.id.key == candidate.id.key
                    && was.target != candidate.target
            };
            if old.candidates.iter().any(changed) {
                pool.quotas.clear_key(&candidate.id.platform, &candidate.id.key);
                pool.tested.lock().retain(|id, _| id.key != candidate.id.key);
            }
        }
        for (id, clears) in &new.clears {
            if *clears > old.clears.get(id).copied().unwrap_or(0) {
                pool.quotas.clear(id);
            }
        }
        let kept = |id: &CandidateId| new.candidates.iter().any(|candidate| candidate.id == *id);
        pool.tested.lock().retain(|id, _| kept(id));
        *pool.catalog.write() = Arc::new(new);
        Ok(())
    }

    /// Reads the candidates anew if they changed.
    async fn refresh(&self) -> Result<(), LoadError> {
        if catalog::version(&self.0.store).await? == self.catalog().version {
            Ok(())
        } else {
            self.load().await
        }
    }

    async fn watch(&self) {
        let mut ticks = every(POLL_EVERY);
        // Said once, not twice a second, until something changes.
        let mut complained: Option<String> = None;
        loop {
            ticks.tick().await;
            let loaded = self.refresh().await;
            let complaint = loaded.err().map(|error| error.to_string());
            if let Some(error) = complaint.as_ref().filter(|_| complaint != complained) {
                tracing::error!(%error, "the provider pool could not be brought up to date; the last one stays in use");
            }
            complained = complaint;
        }
    }

    async fn follow(&self) {
        let mut ticks = every(FOLLOW_EVERY);
        let mut complained = false;
        loop {
            ticks.tick().await;
            let followed = self.count_others().await;
            if let Some(error) = followed.as_ref().err().filter(|_| !complained) {
                tracing::warn!(%error, "what other replicas use of the provider keys can't be read; trying again");
            }
            complained = followed.is_err();
        }
    }

    /// Counts what other replicas have written since the last time.
    async fn count_others(&self) -> Result<(), sqlx::Error> {
        let pool = &*self.0;
        let mut followed = pool.followed.lock().await;
        history::follow(&pool.store, &pool.quotas, &pool.replica, &mut followed).await
    }

    async fn prune(&self) {
        let mut ticks = every(PRUNE_EVERY);
        loop {
            ticks.tick().await;
            loop {
                match history::prune(&self.0.store, self.0.clock.now()).await {
                    Ok(true) => tokio::time::sleep(PRUNE_PAUSE).await,
                    Ok(false) => break,
                    Err(error) => {
                        tracing::warn!(%error, "old rows of rate_limit_usage could not be removed; trying again later");
                        break;
                    }
                }
            }
        }
    }
}

fn reply(
    candidate: &Candidate,
    request_id: Option<HeaderValue>,
    body: SentBody,
    settling: Settling,
) -> Reply {
    let answer = match body {
        SentBody::Whole { completion, text, step } => {
            settling.settle(step);
            Answer::Whole { completion, text, step }
        }
        SentBody::Stream { events, so_far } => {
            Answer::Stream(Box::pin(Metered { events, so_far, settling: Some(settling) }))
        }
    };
    let (platform, model) = (candidate.id.platform.to_string(), candidate.id.model.to_string());
    Reply { platform, model, request_id, answer }
}

/// Whether what failed on one candidate is no use to try on another: the same one, or, where the provider doesn't
/// have the call, the same model under another key.
fn failed_too(candidates: &[Arc<Candidate>], failed: usize, why: Consequence, at: usize) -> bool {
    let (failed_id, id) = (&candidates[failed].id, &candidates[at].id);
    failed == at || (why.not_offered() && failed_id.platform == id.platform && failed_id.model == id.model)
}

/// A call that the provider has and hasn't answered yet. Given up (its caller left, and it was not read on or took
/// too long), it is charged its input, estimated: the provider will have worked on it.
struct Unheard<'c> {
    admission: &'c Admission,
    candidate: &'c Candidate,
    request: &'c ModelRequest,
}

impl Unheard<'_> {
    fn heard(self) {
        std::mem::forget(self);
    }
}

impl Drop for Unheard<'_> {
    fn drop(&mut self) {
        let usage = Usage { input_tokens: estimate::input(self.request), output_tokens: 0 };
        self.admission.meter().add(&self.candidate.id.model, StepUsage::estimated(usage));
    }
}

/// The provider's own words stay out of the log: they may quote the prompt.
fn log(candidate: &Candidate, failure: &Failure) {
    let (status, code) = match failure {
        Failure::Status { status, code, .. } => (Some(*status), code.as_deref()),
        _ => (None, None),
    };
    let what = match failure {
        Failure::Status { .. } => "answered with an error",
        Failure::Timeout => "did not answer in time",
        Failure::Connection => "could not be reached",
        Failure::NotOffered => "does not offer the call",
        Failure::Garbled(how) => how,
    };
    tracing::warn!(
        platform = %candidate.id.platform, model = %candidate.id.model, key_id = %candidate.id.key,
        status, code, what, "a model provider failed"
    );
}

fn every(period: Duration) -> tokio::time::Interval {
    let mut ticks = tokio::time::interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

#[cfg(test)]
mod tests;
