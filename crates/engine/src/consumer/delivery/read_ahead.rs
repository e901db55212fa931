//! What is read from the disk for a consumer. The core is not locked meanwhile, so that a slow disk does not block a
//! thread that brings an acknowledgement.
//!
//! A pass that needs a message that has not been read ends with `PassEnd::Unread`; its caller releases the core, reads,
//! and continues. Invariant: a message that was removed since it was read is not handed out.

use std::sync::Arc;

use crate::consumer::settings::ConsumerSettings;
use crate::storage::message::{Message, StoreResult};
use crate::storage::store::committed::CommittedMessages;
use crate::storage::store::walking::Walk;

#[derive(Default)]
pub struct ReadAhead {
    /// What is new, in the order of the stream.
    pub walk: Walk,
    /// Whose filters the walk has.
    settings: Option<Arc<ConsumerSettings>>,
    /// A message that was asked for by its sequence.
    wanted: Option<u64>,
    read: Option<(u64, StoreResult<Option<Message>>)>,
}

impl ReadAhead {
    /// Forgets what was read for other settings: they may have other filters.
    pub fn follow(&mut self, settings: &Arc<ConsumerSettings>) {
        let is_same = |known: &Arc<ConsumerSettings>| Arc::ptr_eq(known, settings);
        if !self.settings.as_ref().is_some_and(is_same) {
            self.walk.forget();
            self.settings = Some(Arc::clone(settings));
        }
    }

    /// A message by its sequence, if it was read already; else it is what `read` reads next.
    pub fn take_message(
        &mut self,
        messages: &CommittedMessages,
        sequence: u64,
    ) -> Option<StoreResult<Option<Message>>> {
        if !messages.has_disk() {
            return Some(messages.read(sequence));
        }
        match self.read.take() {
            Some((read, message)) if read == sequence => match messages.contains(sequence) {
                true => Some(message),
                false => Some(Ok(None)),
            },
            _ => {
                self.wanted = Some(sequence);
                None
            }
        }
    }

    /// Whether `read` may have to wait for the disk: what was written last is in the system's memory.
    pub fn waits_for_disk(&self, messages: &CommittedMessages) -> bool {
        let next = self.wanted.or_else(|| self.walk.next_sequence());
        next.is_some_and(|sequence| !messages.is_recent(sequence))
    }

    /// Reads what a pass could not go on without.
    pub fn read(&mut self, messages: &CommittedMessages) -> StoreResult<()> {
        match self.wanted.take() {
            Some(sequence) => {
                self.read = Some((sequence, messages.read(sequence)));
                Ok(())
            }
            None => self.walk.load(),
        }
    }
}
