//! What became of one caller's own work, whichever thread committed it.
//!
//! A commit takes what all threads have staged, and discards all of it when it fails. A thread that commits afterwards
//! finds nothing to do, and must not take that for success. Everything staged between two discards belongs to one
//! `Epoch`; a caller of `stage` keeps its epoch and its ticket, and both together say what became of the work.
//! Invariant: `commit_through` returns `Ok` exactly if all of the work is durable and visible.

use std::sync::{Arc, OnceLock};

use crate::storage::message::{Committed, NewMessage, StoreError, Ticket};

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

    /// Whether what it has removed must be overwritten.
    pub(super) fn erases(&self) -> bool {
        self.erases
    }

    pub(super) fn note_erasure(&mut self) {
        self.erases = true;
    }

    /// Whether a commit up to here leaves nothing of it.
    pub(super) fn is_within(&self, committed: Committed) -> bool {
        self.ticket <= Some(committed.ticket)
    }

    /// Why it is not stored and never will be, if that is so.
    pub(super) fn refusal(&self) -> Option<StoreError> {
        let discarded = self.epoch.0.get()?;
        let is_discarded = self.ticket > Some(discarded.after);
        is_discarded.then(|| discarded.error.clone())
    }
}
