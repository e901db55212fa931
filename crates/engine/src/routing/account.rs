//! An account: a subject space of its own, shut off from every other.
//!
//! Invariant: `generation` grows after every change of the tree, so routes found at one generation are right as long as it stands.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;

use parking_lot::RwLock;
use serde::Serialize;

use super::subscription::Subscription;
use super::tree::{Routes, SubscriptionTree};

/// The account of everybody who names none.
pub const GLOBAL_ACCOUNT: &str = "$G";

pub struct Account {
    pub name: String,
    /// Dense number, by which workers keep one route cache per account.
    pub index: usize,
    tree: RwLock<SubscriptionTree>,
    generation: AtomicU64,
    connections: AtomicUsize,
    walks: AtomicU64,
    fanout_total: AtomicU64,
    fanout_max: AtomicUsize,
}

/// How an account's subjects were looked up. Found routes are cached, so a walk of the tree is rare and may be counted.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Lookups {
    pub inserts: u64,
    pub removes: u64,
    pub walks: u64,
    pub fanout_total: u64,
    pub fanout_max: usize,
}

impl Account {
    pub fn new(name: &str, index: usize) -> Self {
        Self {
            name: name.to_owned(),
            index,
            tree: RwLock::default(),
            generation: AtomicU64::new(0),
            connections: AtomicUsize::new(0),
            walks: AtomicU64::new(0),
            fanout_total: AtomicU64::new(0),
            fanout_max: AtomicUsize::new(0),
        }
    }

    /// Counts one more client; false, and not counted, when there are as many as allowed.
    pub fn enter(&self, connections_max: Option<usize>) -> bool {
        let before = self.connections.fetch_add(1, Ordering::Relaxed);
        let fits = connections_max.is_none_or(|max| before < max);
        if !fits {
            self.leave();
        }
        fits
    }

    pub fn leave(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    pub fn connection_count(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub fn subscribe(&self, subscription: Arc<Subscription>) {
        self.tree.write().insert(subscription);
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Ends a subscription and takes it out of the tree. Calling it twice is harmless.
    pub fn unsubscribe(&self, subscription: &Arc<Subscription>) {
        subscription.end();
        if self.tree.write().remove(subscription) {
            self.generation.fetch_add(1, Ordering::Release);
        }
    }

    /// The receivers of a subject and the generation they are right for.
    pub fn find(&self, subject: &[u8]) -> (Routes, u64) {
        // Read before the walk: a change in between makes the result look old, never young.
        let generation = self.generation();
        let routes = self.tree.read().find(subject);
        let fanout = routes.plain.len() + routes.groups.len();
        self.walks.fetch_add(1, Ordering::Relaxed);
        self.fanout_total
            .fetch_add(fanout as u64, Ordering::Relaxed);
        self.fanout_max.fetch_max(fanout, Ordering::Relaxed);
        (routes, generation)
    }

    pub fn subscription_count(&self) -> usize {
        self.tree.read().count()
    }

    /// Every subscription, in no order.
    pub fn subscriptions(&self) -> Vec<Arc<Subscription>> {
        self.tree.read().all()
    }

    /// Every subscription that might get a message on this subject; of a queue group, all members.
    pub fn receivers(&self, subject: &[u8]) -> Vec<Arc<Subscription>> {
        let routes = self.tree.read().find(subject);
        let members = routes.groups.into_iter().flat_map(|group| group.members);
        routes.plain.into_iter().chain(members).collect()
    }

    pub fn lookups(&self) -> Lookups {
        let tree = self.tree.read();
        Lookups {
            inserts: tree.inserted(),
            removes: tree.inserted() - tree.count() as u64,
            walks: self.walks.load(Ordering::Relaxed),
            fanout_total: self.fanout_total.load(Ordering::Relaxed),
            fanout_max: self.fanout_max.load(Ordering::Relaxed),
        }
    }
}
