//! Guessing passwords is slow: so many failures an account and an address, then a wait.
//!
//! Counted in this process's memory, with a bounded number of keys. Attempts under way count as
//! failures to be: those that would pass a limit wait for their outcome, so that many at once get
//! no more tries than one after the other.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::clock::SharedClock;
use crate::model::{Error, Timestamp};

const WINDOW_MS: i64 = 15 * 60_000;
const FAILURES_AN_ACCOUNT: usize = 10;
const FAILURES_AN_ADDRESS: usize = 50;
/// Accounts, and addresses, that are remembered.
const REMEMBERED: usize = 10_000;

pub(super) struct Throttle {
    clock: SharedClock,
    counts: Mutex<Counts>,
    settled: Notify,
}

struct Counts {
    accounts: Counters<String>,
    addresses: Counters<IpAddr>,
}

/// An attempt at signing in that was let through. Dropped without a word (the client hung up, the
/// database failed) it counts for nothing: nothing was learnt by it.
pub(super) struct Attempt {
    throttle: Arc<Throttle>,
    account: String,
    address: Option<IpAddr>,
}

impl Throttle {
    pub(super) fn new(clock: SharedClock) -> Self {
        let counts = Counts {
            accounts: Counters { limit: FAILURES_AN_ACCOUNT, by_key: HashMap::new() },
            addresses: Counters { limit: FAILURES_AN_ADDRESS, by_key: HashMap::new() },
        };
        Throttle { clock, counts: Mutex::new(counts), settled: Notify::new() }
    }

    /// # Errors
    /// Throttled, until the oldest failure is forgotten.
    pub(super) async fn begin(
        self: &Arc<Self>,
        account: &str,
        address: Option<IpAddr>,
    ) -> Result<Attempt, Error> {
        let address = address.map(network);
        loop {
            let settled = self.settled.notified();
            if let Some(attempt) = self.try_begin(account, address)? {
                return Ok(attempt);
            }
            settled.await;
        }
    }

    fn try_begin(self: &Arc<Self>, account: &str, address: Option<IpAddr>) -> Result<Option<Attempt>, Error> {
        let now = self.clock.now();
        let mut counts = self.counts.lock();
        let by_account = counts.accounts.verdict(&account.to_owned(), now);
        let by_address = address.map_or(Verdict::Go, |address| counts.addresses.verdict(&address, now));
        match (by_account, by_address) {
            (Verdict::Refuse(one), Verdict::Refuse(other)) => Err(throttled(one.max(other), now)),
            (Verdict::Refuse(until), _) | (_, Verdict::Refuse(until)) => Err(throttled(until, now)),
            (Verdict::Go, Verdict::Go) => {
                counts.accounts.entry(account.to_owned(), now).pending += 1;
                if let Some(address) = address {
                    counts.addresses.entry(address, now).pending += 1;
                }
                Ok(Some(Attempt { throttle: self.clone(), account: account.to_owned(), address }))
            }
            _ => Ok(None),
        }
    }
}

impl Attempt {
    pub(super) fn failed(self) {
        let now = self.throttle.clock.now();
        let mut counts = self.throttle.counts.lock();
        counts.accounts.entry(self.account.clone(), now).failures.push_back(now);
        if let Some(address) = self.address {
            counts.addresses.entry(address, now).failures.push_back(now);
        }
    }

    /// Forgets the account's failures, but not the address's: one's own password doesn't buy tries
    /// at those of others.
    pub(super) fn succeeded(self) {
        if let Some(counter) = self.throttle.counts.lock().accounts.by_key.get_mut(&self.account) {
            counter.failures.clear();
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let mut counts = self.throttle.counts.lock();
        counts.accounts.release(&self.account);
        if let Some(address) = &self.address {
            counts.addresses.release(address);
        }
        drop(counts);
        self.throttle.settled.notify_waiters();
    }
}

fn throttled(until: Timestamp, now: Timestamp) -> Error {
    let retry_after_s = until.ms_since(now).div_ceil(1000).max(1);
    let minutes = retry_after_s.div_ceil(60);
    let unit = if minutes == 1 { "minute" } else { "minutes" };
    Error::Throttled {
        message: format!("too many failed sign-ins; try again in {minutes} {unit}"),
        retry_after_s,
    }
}

struct Counters<K> {
    limit: usize,
    by_key: HashMap<K, Counter>,
}

#[derive(Default)]
struct Counter {
    /// Oldest first.
    failures: VecDeque<Timestamp>,
    pending: usize,
}

enum Verdict {
    Go,
    /// Those under way decide.
    Wait,
    Refuse(Timestamp),
}

impl Counter {
    fn forget_old(&mut self, now: Timestamp) {
        while self.failures.front().is_some_and(|at| at.plus_ms(WINDOW_MS) <= now) {
            self.failures.pop_front();
        }
    }

    fn is_idle(&self) -> bool {
        self.pending == 0 && self.failures.is_empty()
    }
}

impl<K: Hash + Eq + Clone> Counters<K> {
    fn verdict(&mut self, key: &K, now: Timestamp) -> Verdict {
        let limit = self.limit;
        let Some(counter) = self.by_key.get_mut(key) else {
            return Verdict::Go;
        };
        counter.forget_old(now);
        let failed = counter.failures.len();
        match failed.checked_sub(limit).and_then(|over| counter.failures.get(over)) {
            Some(oldest) => Verdict::Refuse(oldest.plus_ms(WINDOW_MS)),
            None if failed + counter.pending >= limit => Verdict::Wait,
            None => Verdict::Go,
        }
    }

    fn entry(&mut self, key: K, now: Timestamp) -> &mut Counter {
        if self.by_key.len() >= REMEMBERED && !self.by_key.contains_key(&key) {
            self.make_room(now);
        }
        self.by_key.entry(key).or_default()
    }

    /// Forgets what is past; where that isn't enough, the key with the fewest failures, so that a
    /// flood of made-up accounts doesn't wash away the one that is being guessed at.
    fn make_room(&mut self, now: Timestamp) {
        self.by_key.retain(|_, counter| {
            counter.forget_old(now);
            !counter.is_idle()
        });
        if self.by_key.len() >= REMEMBERED {
            let idle = self.by_key.iter().filter(|(_, counter)| counter.pending == 0);
            let least =
                idle.min_by_key(|(_, counter)| (counter.failures.len(), counter.failures.back().copied()));
            if let Some(key) = least.map(|(key, _)| key.clone()) {
                self.by_key.remove(&key);
            }
        }
    }

    fn release(&mut self, key: &K) {
        if let Some(counter) = self.by_key.get_mut(key) {
            counter.pending = counter.pending.saturating_sub(1);
            if counter.is_idle() {
                self.by_key.remove(key);
            }
        }
    }
}

/// What one subscriber has: an IPv4 address, or the /64 that an IPv6 address is in.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX))),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    fn throttle() -> (Arc<ManualClock>, Arc<Throttle>) {
        let clock = ManualClock::new(Timestamp(1_000_000));
        (clock.clone(), Arc::new(Throttle::new(clock)))
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    async fn fail(throttle: &Arc<Throttle>, account: &str, address: &str) -> Result<(), Error> {
        throttle.begin(account, Some(ip(address))).await.map(Attempt::failed)
    }

    #[tokio::test]
    async fn an_account_has_ten_tries_in_any_quarter_of_an_hour() {
        let (clock, throttle) = throttle();
        for n in 0..10 {
            fail(&throttle, "ada", &format!("10.0.0.{n}")).await.unwrap();
            clock.advance_ms(1_000);
        }
        let refused = fail(&throttle, "ada", "10.9.9.9").await.unwrap_err();
        assert_eq!((refused.status(), refused.retry_after_s()), (429, Some(15 * 60 - 10)));
        fail(&throttle, "eve", "10.9.9.9").await.unwrap();
        clock.advance_ms(WINDOW_MS - 10_001);
        assert_eq!(fail(&throttle, "ada", "10.9.9.9").await.unwrap_err().retry_after_s(), Some(1));
        clock.advance_ms(1);
        fail(&throttle, "ada", "10.9.9.9").await.unwrap();
        assert!(
            fail(&throttle, "ada", "10.9.9.9").await.is_err(),
            "one was forgotten, one more is one too many"
        );
    }

    #[tokio::test]
    async fn an_address_has_fifty_and_an_ipv6_network_counts_as_one() {
        let (_, throttle) = throttle();
        for n in 0..50 {
            fail(&throttle, &format!("user{n}"), &format!("2001:db8:0:1::{n:x}")).await.unwrap();
        }
        assert!(fail(&throttle, "another", "2001:db8:0:1:ffff::1").await.is_err());
        fail(&throttle, "another", "2001:db8:0:2::1").await.unwrap();
    }

    #[tokio::test]
    async fn success_forgets_the_accounts_failures() {
        let (_, throttle) = throttle();
        for _ in 0..9 {
            fail(&throttle, "ada", "10.0.0.1").await.unwrap();
        }
        throttle.begin("ada", None).await.unwrap().succeeded();
        for _ in 0..10 {
            fail(&throttle, "ada", "10.0.0.1").await.unwrap();
        }
        assert!(fail(&throttle, "ada", "10.0.0.1").await.is_err());
    }

    #[tokio::test]
    async fn attempts_at_once_get_no_more_tries_and_wait_rather_than_fail() {
        let (_, throttle) = throttle();
        let mut under_way = Vec::new();
        for _ in 0..10 {
            under_way.push(throttle.begin("ada", None).await.unwrap());
        }
        let eleventh = tokio::spawn({
            let throttle = throttle.clone();
            async move { throttle.begin("ada", None).await.map(Attempt::succeeded) }
        });
        tokio::task::yield_now().await;
        assert!(!eleventh.is_finished());
        under_way.pop().unwrap().succeeded();
        eleventh.await.unwrap().unwrap();
        let last = throttle.begin("ada", None).await.unwrap();
        under_way.into_iter().for_each(Attempt::failed);
        last.failed();
        assert!(throttle.begin("ada", None).await.is_err());
    }

    #[tokio::test]
    async fn what_is_remembered_is_bounded_and_the_guessed_account_is_kept() {
        let (_, throttle) = throttle();
        for _ in 0..10 {
            throttle.begin("ada", None).await.unwrap().failed();
        }
        for n in 0..REMEMBERED + 100 {
            throttle.begin(&format!("made-up-{n}"), None).await.unwrap().failed();
        }
        assert_eq!(throttle.counts.lock().accounts.by_key.len(), REMEMBERED);
        assert!(throttle.begin("ada", None).await.is_err());
        drop(throttle.begin("eve", None).await.unwrap());
        assert!(
            !throttle.counts.lock().accounts.by_key.contains_key("eve"),
            "an outcome unknown counts for nothing"
        );
    }
}
