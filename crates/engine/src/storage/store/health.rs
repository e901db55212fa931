//! Whether a store takes messages.
//!
//! Invariant: a store that has become read-only stays so; one that is hindered is tried again now and then, and takes messages as soon as a write succeeds.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::storage::disk::failure;
use crate::storage::message::{StoreError, StoreResult};

/// How often a disk that is full, or a process that lacks something, is tried again.
const HINDERED_RETRY: Duration = Duration::from_millis(100);

enum StoreStatus {
    Writable,
    /// The disk was full, or the process lacked something; whether it still is so, is tried now and then.
    Hindered {
        error: StoreError,
        tried: Instant,
    },
    ReadOnly(Arc<io::Error>),
}

pub(super) struct Health {
    status: Mutex<StoreStatus>,
}

impl Health {
    pub(super) fn new() -> Self {
        Self {
            status: Mutex::new(StoreStatus::Writable),
        }
    }

    /// Why nothing can be stored at the moment, if that is so.
    pub(super) fn hindrance(&self) -> Option<StoreError> {
        match &*self.status.lock() {
            StoreStatus::Writable => None,
            StoreStatus::Hindered { error, .. } => Some(error.clone()),
            StoreStatus::ReadOnly(cause) => Some(StoreError::ReadOnly(Arc::clone(cause))),
        }
    }

    pub(super) fn check_writable(&self) -> StoreResult<()> {
        match &mut *self.status.lock() {
            StoreStatus::Writable => Ok(()),
            StoreStatus::Hindered { tried, .. } if tried.elapsed() >= HINDERED_RETRY => {
                *tried = Instant::now();
                Ok(())
            }
            StoreStatus::Hindered { error, .. } => Err(error.clone()),
            StoreStatus::ReadOnly(cause) => Err(StoreError::ReadOnly(Arc::clone(cause))),
        }
    }

    /// Removals are taken on a full disk too: they are what makes room.
    pub(super) fn check_removable(&self) -> StoreResult<()> {
        self.read_only()
            .map_or(Ok(()), |cause| Err(StoreError::ReadOnly(cause)))
    }

    /// Why nothing will be written any more, if that is so.
    pub(super) fn read_only(&self) -> Option<Arc<io::Error>> {
        match &*self.status.lock() {
            StoreStatus::ReadOnly(cause) => Some(Arc::clone(cause)),
            StoreStatus::Writable | StoreStatus::Hindered { .. } => None,
        }
    }

    /// Refuses what is appended, but for a try now and then.
    pub(super) fn hinder(&self, error: StoreError) -> StoreError {
        let mut status = self.status.lock();
        if matches!(*status, StoreStatus::Writable) {
            *status = StoreStatus::Hindered {
                error: error.clone(),
                tried: Instant::now(),
            };
        }
        error
    }

    /// Something was written, or room was made.
    pub(super) fn recover(&self) {
        let mut status = self.status.lock();
        if matches!(*status, StoreStatus::Hindered { .. }) {
            *status = StoreStatus::Writable;
        }
    }

    /// What says nothing about the disk only postpones what was to be done; anything else is serious.
    pub(super) fn postpone(&self, error: io::Error) -> StoreError {
        failure::refusal(&error).unwrap_or_else(|| self.become_read_only(error))
    }

    pub(super) fn become_read_only(&self, error: io::Error) -> StoreError {
        let cause = Arc::new(error);
        *self.status.lock() = StoreStatus::ReadOnly(Arc::clone(&cause));
        StoreError::ReadOnly(cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_is_read_only_stays_so() {
        let health = Health::new();

        drop(health.become_read_only(io::Error::other("broken")));
        health.recover();
        drop(health.hinder(StoreError::Full));

        assert!(health.check_writable().is_err() && health.check_removable().is_err());
    }

    #[test]
    fn a_hindered_store_takes_removals_and_recovers() {
        let health = Health::new();

        drop(health.hinder(StoreError::Full));

        assert!(health.check_writable().is_err() && health.check_removable().is_ok());
        health.recover();
        assert!(health.check_writable().is_ok() && health.hindrance().is_none());
    }
}
