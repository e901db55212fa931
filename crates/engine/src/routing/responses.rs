//! Reply subjects that a client may publish to because it received a request, within limits on their number and time.
//!
//! Invariant: at most `GRANTS_MAX` are remembered, of at most `GRANTS_BYTES_MAX` together; when there are more, the older half makes room.

use std::cmp::Reverse;

use ahash::AHashMap;
use parking_lot::Mutex;

use crate::common::permissions::ResponseLimits;

/// Reply subjects one client may owe an answer to.
const GRANTS_MAX: usize = 65_536;

/// Bytes of those subjects: a requester chooses how long they are. Room for as many as there may be of the length that client libraries give them.
const GRANTS_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Expired ones are cleared away when this many have come since the last time.
const PRUNE_EVERY: usize = 4_096;

pub struct Responses {
    limits: ResponseLimits,
    grants: Mutex<Grants>,
}

#[derive(Default)]
struct Grants {
    of_subject: AHashMap<Box<[u8]>, Grant>,
    /// The length of all subjects together.
    bytes: usize,
    since_pruned: usize,
    given: u64,
}

#[derive(Clone, Copy)]
struct Grant {
    left: i64,
    expires_ms: u64,
    /// Its number in the order of grants.
    number: u64,
}

impl Responses {
    pub fn new(limits: ResponseLimits) -> Self {
        Self {
            limits,
            grants: Mutex::default(),
        }
    }

    /// A message with this reply subject was delivered.
    pub fn grant(&self, reply: &[u8], now_ms: u64) {
        let expires_ms = match u64::try_from(self.limits.expires_ms) {
            Ok(expires_ms) => now_ms.saturating_add(expires_ms),
            Err(_) => u64::MAX,
        };
        let mut grants = self.grants.lock();
        grants.given += 1;
        let grant = Grant {
            left: self.limits.count_max,
            expires_ms,
            number: grants.given,
        };
        if grants.of_subject.insert(reply.into(), grant).is_none() {
            grants.bytes += reply.len();
        }
        grants.since_pruned += 1;
        if grants.since_pruned >= PRUNE_EVERY || grants.are_too_many() {
            grants.prune(now_ms);
        }
    }

    /// Uses one of the publishes that were granted; false when there is none.
    pub fn use_grant(&self, subject: &[u8], now_ms: u64) -> bool {
        let mut grants = self.grants.lock();
        let Some(grant) = grants.of_subject.get_mut(subject) else {
            return false;
        };
        if now_ms > grant.expires_ms {
            grants.remove(subject);
            return false;
        }
        if grant.left > 0 {
            grant.left -= 1;
            if grant.left == 0 {
                grants.remove(subject);
            }
        }
        true
    }
}

impl Grants {
    fn are_too_many(&self) -> bool {
        self.of_subject.len() > GRANTS_MAX || self.bytes > GRANTS_BYTES_MAX
    }

    fn remove(&mut self, subject: &[u8]) {
        if self.of_subject.remove(subject).is_some() {
            self.bytes -= subject.len();
        }
    }

    fn prune(&mut self, now_ms: u64) {
        self.since_pruned = 0;
        self.retain(|grant| grant.expires_ms >= now_ms);
        if !self.are_too_many() {
            return;
        }
        // Half of them go, so that this does not happen again with the next message.
        let mut newest_first: Vec<(u64, usize)> = self
            .of_subject
            .iter()
            .map(|(subject, grant)| (grant.number, subject.len()))
            .collect();
        newest_first.sort_unstable_by_key(|(number, _)| Reverse(*number));
        let mut bytes = 0;
        let first_to_go = newest_first
            .iter()
            .take(GRANTS_MAX / 2)
            .position(|(_, length)| {
                bytes += length;
                bytes > GRANTS_BYTES_MAX / 2
            })
            .unwrap_or(GRANTS_MAX / 2);
        let newest_to_go = newest_first.get(first_to_go);
        let newest_to_go = newest_to_go.map_or(0, |(number, _)| *number);
        self.retain(|grant| grant.number > newest_to_go);
    }

    fn retain(&mut self, is_kept: impl Fn(&Grant) -> bool) {
        let mut bytes = 0;
        self.of_subject.retain(|subject, grant| {
            let is_kept = is_kept(grant);
            bytes += usize::from(is_kept) * subject.len();
            is_kept
        });
        self.bytes = bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn responses(count_max: i64, expires_ms: i64) -> Responses {
        Responses::new(ResponseLimits {
            count_max,
            expires_ms,
        })
    }

    #[test]
    fn a_grant_is_used_up_by_its_count() {
        let responses = responses(2, 1_000);
        responses.grant(b"reply", 10);

        assert!(responses.use_grant(b"reply", 20) && responses.use_grant(b"reply", 30));
        assert!(!responses.use_grant(b"reply", 40));
        assert!(!responses.use_grant(b"other", 40));
    }

    #[test]
    fn a_grant_expires() {
        let responses = responses(-1, 1_000);
        responses.grant(b"reply", 10);

        assert!(responses.use_grant(b"reply", 1_010));
        assert!(!responses.use_grant(b"reply", 1_011));
    }

    #[test]
    fn the_number_of_grants_is_bounded() {
        let responses = responses(1, -1);
        for number in 0..3 * GRANTS_MAX {
            responses.grant(number.to_string().as_bytes(), 1);
        }

        assert!(responses.grants.lock().of_subject.len() <= GRANTS_MAX + 1);
        assert!(responses.use_grant((3 * GRANTS_MAX - 1).to_string().as_bytes(), 1));
    }

    #[test]
    fn the_bytes_of_grants_are_bounded_and_the_newest_stay() {
        let responses = responses(1, -1);
        let reply = |number: usize| format!("{number:04096}");
        for number in 0..4 * GRANTS_BYTES_MAX / 4096 {
            responses.grant(reply(number).as_bytes(), 1);
        }

        let last = 4 * GRANTS_BYTES_MAX / 4096 - 1;
        let grants = responses.grants.lock();
        let held: usize = grants.of_subject.keys().map(|subject| subject.len()).sum();
        assert_eq!(held, grants.bytes);
        assert!(held <= GRANTS_BYTES_MAX);
        drop(grants);
        for number in last - 500..=last {
            assert!(responses.use_grant(reply(number).as_bytes(), 1));
        }
    }

    #[test]
    fn grants_that_are_used_up_or_given_twice_are_counted_once() {
        let responses = responses(1, 1_000);
        for now_ms in [1, 2] {
            responses.grant(b"twice", now_ms);
        }
        responses.grant(b"expired", 1);
        assert_eq!(responses.grants.lock().bytes, 12);

        assert!(responses.use_grant(b"twice", 3) && !responses.use_grant(b"expired", 2_000));

        assert_eq!(responses.grants.lock().bytes, 0);
    }
}
