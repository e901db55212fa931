//! One subscription: who wants what, and how many deliveries it has had.
//!
//! Invariant: once `ended` is set nothing is delivered to it any more; it is set before the subscription leaves the tree, because routes
//! that were found earlier may still name it.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;

use parking_lot::Mutex;

use super::account::Account;
use super::clients::connection::Connection;
use super::imports::{PendingReply, ServiceImport, Shadow};
use super::leaf::LeafReceiver;
use super::responses::Responses;
use super::sink::Sink;
use crate::common::subject;

/// Where messages of a subscription go.
#[derive(Clone)]
pub enum Receiver {
    Connection(Arc<Connection>),
    /// A handler in Python, by the number it got when it was registered.
    Service(u64),
    /// A part of the server.
    Sink(Arc<dyn Sink>),
    /// A subscription of another account.
    Shadow(Box<Shadow>),
    /// A service of another account.
    Import(Arc<ServiceImport>),
    /// All answers that are awaited from this account; `Account::find` puts the receiver of one in its place.
    Replies,
    /// One of them.
    Reply(Arc<PendingReply>),
    /// A server behind a link.
    Leaf(Arc<LeafReceiver>),
}

/// What permissions add to a subscription.
#[derive(Default)]
pub struct Restrictions {
    /// Messages on these patterns are kept back.
    pub kept_back: Vec<Box<[u8]>>,
    /// Reply subjects of delivered messages may be answered, if the client has that permission.
    pub responses: Option<Arc<Responses>>,
}

impl Restrictions {
    /// Whether they mean the same, and answers are counted in the same place.
    pub fn is_same(&self, other: &Self) -> bool {
        let is_counted_alike = match (&self.responses, &other.responses) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        is_counted_alike && self.kept_back == other.kept_back
    }
}

/// The place of a subscription that is in no tree.
const NOWHERE: usize = usize::MAX;

pub struct Subscription {
    pub receiver: Receiver,
    pub restrictions: Restrictions,
    pub subject: Box<[u8]>,
    pub queue: Option<Box<[u8]>>,
    pub sid: Box<[u8]>,
    delivered: AtomicU64,
    /// Deliveries after which it ends by itself; 0 is never.
    delivered_max: AtomicU64,
    ended: AtomicBool,
    /// Where its tree has it among those to the same subject; only the tree changes and reads it, under its lock.
    place: AtomicUsize,
    /// What stands for it in other accounts, while it is in the tree of its own.
    shadows: Mutex<Vec<(Arc<Account>, Arc<Subscription>)>>,
}

/// What became of an attempt to count one more delivery.
#[derive(Debug, PartialEq, Eq)]
pub enum DeliveryAdmission {
    Deliver,
    /// Deliver this one, then remove the subscription: it was the last.
    DeliverLast,
    Ended,
}

impl Subscription {
    pub fn new(
        receiver: Receiver,
        subject: &[u8],
        queue: Option<&[u8]>,
        sid: &[u8],
        restrictions: Restrictions,
    ) -> Self {
        Self {
            receiver,
            restrictions,
            subject: subject.into(),
            queue: queue.map(Into::into),
            sid: sid.into(),
            delivered: AtomicU64::new(0),
            delivered_max: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            place: AtomicUsize::new(NOWHERE),
            shadows: Mutex::default(),
        }
    }

    /// Notes what stands for it in another account.
    pub fn add_shadow(&self, exporter: &Arc<Account>, shadow: Arc<Subscription>) {
        self.shadows.lock().push((Arc::clone(exporter), shadow));
    }

    pub fn take_shadows(&self) -> Vec<(Arc<Account>, Arc<Subscription>)> {
        std::mem::take(&mut self.shadows.lock())
    }

    /// The same subscription under other restrictions, with its count of deliveries.
    pub fn renewed(&self, restrictions: Restrictions) -> Self {
        let renewed = Self::new(
            self.receiver.clone(),
            &self.subject,
            self.queue.as_deref(),
            &self.sid,
            restrictions,
        );
        renewed.delivered.store(self.delivered(), Ordering::Relaxed);
        renewed
            .delivered_max
            .store(self.delivered_max(), Ordering::Relaxed);
        renewed
    }

    /// Whether this is a subscription of that connection.
    pub fn belongs_to(&self, connection_id: u64) -> bool {
        matches!(&self.receiver, Receiver::Connection(connection) if connection.id == connection_id)
    }

    /// Whether its client may see a message on this concrete subject.
    pub fn may_see(&self, subject: &[u8]) -> bool {
        if let Receiver::Leaf(receiver) = &self.receiver {
            return receiver.link.may_send(subject);
        }
        !self
            .restrictions
            .kept_back
            .iter()
            .any(|pattern| subject::matches(pattern, subject))
    }

    /// Whether its receiver is a server behind a link.
    pub fn is_linked(&self) -> bool {
        matches!(self.receiver, Receiver::Leaf(_))
    }

    /// Counts one delivery, if the subscription still takes one.
    #[inline]
    pub fn admit(&self) -> DeliveryAdmission {
        if self.ended.load(Ordering::Acquire) {
            return DeliveryAdmission::Ended;
        }
        let delivered = self.delivered.fetch_add(1, Ordering::Relaxed) + 1;
        let max = self.delivered_max.load(Ordering::Relaxed);
        if max == 0 || delivered < max {
            return DeliveryAdmission::Deliver;
        }
        if delivered == max {
            self.end();
            return DeliveryAdmission::DeliverLast;
        }
        DeliveryAdmission::Ended
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

    /// Notes where a list has it from now on. A subscription is in one list at a time.
    pub(super) fn put_at(&self, place: usize) {
        self.place.store(place, Ordering::Relaxed);
    }

    /// Notes that no list has it.
    pub(super) fn take_out(&self) {
        self.put_at(NOWHERE);
    }

    /// Where a list has it; none if no list does.
    pub(super) fn place(&self) -> Option<usize> {
        let place = self.place.load(Ordering::Relaxed);
        (place != NOWHERE).then_some(place)
    }

    pub fn delivered(&self) -> u64 {
        self.delivered.load(Ordering::Relaxed)
    }

    pub fn delivered_max(&self) -> u64 {
        self.delivered_max.load(Ordering::Relaxed)
    }
}
