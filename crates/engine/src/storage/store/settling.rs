//! Whether what a store began with is durable, and who is notified when it is.
//!
//! Invariant: a store that is settled stays so; its owner is notified before it counts as settled. Both change only while
//! the writer of the store is held.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

/// Notifies the owner of a store that what is in its folder counts from now on.
type OnSettled = Box<dyn Fn() -> io::Result<()> + Send>;

pub struct Settling {
    is_unsettled: AtomicBool,
    on_settled: Mutex<OnSettled>,
}

impl Settling {
    pub fn new(is_unsettled: bool) -> Self {
        Self {
            is_unsettled: AtomicBool::new(is_unsettled),
            on_settled: Mutex::new(Box::new(|| Ok(()))),
        }
    }

    pub fn is_unsettled(&self) -> bool {
        self.is_unsettled.load(Ordering::Acquire)
    }

    pub fn set_on_settled(&self, told: impl Fn() -> io::Result<()> + Send + 'static) {
        *self.on_settled.lock() = Box::new(told);
    }

    /// Everything the store began with is durable: notifies its owner, and it counts.
    pub fn mark_settled(&self) -> io::Result<()> {
        debug_assert!(self.is_unsettled());
        (self.on_settled.lock())()?;
        self.is_unsettled.store(false, Ordering::Release);
        Ok(())
    }

    /// There is no store any more, and its owner knows.
    pub fn abandon(&self) {
        self.is_unsettled.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_whose_owner_cannot_write_it_down_stays_unsettled() {
        let settling = Settling::new(true);
        settling.set_on_settled(|| Err(io::Error::other("full")));

        assert!(settling.mark_settled().is_err());

        assert!(settling.is_unsettled());
        settling.set_on_settled(|| Ok(()));
        settling.mark_settled().unwrap();
        assert!(!settling.is_unsettled());
    }
}
