//! Those who bring the messages of a stream to others: the jobs to wake when it has something new, and how far each has come.
//!
//! They are kept by the name of the origin, whether it is there or not, so that a stream that appears is followed from its first message on. One job may
//! follow a stream by several origins, as each source of its stream goes on by itself: a follower is a job and an origin. Where a stream keeps messages
//! only until they are taken, each message waits for those who take its subject. Invariant: `count` is that of the followers, so a stream that nobody follows asks nothing more.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use ahash::AHashMap;
use parking_lot::Mutex;

use super::origin::Origin;
use crate::storage::commit::work_pool::Job;

struct Follower {
    /// None of a stream on disk that is not served: it has taken nothing.
    job: Option<Arc<Job>>,
    origin: Arc<Origin>,
    /// Everything up to this sequence that the origin takes is stored where the follower brings it.
    taken: u64,
    /// Up to this sequence it was looked what can go since the follower has it.
    released: u64,
}

impl Follower {
    fn is(&self, job: &Arc<Job>, origin: &Arc<Origin>) -> bool {
        let own = self.job.as_ref();
        own.is_some_and(|own| Arc::ptr_eq(own, job)) && self.origin == *origin
    }
}

/// Those who follow one name.
#[derive(Default)]
pub struct Followers {
    /// So that a commit of a stream that nobody follows costs nothing more.
    count: AtomicUsize,
    followers: Mutex<Vec<Follower>>,
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
            if let Some(job) = &follower.job {
                job.schedule();
            }
        }
    }

    pub fn add(&self, job: &Arc<Job>, origin: &Arc<Origin>) {
        let mut followers = self.followers.lock();
        if followers.iter().any(|other| other.is(job, origin)) {
            return;
        }
        self.enter(&mut followers, Some(job), origin);
    }

    /// Keeps what a stream would take that is on disk and not served.
    pub fn keep_for_unserved(&self, origin: &Arc<Origin>) {
        self.enter(&mut self.followers.lock(), None, origin);
    }

    /// It is served by now.
    pub fn forget_unserved(&self, origin: &Arc<Origin>) {
        let mut followers = self.followers.lock();
        followers.retain(|other| other.job.is_some() || !Arc::ptr_eq(&other.origin, origin));
        self.count.store(followers.len(), Ordering::Release);
    }

    fn enter(&self, followers: &mut Vec<Follower>, job: Option<&Arc<Job>>, origin: &Arc<Origin>) {
        followers.push(Follower {
            job: job.cloned(),
            origin: Arc::clone(origin),
            taken: 0,
            released: 0,
        });
        self.count.store(followers.len(), Ordering::Release);
    }

    pub fn remove(&self, job: &Arc<Job>, origin: &Arc<Origin>) {
        let mut followers = self.followers.lock();
        followers.retain(|follower| !follower.is(job, origin));
        self.count.store(followers.len(), Ordering::Release);
    }

    /// Whether messages of this subject are taken.
    pub fn want(&self, subject: &[u8]) -> bool {
        let takes = |follower: &Follower| follower.origin.takes(subject);
        !self.is_empty() && self.followers.lock().iter().any(takes)
    }

    /// Whether a follower that takes a message has not stored it yet.
    pub fn need(&self, subject: &[u8], sequence: u64) -> bool {
        let needs =
            |follower: &Follower| follower.taken < sequence && follower.origin.takes(subject);
        !self.is_empty() && self.followers.lock().iter().any(needs)
    }

    /// A follower has stored everything up to a sequence that it takes. Nothing is noted if the stream has ended: another one of its name begins anew.
    pub fn took(
        &self,
        job: &Arc<Job>,
        origin: &Arc<Origin>,
        sequence: u64,
        has_ended: impl FnOnce() -> bool,
    ) {
        let mut followers = self.followers.lock();
        let follower = followers.iter_mut().find(|other| other.is(job, origin));
        if let Some(follower) = follower.filter(|_| !has_ended()) {
            follower.taken = sequence;
        }
    }

    /// What a follower has taken since this was called before, from the first to the last sequence; none if that is nothing. The caller looks what of it can go.
    pub fn release(&self, job: &Arc<Job>, origin: &Arc<Origin>) -> Option<(u64, u64)> {
        let mut followers = self.followers.lock();
        let follower = followers.iter_mut().find(|other| other.is(job, origin))?;
        let first = follower.released + 1;
        follower.released = follower.released.max(follower.taken);
        (first <= follower.released).then_some((first, follower.released))
    }

    /// What they have taken may have stayed for one that is gone: each looks at all of it again.
    pub fn look_again(&self) {
        for follower in &mut *self.followers.lock() {
            follower.released = 0;
        }
        self.schedule();
    }

    /// The stream has ended, and another one of its name may begin.
    pub fn begin_anew(&self) {
        for follower in &mut *self.followers.lock() {
            follower.taken = 0;
            follower.released = 0;
        }
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
    use crate::stream::replication::origin::Parts;

    fn origin(filter: &str) -> Arc<Origin> {
        let origin = Origin::new(Parts {
            name: "O",
            external: None,
            consumer: None,
            is_mirror: false,
            filter,
            transforms: Vec::new(),
            start_sequence: 0,
            start_time_ns: None,
        });
        Arc::new(origin.unwrap())
    }

    fn job() -> Arc<Job> {
        WorkPool::new(&Arc::default()).job(|| {})
    }

    fn here() -> bool {
        false
    }

    #[test]
    fn a_message_is_needed_until_all_have_it_who_take_its_subject() {
        let (one, other) = (job(), job());
        let (all, some) = (origin(""), origin("a.*"));
        let by_name = FollowersByName::default();
        let followers = by_name.of("O");
        followers.add(&one, &all);
        followers.add(&other, &some);
        assert!(Arc::ptr_eq(&followers, &by_name.of("O")));
        assert!(followers.need(b"a.1", 1) && followers.need(b"b", 2));

        followers.took(&one, &all, 7, here);
        assert!(followers.need(b"a.1", 1) && !followers.need(b"b", 2));
        followers.took(&other, &some, 3, here);
        assert!(!followers.need(b"a.1", 3) && followers.need(b"a.1", 4));
        followers.remove(&other, &some);
        assert!(!followers.need(b"a.1", 4) && followers.need(b"a.1", 8));

        // A follower that returns has nothing, and starts from the beginning.
        followers.add(&other, &some);
        assert!(followers.need(b"a.1", 1));
        followers.remove(&other, &some);
        followers.remove(&one, &all);
        assert!(followers.is_empty() && !followers.need(b"a.1", 9));
    }

    #[test]
    fn two_sources_of_one_stream_are_two_followers() {
        let job = job();
        let (a, b) = (origin("a"), origin("b"));
        let followers = Followers::default();
        for origin in [&a, &b, &a] {
            followers.add(&job, origin);
        }

        followers.took(&job, &b, 9, here);
        followers.took(&job, &a, 2, here);

        assert!(followers.need(b"a", 3) && !followers.need(b"b", 9));
        assert!(followers.want(b"a") && !followers.want(b"c"));
        assert_eq!(followers.release(&job, &a), Some((1, 2)));
        assert_eq!(followers.release(&job, &b), Some((1, 9)));
        followers.remove(&job, &a);
        assert!(!followers.is_empty() && !followers.want(b"a"));
    }

    #[test]
    fn what_was_taken_is_looked_at_once_until_a_follower_goes() {
        let (job, origin) = (job(), origin(""));
        let followers = Followers::default();
        followers.add(&job, &origin);
        assert_eq!(followers.release(&job, &origin), None);

        followers.took(&job, &origin, 4, here);
        assert_eq!(followers.release(&job, &origin), Some((1, 4)));
        assert_eq!(followers.release(&job, &origin), None);
        followers.took(&job, &origin, 6, here);
        assert_eq!(followers.release(&job, &origin), Some((5, 6)));
        followers.look_again();
        assert_eq!(followers.release(&job, &origin), Some((1, 6)));
    }

    #[test]
    fn a_stream_of_the_same_name_begins_anew() {
        let (job, origin) = (job(), origin(""));
        let followers = Followers::default();
        followers.add(&job, &origin);
        followers.took(&job, &origin, 4, here);

        followers.begin_anew();
        followers.took(&job, &origin, 4, || true);

        assert!(followers.need(b"a", 1));
        assert_eq!(followers.release(&job, &origin), None);
    }

    #[test]
    fn what_a_stream_takes_that_is_not_served_is_needed() {
        let (one, other) = (origin("a"), origin("a"));
        let followers = Followers::default();
        followers.keep_for_unserved(&one);
        followers.keep_for_unserved(&other);
        assert!(followers.need(b"a", u64::MAX) && !followers.need(b"b", 1));

        followers.forget_unserved(&one);
        assert!(followers.need(b"a", 1));
        followers.forget_unserved(&other);
        assert!(followers.is_empty());
    }
}
