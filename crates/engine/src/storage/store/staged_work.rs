//! What became of one caller's own work, whoever committed it.
//!
//! A commit takes what all threads have staged, and when it fails it discards all of that. So a thread that commits afterwards finds nothing to do, and
//! must not take that for success. Everything staged between two discards is of one `Epoch`; who stages something through `stage` keeps its epoch
//! and its ticket, and both together say what became of it. Invariant: `commit_through` returns `Ok` exactly if all of the work is durable and visible.

use std::sync::{Arc, OnceLock};

use super::Store;
use crate::storage::format::removal::Removal;
use crate::storage::message::{Committed, NewMessage, StoreError, StoreResult, Ticket};

/// What is staged at once, and committed or discarded at once.
#[derive(Default)]
pub struct Change<'a> {
    /// With consecutive sequences; there together or not at all, also after a crash.
    pub append: &'a [NewMessage<'a>],
    /// What is not there is passed over.
    pub remove: &'a [u64],
    /// Whether the bytes of what is removed are overwritten when the removal is durable.
    pub erase: bool,
}

/// Everything staged between two discards.
#[derive(Default)]
pub struct Epoch(OnceLock<Discarded>);

struct Discarded {
    /// What was staged up to this one was committed before.
    after: Ticket,
    error: StoreError,
}

impl Epoch {
    pub(super) fn discard(&self, after: Ticket, error: &StoreError) {
        let error = error.clone();
        // It ends once: its staging has another one by now.
        let _ = self.0.set(Discarded { after, error });
    }
}

/// Something one caller has staged.
#[must_use = "what is staged is durable only when `commit_through` says so"]
pub struct StagedWork {
    /// Of the messages that were appended.
    pub sequences: Vec<u64>,
    /// Messages whose removal was staged; those that others remove already do not count.
    pub removed: u64,
    /// The last piece of it; `None` if there was nothing to stage.
    ticket: Option<Ticket>,
    erases: bool,
    epoch: Arc<Epoch>,
}

impl StagedWork {
    pub(super) fn new(epoch: &Arc<Epoch>) -> Self {
        Self {
            sequences: Vec::new(),
            removed: 0,
            ticket: None,
            erases: false,
            epoch: Arc::clone(epoch),
        }
    }

    pub(super) fn cover(&mut self, ticket: Ticket) {
        self.ticket = self.ticket.max(Some(ticket));
    }

    /// Why it is not stored and never will be, if that is so.
    fn refusal(&self) -> Option<StoreError> {
        let discarded = self.epoch.0.get()?;
        let is_discarded = self.ticket > Some(discarded.after);
        is_discarded.then(|| discarded.error.clone())
    }
}

impl Store {
    /// Stages a change as a whole. It is durable and visible when `commit_through` has returned without an error.
    pub fn stage(&self, change: &Change<'_>) -> StoreResult<StagedWork> {
        match change.append {
            [] => self.health.check_removable()?,
            _ => self.health.check_writable()?,
        }
        let index = self.index.read();
        let mut staging = self.staging.lock();
        let mut work = staging.new_work();
        for appended in staging.append_all(change.append, &self.options)? {
            work.sequences.push(appended.sequence);
            work.cover(appended.ticket);
        }
        for sequence in change.remove {
            if index.locate(*sequence).is_none() {
                continue;
            }
            work.erases |= change.erase;
            match staging.removal_of(*sequence) {
                Some(ticket) => work.cover(ticket),
                None => {
                    work.cover(staging.remove_one(*sequence, change.erase));
                    work.removed += 1;
                }
            }
        }
        Ok(work)
    }

    /// Stages a removal that was found to be due.
    pub(super) fn stage_range(&self, removal: Removal) -> StagedWork {
        let mut staging = self.staging.lock();
        let mut work = staging.new_work();
        work.cover(staging.remove(removal));
        work
    }

    /// Makes durable and visible what one caller has staged, unless a commit of another thread has done so; what else is staged goes with it. The
    /// outcome is that of this work and of no other: an error says that nothing of it is stored, except that an erasure may be
    /// what failed, and then its removal holds.
    pub fn commit_through(&self, work: &StagedWork) -> StoreResult<Committed> {
        let writer = self.writer.lock();
        if let Some(error) = work.refusal() {
            return Err(error);
        }
        let mut committed = writer.committed;
        if work.ticket > Some(committed.ticket) {
            committed = self.commit_batch(writer, false)?;
        } else {
            drop(writer);
        }
        if work.erases {
            // Whoever committed it may not have come to that yet.
            self.carry_out_erasures()?;
        }
        Ok(committed)
    }
}
