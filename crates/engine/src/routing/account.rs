//! An account: a subject space of its own, shut off from every other.
//!
//! Invariant: `generation` grows after every change of the tree, so routes found at one generation are right as long as it stands.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use parking_lot::RwLock;

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
}

impl Account {
    pub fn new(name: &str, index: usize) -> Self {
        Self {
            name: name.to_owned(),
            index,
            tree: RwLock::default(),
            generation: AtomicU64::new(0),
        }
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
        (self.tree.read().find(subject), generation)
    }

    pub fn subscription_count(&self) -> usize {
        self.tree.read().count()
    }
}
