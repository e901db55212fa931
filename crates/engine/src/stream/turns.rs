//! Turns for changes: one at a time of each account, so that no account waits for the disk on behalf of another.
//!
//! Invariant: an account is in the set exactly while its `AccountTurn` is held.

use ahash::AHashSet;
use parking_lot::{Condvar, Mutex, MutexGuard};

#[derive(Default)]
pub struct Turns {
    taken: Mutex<AHashSet<String>>,
    given_back: Condvar,
}

/// Keeps others from changing something of an account.
pub struct AccountTurn<'a> {
    turns: &'a Turns,
    account: String,
}

impl Turns {
    /// Waits until no other request is changing something in the account.
    pub fn of(&self, account: &str) -> AccountTurn<'_> {
        let mut taken = self.taken.lock();
        while !taken.insert(account.to_owned()) {
            self.given_back.wait(&mut taken);
        }
        AccountTurn {
            turns: self,
            account: account.to_owned(),
        }
    }

    /// Waits for everybody, and lets nobody begin.
    pub fn of_all(&self) -> MutexGuard<'_, AHashSet<String>> {
        let mut taken = self.taken.lock();
        while !taken.is_empty() {
            self.given_back.wait(&mut taken);
        }
        taken
    }
}

impl Drop for AccountTurn<'_> {
    fn drop(&mut self) {
        self.turns.taken.lock().remove(&self.account);
        self.turns.given_back.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;

    #[test]
    fn a_change_waits_for_its_own_account_and_for_no_other() {
        let turns = Turns::default();
        let first = turns.of("A");
        drop(turns.of("B"));

        thread::scope(|scope| {
            let (begun, has_begun) = mpsc::channel();
            let turns = &turns;
            scope.spawn(move || {
                let _second = turns.of("A");
                begun.send(()).unwrap();
            });
            assert_eq!(has_begun.try_recv(), Err(mpsc::TryRecvError::Empty));
            drop(first);
            has_begun.recv().unwrap();
        });
        assert!(turns.of_all().is_empty());
    }
}
