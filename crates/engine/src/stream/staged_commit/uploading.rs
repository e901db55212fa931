//! What a stream does with uploads: holds their messages, and stages those of a commit together.

use std::sync::Arc;

use super::held_messages::{HeldMessage, HeldMessages};
use super::uploads;
use crate::common::permissions::Permissions;
use crate::common::subject;
use crate::routing::sender::Outgoing;
use crate::storage::message::{Appended, StoreError, Ticket};
use crate::storage::store::Store;
use crate::stream::batch::commit;
use crate::stream::batch::commit::Unstaged;
use crate::stream::publish::acknowledgement::Refusal;
use crate::stream::publish::checks::Publication;
use crate::stream::publish::ingest::Ingest;
use crate::stream::stream::Stream;
use crate::wire::stored_headers;
use crate::wire::trusted_headers;

/// The messages of the last commit of uploads, which may wait beyond the limit of what publishers have under way.
#[derive(Debug, Default, Clone, Copy)]
pub struct Committing {
    pub messages: usize,
    pub bytes: u64,
    /// Of the last one.
    pub ticket: Ticket,
}

/// Accepts a message that belongs to an upload.
pub(in crate::stream) fn accept(
    ingest: &mut Ingest,
    value: &[u8],
    publication: &Publication<'_>,
    reply: &[u8],
) {
    let mut headers = Vec::new();
    let is_upload = |name: &[u8]| name == trusted_headers::UPLOAD;
    stored_headers::copy_without(publication.headers, is_upload, &mut headers);
    let message = HeldMessage {
        subject: publication.subject,
        headers: &headers,
        payload: publication.payload,
    };
    let settings = Arc::clone(ingest.settings());
    let publisher_id = ingest.publisher_id();
    let uploads = &mut ingest.incomplete_mut().uploads;
    let taken = uploads.accept(value, publisher_id, message, publication.now_ns);
    // Even a stream that does not acknowledge: without this the sender could not go on.
    ingest.send(reply, |answer| match taken {
        Ok(messages) => uploads::put_answer(answer, &settings.name, messages),
        Err(refusal) => refusal.encode(&settings.name, answer),
    });
}

/// Stages the messages of uploads together, the last one with a mark; returns what that one got.
fn stage_uploads(
    ingest: &mut Ingest,
    store: &Store,
    user: &str,
    wanted: &[(&str, u64)],
    mark: (&[u8], &[u8]),
    now_ns: i64,
) -> Result<Appended, Unstaged> {
    // Out of the way meanwhile, as staging changes everything else.
    let none = ingest.incomplete_mut().uploads.none();
    let held = std::mem::replace(&mut ingest.incomplete_mut().uploads, none);
    let found: Result<Vec<&HeldMessages>, _> = wanted
        .iter()
        .map(|(id, messages)| held.get(user, id, *messages))
        .collect();
    let staged = match found {
        Ok(found) => stage_held(ingest, store, &found, mark, now_ns),
        Err(refusal) => Err(Unstaged::Refused(refusal)),
    };
    ingest.incomplete_mut().uploads = held;
    staged
}

fn stage_held(
    ingest: &mut Ingest,
    store: &Store,
    found: &[&HeldMessages],
    mark: (&[u8], &[u8]),
    now_ns: i64,
) -> Result<Appended, Unstaged> {
    let all = found.iter().flat_map(|messages| messages.iter());
    let together = commit::stage_together(ingest, store, all, now_ns, Some(mark))?;
    let last = together
        .last()
        .ok_or(Unstaged::Store(StoreError::TooLarge))?;
    let committing = Committing {
        messages: found.iter().map(|messages| messages.len()).sum(),
        bytes: together.counted_bytes(ingest.settings()),
        ticket: last.ticket,
    };
    ingest.answers().expect(committing);
    commit::note_together(ingest, store, together, b"", b"");
    Ok(last)
}

impl Stream {
    /// Stages the messages of uploads, which stay until they are dropped.
    pub(in crate::stream) fn stage_uploads(
        &self,
        user: &str,
        wanted: &[(&str, u64)],
        mark: (&[u8], &[u8]),
    ) -> Result<Appended, Unstaged> {
        self.load_stored_once();
        let now_ns = self.now_ns();
        let mut ingest = self.ingest.lock();
        stage_uploads(&mut ingest, &self.store, user, wanted, mark, now_ns)
    }

    pub(in crate::stream) fn drop_uploads(&self, user: &str, ids: &[&str]) {
        let mut ingest = self.ingest.lock();
        ingest.incomplete_mut().uploads.drop_all(user, ids);
    }

    /// The user whose uploads a request is about.
    pub(in crate::stream) fn uploading_user(&self, connection_id: u64) -> Option<String> {
        let ingest = self.ingest.lock();
        ingest.incomplete().uploads.user_of(connection_id).ok()
    }

    /// Refuses a user who could not publish every message of these uploads: they may be neither stored nor dropped on
    /// the user's behalf.
    pub(in crate::stream) fn check_uploads(
        &self,
        user: &str,
        ids: &[&str],
        permissions: Option<&Permissions>,
    ) -> Result<(), Refusal> {
        let Some(permissions) = permissions else {
            return Ok(());
        };
        let settings = self.settings();
        let refused = |subject: &[u8]| {
            let text = format!(
                "permissions violation: this needs the right to publish to {}",
                subject::quoted(subject)
            );
            uploads::refused(403, &text)
        };
        if settings.subject_transform.is_some() {
            // What is held has its subject from the stream; what was published is one of those that the stream takes.
            let denied = |subject: &&String| !permissions.covers_publish(subject.as_bytes());
            return match settings.subjects.iter().find(denied) {
                Some(subject) => Err(refused(subject.as_bytes())),
                None => Ok(()),
            };
        }
        let ingest = self.ingest.lock();
        let mut last_allowed: &[u8] = b"";
        for message in ids
            .iter()
            .flat_map(|id| ingest.incomplete().uploads.messages_of(user, id))
        {
            if message.subject != last_allowed {
                if !permissions.allows_publish(message.subject) {
                    return Err(refused(message.subject));
                }
                last_allowed = message.subject;
            }
        }
        Ok(())
    }

    pub(in crate::stream) fn send(&self, message: &Outgoing<'_>) {
        self.senders
            .with(|sender| sender.send(&self.account, message));
    }
}
