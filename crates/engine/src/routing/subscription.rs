//! One subscription: who wants what, and how many deliveries it has had.
//!
//! Invariant: once `ended` is set nothing is delivered to it any more; it is set before the subscription leaves the tree, because routes
//! that were found earlier may still name it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use crate::connection::Connection;

pub struct Subscription {
    pub connection: Arc<Connection>,
    pub subject: Box<[u8]>,
    pub queue: Option<Box<[u8]>>,
    pub sid: Box<[u8]>,
    delivered: AtomicU64,
    /// Deliveries after which it ends by itself; 0 is never.
    delivered_max: AtomicU64,
    ended: AtomicBool,
}

/// What became of an attempt to count one more delivery.
#[derive(Debug, PartialEq, Eq)]
pub enum Admission {
    Deliver,
    /// Deliver this one, then remove the subscription: it was the last.
    DeliverLast,
    Ended,
}

impl Subscription {
    pub fn new(
        connection: Arc<Connection>,
        subject: &[u8],
        queue: Option<&[u8]>,
        sid: &[u8],
    ) -> Self {
        Self {
            connection,
            subject: subject.into(),
            queue: queue.map(Into::into),
            sid: sid.into(),
            delivered: AtomicU64::new(0),
            delivered_max: AtomicU64::new(0),
            ended: AtomicBool::new(false),
        }
    }

    /// Counts one delivery, if the subscription still takes one.
    #[inline]
    pub fn admit(&self) -> Admission {
        if self.ended.load(Ordering::Acquire) {
            return Admission::Ended;
        }
        let delivered = self.delivered.fetch_add(1, Ordering::Relaxed) + 1;
        let max = self.delivered_max.load(Ordering::Relaxed);
        if max == 0 || delivered < max {
            return Admission::Deliver;
        }
        if delivered == max {
            self.end();
            return Admission::DeliverLast;
        }
        Admission::Ended
    }

    /// Sets the number of deliveries after which it ends. Returns true when that many were made already.
    pub fn limit(&self, delivered_max: u64) -> bool {
        self.delivered_max.store(delivered_max, Ordering::Relaxed);
        self.delivered.load(Ordering::Relaxed) >= delivered_max
    }

    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    pub fn delivered(&self) -> u64 {
        self.delivered.load(Ordering::Relaxed)
    }

    pub fn delivered_max(&self) -> u64 {
        self.delivered_max.load(Ordering::Relaxed)
    }
}
