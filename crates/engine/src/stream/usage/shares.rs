//! What the accounts of a server have in common and use up while they hold it: memory of open batches and uploads, places of scans, snapshots and restores.
//!
//! Each account has a share that is less than the whole, so that none can take it from the others. Invariant: what is held of the whole is the sum of what the accounts hold,
//! and neither is ever above its limit.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// How much of something may be held at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShareLimits {
    pub account_max: usize,
    pub server_max: usize,
}

const MIB: usize = 1024 * 1024;

/// Messages of atomic batches that are not committed. A batch is stored at once, so one that is larger could hold everybody up; and publishers that only begin batches
/// must not fill the memory.
pub const BATCH_BYTES: ShareLimits = ShareLimits {
    account_max: 64 * MIB,
    server_max: 256 * MIB,
};

/// Rows that wait for the commit of their query. A commit has up to 256 MiB, and attempts that failed may have left some.
pub const UPLOAD_BYTES: ShareLimits = ShareLimits {
    account_max: 384 * MIB,
    server_max: 512 * MIB,
};

/// Scans under way; those beyond the threads of their pool wait for others to end.
pub const SCANS: ShareLimits = ShareLimits {
    account_max: 128,
    server_max: 512,
};

/// Snapshots under way: each has a thread, and a window of up to 32 MiB on the way.
pub const SNAPSHOTS: ShareLimits = ShareLimits {
    account_max: 8,
    server_max: 32,
};

/// Restores under way: each has a file on disk, and up to 32 MiB in memory.
pub const RESTORES: ShareLimits = ShareLimits {
    account_max: 4,
    server_max: 16,
};

/// What all accounts hold together.
#[derive(Debug)]
pub struct Pool {
    limits: ShareLimits,
    held: AtomicUsize,
}

impl Pool {
    pub fn new(limits: ShareLimits) -> Arc<Self> {
        assert!(
            limits.account_max <= limits.server_max,
            "a share is part of the whole"
        );
        Arc::new(Self {
            limits,
            held: AtomicUsize::new(0),
        })
    }
}

/// What one account holds of it.
#[derive(Debug)]
pub struct Share {
    pool: Arc<Pool>,
    held: AtomicUsize,
}

/// Why nothing more may be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exceeded {
    /// The account holds its share.
    Account(usize),
    /// All accounts together hold what there is.
    Server(usize),
}

impl Share {
    pub fn new(pool: &Arc<Pool>) -> Self {
        Self {
            pool: Arc::clone(pool),
            held: AtomicUsize::new(0),
        }
    }

    /// Holds so much more, or nothing more.
    pub fn reserve(&self, amount: usize) -> Result<(), Exceeded> {
        let ShareLimits {
            account_max,
            server_max,
        } = self.pool.limits;
        if !add_within(&self.held, amount, account_max) {
            return Err(Exceeded::Account(account_max));
        }
        if !add_within(&self.pool.held, amount, server_max) {
            self.held.fetch_sub(amount, Ordering::Relaxed);
            return Err(Exceeded::Server(server_max));
        }
        Ok(())
    }

    /// Holds so much less.
    pub fn give_back(&self, amount: usize) {
        self.held.fetch_sub(amount, Ordering::Relaxed);
        self.pool.held.fetch_sub(amount, Ordering::Relaxed);
    }

    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }
}

fn add_within(held: &AtomicUsize, amount: usize, most: usize) -> bool {
    let within = |held: usize| held.checked_add(amount).filter(|sum| *sum <= most);
    held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within)
        .is_ok()
}

/// A place that is held, and given back when this is dropped.
#[derive(Debug)]
pub struct HeldShare(Arc<Share>);

impl HeldShare {
    /// Holds a place of what `what` names, or says why there is none and what to do.
    pub fn reserve(share: &Arc<Share>, what: &str) -> Result<Self, String> {
        match share.reserve(1) {
            Ok(()) => Ok(Self(Arc::clone(share))),
            Err(Exceeded::Account(most)) => Err(format!(
                "{most} {what} of this account are under way, its share: try again when one has ended"
            )),
            Err(Exceeded::Server(most)) => Err(format!(
                "{most} {what} are under way on this server: try again when one has ended"
            )),
        }
    }
}

impl Drop for HeldShare {
    fn drop(&mut self) {
        self.0.give_back(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ShareLimits = ShareLimits {
        account_max: 3,
        server_max: 5,
    };

    #[test]
    fn no_account_gets_more_than_its_share_and_all_together_no_more_than_there_is() {
        let pool = Pool::new(LIMITS);
        let accounts = [Share::new(&pool), Share::new(&pool)];

        assert_eq!(accounts[0].reserve(4), Err(Exceeded::Account(3)));
        assert_eq!(accounts[0].reserve(3), Ok(()));
        assert_eq!(accounts[0].reserve(1), Err(Exceeded::Account(3)));
        assert_eq!(accounts[1].reserve(2), Ok(()));
        assert_eq!(accounts[1].reserve(1), Err(Exceeded::Server(5)));
        accounts[0].give_back(3);
        assert_eq!(accounts[1].reserve(1), Ok(()));
        assert_eq!((accounts[0].held(), accounts[1].held()), (0, 3));
        assert_eq!(accounts[0].reserve(usize::MAX), Err(Exceeded::Account(3)));
    }

    #[test]
    fn a_place_is_free_again_when_it_is_dropped_and_a_refusal_says_what_to_do() {
        let share = Arc::new(Share::new(&Pool::new(LIMITS)));
        let places: Vec<_> = (0..3)
            .map(|_| HeldShare::reserve(&share, "scans").unwrap())
            .collect();

        let refused = HeldShare::reserve(&share, "scans").unwrap_err();

        assert!(
            refused.contains("3 scans of this account") && refused.contains("try again"),
            "{refused}"
        );
        drop(places);
        assert!(HeldShare::reserve(&share, "scans").is_ok());
    }
}
