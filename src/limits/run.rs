//! The one way of a model request: admitted, run in a task that outlives it, settled, answered.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot};

use super::{Admission, Limiter, Who};
use crate::model::{Error, LimitState, Route};

/// How long an answer is read on for the ledger when its caller has left.
const READ_ON: Duration = Duration::from_mins(1);
/// Answers that are read on at once. Each holds a connection to a provider. The one too many ends as soon as its
/// caller leaves, and what had come by then is charged.
pub(super) const READ_ON_AT_ONCE: usize = 256;
/// Pieces that wait for a slow reader; then the provider waits too.
const PIECES: usize = 32;

/// What came of an admitted request.
pub struct Outcome<T> {
    /// Both limits with this request admitted: every answer of a model route tells them.
    pub state: LimitState,
    pub result: Result<T, Error>,
}

/// An answer in pieces. An error is the last of them: the answer broke off.
pub struct Pieces<P> {
    pub first: P,
    pub rest: mpsc::Receiver<Result<P, Error>>,
}

/// Where work puts its pieces as they come. A caller that has left is no fault: the pieces go nowhere.
pub struct Sink<P>(mpsc::Sender<Result<P, Error>>);

impl<P> Sink<P> {
    pub async fn send(&self, piece: P) {
        let _ = self.0.send(Ok(piece)).await;
    }

    pub fn caller_left(&self) -> bool {
        self.0.is_closed()
    }
}

impl Limiter {
    /// Runs a request that answers whole. Its usage is committed before this returns.
    ///
    /// # Errors
    /// When it is not admitted.
    pub async fn run<T, W>(
        &self,
        who: Who,
        route: Route,
        estimate: u64,
        work: impl FnOnce(Arc<Admission>) -> W,
    ) -> Result<Outcome<T>, Error>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let admission = Arc::new(self.admit(who, route, estimate).await?);
        let state = *admission.state();
        let work = work(admission.clone());
        let (mut answer, answered) = oneshot::channel();
        let reading_on = self.reading_on();
        self.ledger().outlive(async move {
            let result = tokio::select! {
                result = work => result,
                () = left(answer.closed(), &reading_on) => Err(nobody_listens()),
            };
            let result = finish(&admission, result).await;
            // Fails when the caller has left.
            let _ = answer.send(result);
        });
        let result = answered.await.unwrap_or(Err(Error::Internal));
        Ok(Outcome { state, result })
    }

    /// Runs a request that answers in pieces. `work` sends them as they come and returns the last,
    /// which is sent once the usage is committed. A failure before the first piece is the outcome's error.
    ///
    /// # Errors
    /// When it is not admitted.
    pub async fn run_in_pieces<P, W>(
        &self,
        who: Who,
        route: Route,
        estimate: u64,
        work: impl FnOnce(Arc<Admission>, Sink<P>) -> W,
    ) -> Result<Outcome<Pieces<P>>, Error>
    where
        P: Send + 'static,
        W: Future<Output = Result<P, Error>> + Send + 'static,
    {
        let admission = Arc::new(self.admit(who, route, estimate).await?);
        let state = *admission.state();
        let (pieces, mut rest) = mpsc::channel(PIECES);
        let work = work(admission.clone(), Sink(pieces.clone()));
        let reading_on = self.reading_on();
        self.ledger().outlive(async move {
            let result = tokio::select! {
                result = work => result,
                () = left(pieces.closed(), &reading_on) => Err(nobody_listens()),
            };
            // Fails when the caller has left.
            let _ = pieces.send(finish(&admission, result).await).await;
        });
        let result = match rest.recv().await {
            Some(Ok(first)) => Ok(Pieces { first, rest }),
            Some(Err(error)) => Err(error),
            None => Err(Error::Internal),
        };
        Ok(Outcome { state, result })
    }
}

/// Settles, or gives the rate token back where no provider had room or there was none to ask.
async fn finish<T>(admission: &Admission, result: Result<T, Error>) -> Result<T, Error> {
    match result {
        Err(error @ (Error::NoRoom { .. } | Error::NotFound(_))) if admission.meter().is_empty() => {
            admission.give_back().await;
            Err(error)
        }
        result => admission.settle().await.and(result),
    }
}

/// Ends some time after the caller has left, or at once where too many answers are being read on.
async fn left(closed: impl Future<Output = ()>, reading_on: &Semaphore) {
    closed.await;
    if let Ok(_place) = reading_on.try_acquire() {
        tokio::time::sleep(READ_ON).await;
    }
}

fn nobody_listens() -> Error {
    Error::Unavailable("the caller left and the answer did not end in time".into())
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_so_many_answers_are_read_on() {
        let places = Semaphore::new(1);
        let waited = async || {
            let begun = Instant::now();
            left(std::future::ready(()), &places).await;
            begun.elapsed()
        };
        let (first, second) = tokio::join!(waited(), waited());
        assert!(first >= READ_ON && second.is_zero(), "{first:?} {second:?}");
        assert!(waited().await >= READ_ON, "the place is free again");
    }
}
