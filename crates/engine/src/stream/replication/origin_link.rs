//! One origin of a stream, as the job knows it that brings its messages: how far that is, and what of it is on disk.
//!
//! Invariants: `looked_at` is never ahead of what is stored or staged of the origin, except for messages that are not
//! wanted; `unconfirmed` is in the order of both sequences.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use super::beginnings;
use super::origin::Origin;
use super::positions::SourcePosition;
use super::remote::delivery::RemoteDelivery;
use super::remote::reader::OriginReader;
use super::work::Shown;
use crate::storage::commit::work_pool::Job;
use crate::storage::message::StoreResult;
use crate::storage::store::Store;
use crate::stream::stream::Stream;

pub(in crate::stream) struct OriginLink {
    pub(in crate::stream) origin: Arc<Origin>,
    pub(in crate::stream) index_name: String,
    /// Of the stream that was read last.
    pub(in crate::stream) identity: String,
    /// Everything up to this was looked at there.
    pub(in crate::stream) looked_at: u64,
    /// The first sequence there that is, or was, taken; none until it is known.
    pub(in crate::stream) begun: Option<u64>,
    /// What was staged: the last sequence here, and there.
    pub(in crate::stream) unconfirmed: VecDeque<(u64, u64)>,
    pub(in crate::stream) retry_at: Option<Instant>,
    pub(in crate::stream) shown: Shown,
    /// Of an origin on another server: what reads it, in which session, and what came and is not stored.
    pub(in crate::stream) reader: Option<OriginReader>,
    pub(in crate::stream) session: u64,
    pub(in crate::stream) held: VecDeque<RemoteDelivery>,
    /// Its messages stay there only until they are acknowledged.
    pub(in crate::stream) is_consumed: bool,
}

impl OriginLink {
    pub(in crate::stream) fn new(origin: &Arc<Origin>) -> Self {
        Self {
            index_name: origin.index_name.join(" "),
            origin: Arc::clone(origin),
            identity: String::new(),
            looked_at: 0,
            begun: None,
            unconfirmed: VecDeque::new(),
            retry_at: None,
            shown: Shown::default(),
            reader: None,
            session: 0,
            held: VecDeque::new(),
            is_consumed: false,
        }
    }

    pub(in crate::stream) fn look_at(&mut self, sequence: u64) {
        self.looked_at = sequence;
        self.shown.looked_at = sequence;
    }

    /// Another stream has the name of the origin: of that nothing is known.
    pub(in crate::stream) fn begin_with(&mut self, identity: &str) {
        identity.clone_into(&mut self.identity);
        self.looked_at = 0;
        self.begun = None;
        self.unconfirmed.clear();
    }

    /// Finds out where the stream has begun to take messages of the origin, of which `next_sequence` is the next, unless
    /// that is known. `known` is how far the stream is, if it does not have the sequences of the origin.
    pub(in crate::stream) fn note_begun(
        &mut self,
        known: Option<&SourcePosition>,
        store: &Store,
        from: &Store,
        next_sequence: u64,
    ) -> StoreResult<()> {
        if self.begun.is_none() {
            let begun = beginnings::begun(&self.origin, known, store, from, next_sequence)?;
            self.begun = Some(begun);
        }
        Ok(())
    }

    /// Reports to an origin that keeps messages only until they are taken how far they are.
    pub(in crate::stream) fn release_through(
        &mut self,
        committed: u64,
        from: &Stream,
        job: &Arc<Job>,
    ) {
        let confirmed = self.confirmed(committed);
        if let (true, Some(begun)) = (confirmed > 0, self.begun) {
            from.release_through(&self.origin, job, begun, confirmed);
        }
    }

    /// Up to which sequence of the origin everything is on disk; 0 if that is not known.
    pub(in crate::stream) fn confirmed(&mut self, committed: u64) -> u64 {
        let mut confirmed = match self.unconfirmed.front() {
            None => self.looked_at,
            Some(_) => 0,
        };
        while let Some((stored_as, sequence)) = self.unconfirmed.front() {
            if *stored_as > committed {
                break;
            }
            confirmed = *sequence;
            self.unconfirmed.pop_front();
        }
        confirmed
    }
}
