//! Reply subjects that a client may publish to because it received a request, within limits on their number and time.
//!
//! Invariant: at most `GRANTS_MAX` are remembered; when there are more, the older half makes room.

use ahash::AHashMap;
use parking_lot::Mutex;

use crate::common::permissions::ResponseLimits;

/// Reply subjects one client may owe an answer to.
const GRANTS_MAX: usize = 65_536;

/// Expired ones are cleared away when this many have come since the last time.
const PRUNE_EVERY: usize = 4_096;

pub struct Responses {
    limits: ResponseLimits,
    grants: Mutex<Grants>,
}

#[derive(Default)]
struct Grants {
    of_subject: AHashMap<Box<[u8]>, Grant>,
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
        grants.of_subject.insert(reply.into(), grant);
        grants.since_pruned += 1;
        if grants.since_pruned >= PRUNE_EVERY || grants.of_subject.len() > GRANTS_MAX {
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
            grants.of_subject.remove(subject);
            return false;
        }
        if grant.left > 0 {
            grant.left -= 1;
            if grant.left == 0 {
                grants.of_subject.remove(subject);
            }
        }
        true
    }
}

impl Grants {
    fn prune(&mut self, now_ms: u64) {
        self.since_pruned = 0;
        self.of_subject
            .retain(|_, grant| grant.expires_ms >= now_ms);
        if self.of_subject.len() <= GRANTS_MAX {
            return;
        }
        // Half of them go, so that this does not happen again with the next message.
        let oldest_kept = self.given - (GRANTS_MAX / 2) as u64;
        self.of_subject
            .retain(|_, grant| grant.number > oldest_kept);
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
}
