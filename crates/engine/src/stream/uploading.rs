//! What a stream does with uploads: holds their messages, and stages those of a commit together.

use std::sync::Arc;

use super::batch_commit::Unstaged;
use super::held_messages::{Held, HeldMessages};
use super::ingest::Ingest;
use super::publish_checks::Publication;
use super::stored_headers;
use super::stream::Stream;
use super::uploads;
use crate::sender::Outgoing;
use crate::storage::message::{Appended, StoreError, Ticket};
use crate::storage::store::Store;

/// The messages of the last commit of uploads, which may wait beyond the limit of what publishers have under way.
#[derive(Debug, Default, Clone, Copy)]
pub struct Committing {
    pub messages: usize,
    pub bytes: u64,
    /// Of the last one.
    pub ticket: Ticket,
}

impl Ingest {
    /// Takes a message that belongs to an upload.
    pub(super) fn take_upload(
        &mut self,
        value: &[u8],
        publication: &Publication<'_>,
        reply: &[u8],
    ) {
        let mut headers = Vec::new();
        let is_upload = |name: &[u8]| name == uploads::HEADER;
        stored_headers::copy_without(publication.headers, is_upload, &mut headers);
        let message = Held {
            subject: publication.subject,
            headers: &headers,
            payload: publication.payload,
        };
        let settings = Arc::clone(&self.settings);
        let taken = self.uploads.take(value, message, publication.now_ns);
        self.answer.clear();
        match taken {
            Ok(messages) => uploads::put_answer(&mut self.answer, &settings.name, messages),
            Err(refusal) => refusal.encode(&settings.name, &mut self.answer),
        }
        // Even a stream that does not acknowledge: without this the sender could not go on.
        self.push_message(reply);
    }

    /// Stages the messages of uploads together, the last one with a mark; returns what that one got.
    fn stage_uploads(
        &mut self,
        store: &Store,
        wanted: &[(&str, u64)],
        mark: (&[u8], &[u8]),
        now_ns: i64,
    ) -> Result<Appended, Unstaged> {
        // Out of the way meanwhile, as staging changes everything else.
        let none = self.uploads.none();
        let held = std::mem::replace(&mut self.uploads, none);
        let staged = self.stage_held(store, &held, wanted, mark, now_ns);
        self.uploads = held;
        staged
    }

    fn stage_held(
        &mut self,
        store: &Store,
        held: &uploads::Uploads,
        wanted: &[(&str, u64)],
        mark: (&[u8], &[u8]),
        now_ns: i64,
    ) -> Result<Appended, Unstaged> {
        let found: Result<Vec<&HeldMessages>, _> = wanted
            .iter()
            .map(|(id, messages)| held.get(id, *messages))
            .collect();
        let found = found.map_err(Unstaged::Refused)?;
        let all = found.iter().flat_map(|messages| messages.iter());
        let together = self.stage_together(store, all, now_ns, Some(mark))?;
        let last = together
            .last()
            .ok_or(Unstaged::Store(StoreError::TooLarge))?;
        self.committing = Committing {
            messages: found.iter().map(|messages| messages.len()).sum(),
            bytes: together.counted_bytes(&self.settings),
            ticket: last.ticket,
        };
        self.note_together(store, together, b"", b"");
        Ok(last)
    }
}

impl Stream {
    /// Stages the messages of uploads, which stay until they are dropped.
    pub(super) fn stage_uploads(
        &self,
        wanted: &[(&str, u64)],
        mark: (&[u8], &[u8]),
    ) -> Result<Appended, Unstaged> {
        let now_ns = self.now_ns();
        let mut ingest = self.ingest.lock();
        ingest.stage_uploads(&self.store, wanted, mark, now_ns)
    }

    pub(super) fn drop_uploads(&self, ids: &[&str]) {
        self.ingest.lock().uploads.drop_all(ids);
    }

    pub(super) fn send(&self, message: &Outgoing<'_>) {
        self.senders
            .with(|sender| sender.send(&self.account, message));
    }
}
