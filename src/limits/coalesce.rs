//! Shared reads: those who ask while a read is under way share the next one.

use std::collections::HashMap;
use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

type Waiting<V> = Vec<oneshot::Sender<V>>;

/// What a caller gets was read after its call began, so it is never older than the caller; and
/// however many call at once, there is one read under way a key.
pub(super) struct Coalesce<K, V>(Arc<Mutex<HashMap<K, Waiting<V>>>>);

impl<K, V> Default for Coalesce<K, V> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K, V> Coalesce<K, V>
where
    K: Clone + Eq + Hash + Send + 'static,
    V: Clone + Send + 'static,
{
    /// None only when the read panicked.
    pub(super) async fn get<R>(&self, key: K, read: impl Fn() -> R + Send + 'static) -> Option<V>
    where
        R: Future<Output = V> + Send,
    {
        let (mine, answer) = oneshot::channel();
        let first = {
            let mut keys = self.0.lock();
            let waiting = keys.get_mut(&key);
            let first = waiting.is_none();
            match waiting {
                Some(waiting) => waiting.push(mine),
                None => drop(keys.insert(key.clone(), vec![mine])),
            }
            first
        };
        if first {
            let turn = Turn { keys: self.0.clone(), key };
            // A task of its own, since others depend on the read when this caller is gone.
            tokio::spawn(async move {
                while let Some(waiting) = turn.next() {
                    let value = read().await;
                    for caller in waiting {
                        let _ = caller.send(value.clone());
                    }
                }
            });
        }
        answer.await.ok()
    }
}

/// The right to read for a key; ends it when dropped, so that a panic doesn't block the key.
struct Turn<K: Eq + Hash, V> {
    keys: Arc<Mutex<HashMap<K, Waiting<V>>>>,
    key: K,
}

impl<K: Eq + Hash, V> Turn<K, V> {
    /// Those who wait now; the key is free again when there are none.
    fn next(&self) -> Option<Waiting<V>> {
        let mut keys = self.keys.lock();
        let waiting = std::mem::take(keys.get_mut(&self.key)?);
        if waiting.is_empty() {
            keys.remove(&self.key);
            return None;
        }
        Some(waiting)
    }
}

impl<K: Eq + Hash, V> Drop for Turn<K, V> {
    fn drop(&mut self) {
        self.keys.lock().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn callers_during_a_read_share_the_next() {
        let coalesce: Arc<Coalesce<&str, u32>> = Arc::default();
        let (reads, gate, begun) =
            (Arc::new(AtomicU32::new(0)), Arc::new(Notify::new()), Arc::new(Notify::new()));
        let ask = || {
            let (coalesce, reads, gate, begun) =
                (coalesce.clone(), reads.clone(), gate.clone(), begun.clone());
            tokio::spawn(async move {
                coalesce
                    .get("k", move || {
                        let (reads, gate, begun) = (reads.clone(), gate.clone(), begun.clone());
                        async move {
                            let n = reads.fetch_add(1, Ordering::SeqCst) + 1;
                            begun.notify_one();
                            gate.notified().await;
                            n
                        }
                    })
                    .await
            })
        };
        let first = ask();
        begun.notified().await;
        let others: Vec<_> = (0..50).map(|_| ask()).collect();
        tokio::task::yield_now().await;
        gate.notify_one();
        begun.notified().await;
        gate.notify_one();
        assert_eq!(first.await.unwrap(), Some(1));
        for other in others {
            assert_eq!(other.await.unwrap(), Some(2));
        }
        assert!(coalesce.0.lock().is_empty());
    }
}
