//! The jobs to wake when a stream has something new: those that bring its messages to other streams.
//!
//! They are kept by the name of the origin, whether it is there or not, so that a stream that appears is followed from its first message on. Where a
//! stream keeps messages only until they are taken, the slowest of its followers says when that is.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;

use ahash::AHashMap;
use parking_lot::Mutex;

use crate::storage::commit::work_pool::Job;

struct Follower {
    job: Arc<Job>,
    /// Everything up to this sequence is stored where the follower brings it.
    taken: u64,
}

/// Those who follow one name.
#[derive(Default)]
pub struct Followers {
    /// So that a commit of a stream that nobody follows costs nothing more.
    count: AtomicUsize,
    followers: Mutex<Vec<Follower>>,
    /// How far all of them were at the last call of `took`. Changes under the lock of the followers.
    all_took: AtomicU64,
}

impl Followers {
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// The stream has something new, or is there, or is gone.
    pub fn schedule(&self) {
        if self.is_empty() {
            return;
        }
        for follower in &*self.followers.lock() {
            follower.job.schedule();
        }
    }

    pub fn add(&self, job: &Arc<Job>) {
        let mut followers = self.followers.lock();
        let mut jobs = followers.iter().map(|follower| &follower.job);
        if !jobs.any(|other| Arc::ptr_eq(other, job)) {
            followers.push(Follower {
                job: Arc::clone(job),
                taken: 0,
            });
            self.all_took.store(0, Ordering::Relaxed);
        }
        self.count.store(followers.len(), Ordering::Release);
    }

    pub fn remove(&self, job: &Arc<Job>) {
        let mut followers = self.followers.lock();
        followers.retain(|follower| !Arc::ptr_eq(&follower.job, job));
        self.count.store(followers.len(), Ordering::Release);
    }

    /// Whether a follower has not stored a message yet.
    pub fn need(&self, sequence: u64) -> bool {
        !self.is_empty()
            && self
                .followers
                .lock()
                .iter()
                .any(|follower| follower.taken < sequence)
    }

    /// A follower has stored everything up to a sequence; returns up to which one all had when this was called before, and up to which one they have now.
    pub fn took(&self, job: &Arc<Job>, sequence: u64) -> (u64, u64) {
        let mut followers = self.followers.lock();
        for follower in &mut *followers {
            if Arc::ptr_eq(&follower.job, job) {
                follower.taken = sequence;
            }
        }
        let taken = followers.iter().map(|follower| follower.taken);
        let taken = taken.min().unwrap_or(0);
        (self.all_took.swap(taken, Ordering::Relaxed), taken)
    }
}

/// The followers of all names of one account.
#[derive(Default)]
pub struct FollowersByName {
    by_name: Mutex<AHashMap<String, Arc<Followers>>>,
}

impl FollowersByName {
    pub fn of(&self, name: &str) -> Arc<Followers> {
        let mut by_name = self.by_name.lock();
        if let Some(followers) = by_name.get(name) {
            return Arc::clone(followers);
        }
        // Names that nobody uses any more are forgotten, now and then.
        if by_name.len() == by_name.capacity() {
            by_name.retain(|_, followers| Arc::strong_count(followers) > 1);
        }
        let followers = Arc::<Followers>::default();
        by_name.insert(name.to_owned(), Arc::clone(&followers));
        followers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::commit::work_pool::WorkPool;

    #[test]
    fn the_slowest_follower_says_what_all_have() {
        let pool = WorkPool::new(&Arc::default());
        let (one, other) = (pool.job(|| {}), pool.job(|| {}));
        let by_name = FollowersByName::default();
        let followers = by_name.of("O");
        followers.add(&one);
        followers.add(&other);
        followers.add(&one);

        assert!(Arc::ptr_eq(&followers, &by_name.of("O")));
        assert_eq!(followers.took(&one, 7), (0, 0));
        assert_eq!(followers.took(&other, 3), (0, 3));
        assert_eq!(followers.took(&other, 5), (3, 5));
        followers.remove(&other);
        assert_eq!(followers.took(&one, 8), (5, 8));
        // A follower that returns has nothing, and starts from the beginning.
        followers.add(&other);
        assert_eq!(followers.took(&other, 8), (0, 8));
        followers.remove(&other);
        followers.remove(&one);
        assert!(followers.is_empty());
    }
}
