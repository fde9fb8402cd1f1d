//! A stream whose usage is entered exactly once, however it ends.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures::Stream;

use super::quotas::Lease;
use super::{Event, Events};
use crate::ledger::{Meter, StepUsage};

/// What remains to be done when an answered call ends.
pub(super) struct Settling {
    pub lease: Lease,
    pub meter: Meter,
    pub model: String,
}

impl Settling {
    /// Enters the usage in the request's meter and the key's windows.
    pub(super) fn settle(self, step: StepUsage) {
        self.lease.settle(&step, &self.meter);
        self.meter.add(&self.model, step);
    }
}

/// Settles before its last event is handed out, or when it is dropped.
pub(super) struct Metered {
    pub events: Events,
    pub so_far: Box<dyn Fn() -> StepUsage + Send + Sync>,
    /// None once settled.
    pub settling: Option<Settling>,
}

impl Metered {
    fn settle(&mut self, step: impl FnOnce(&Self) -> StepUsage) {
        if let Some(settling) = self.settling.take() {
            settling.settle(step(self));
        }
    }
}

impl Stream for Metered {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        let polled = self.events.as_mut().poll_next(cx);
        match &polled {
            Poll::Ready(Some(Event::End(step) | Event::Cut { step, .. })) => self.settle(|_| *step),
            Poll::Ready(None) => self.settle(|stream| (stream.so_far)()),
            Poll::Ready(Some(Event::Piece(_))) | Poll::Pending => {}
        }
        polled
    }
}

impl Drop for Metered {
    fn drop(&mut self) {
        self.settle(|stream| (stream.so_far)());
    }
}
