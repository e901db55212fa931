//! Uploads that are open: messages that tasks of a query have sent, and that wait until the query names them in a
//! commit.
//!
//! A message of an upload has a header `Jetlake-Upload: <upload>/<number>`, and comes on its own subject, so that the
//! sender needs the right to publish there. The first one says `<upload>/1/<query>/<run>`: when a query runs again,
//! what its earlier run has left is dropped. The end is `<upload>/<messages>/end`, and not a message. Only what has a
//! reply subject is answered: with how many have come, or why no more are accepted. A task that computes for long sends
//! `<upload>/0/<query>/<run>` meanwhile, which is not a message either and keeps the uploads of its run.
//! Nothing of an upload is in the store, or survives the server. An upload belongs to the user who began it: no other
//! publisher adds to it or drops it. A user who may ask the API to commit or abort may name anybody's uploads; if
//! several have the same id, that means the user's own or else the first. Invariant: the uploads of an account hold no
//! more bytes than its share.

use std::io::Write;
use std::sync::Arc;

use ahash::AHashMap;

use super::held_messages::{HeldMessage, HeldMessages};
use crate::stream::publish::acknowledgement::{put_text, Refusal};
use crate::stream::publish::checks::refusal;
use crate::stream::usage::account_usage::AccountUsage;
use crate::stream::usage::shares::Exceeded;
use crate::wire::upload_header::is_name;

/// Tasks of one user that may upload to one stream at a time.
const UPLOADS_MAX: usize = 4096;

/// What an upload takes up besides its messages.
const UPLOAD_BYTES: usize = 512;

/// Uploads are given up when no task of their query has sent anything for so long: three times what a task that is still there lets pass without a word.
const IDLE_NS_MAX: i64 = 30_000_000_000;

/// How often that is looked at.
const LOOK_NS: i64 = 1_000_000_000;

/// What goes wrong with uploads has no number of its own at nats-server; this one stands for anything about a stream.
const ERROR_CODE: u16 = 10051;

#[derive(Debug, Default)]
struct Upload {
    query: String,
    run: String,
    messages: HeldMessages,
    bytes: usize,
    /// Later ones have higher numbers.
    number: u64,
    touched_ns: i64,
    has_ended: bool,
    /// Why nothing more is taken.
    refused: Option<Refusal>,
}

/// Says which user a connection belongs to, if it is still there.
pub type FindUser = Arc<dyn Fn(u64) -> Option<String> + Send + Sync>;

pub struct Uploads {
    /// By user, and by id.
    open: AHashMap<String, AHashMap<String, Upload>>,
    usage: Arc<AccountUsage>,
    find_user: FindUser,
    /// Who sent last, so that not every message is asked about.
    last_sender: (u64, String),
    next_number: u64,
    looked_ns: i64,
}

/// What the header of a message says.
#[derive(Debug, PartialEq, Eq)]
struct Word<'a> {
    upload: &'a str,
    number: u64,
    place: UploadPosition<'a>,
}

#[derive(Debug, PartialEq, Eq)]
enum UploadPosition<'a> {
    First {
        query: &'a str,
        run: &'a str,
    },
    Further,
    End,
    /// A task still works on this run.
    Alive {
        query: &'a str,
        run: &'a str,
    },
}

impl<'a> Word<'a> {
    fn read(value: &'a [u8]) -> Option<Self> {
        let mut parts = std::str::from_utf8(value).ok()?.split('/');
        let upload = parts.next().filter(|name| is_name(name))?;
        let number = parts.next()?.parse().ok()?;
        let place = match (parts.next(), parts.next(), parts.next()) {
            (None, ..) => UploadPosition::Further,
            (Some("end"), None, _) => UploadPosition::End,
            (Some(query), Some(run), None) if number == 1 && is_name(query) && is_name(run) => {
                UploadPosition::First { query, run }
            }
            (Some(query), Some(run), None) if number == 0 && is_name(query) && is_name(run) => {
                UploadPosition::Alive { query, run }
            }
            _ => return None,
        };
        Some(Self {
            upload,
            number,
            place,
        })
    }
}

impl Uploads {
    pub fn new(usage: Arc<AccountUsage>, find_user: FindUser) -> Self {
        Self {
            open: AHashMap::new(),
            usage,
            find_user,
            last_sender: (0, String::new()),
            next_number: 0,
            looked_ns: 0,
        }
    }

    /// No uploads, counted with those of the same account.
    pub fn none(&self) -> Self {
        Self::new(Arc::clone(&self.usage), Arc::clone(&self.find_user))
    }

    /// The user of a connection.
    pub fn user_of(&self, connection_id: u64) -> Result<String, Refusal> {
        let user = (self.find_user)(connection_id);
        user.ok_or_else(|| refused(403, "whoever sent this is gone, and so is what it may do"))
    }

    /// Takes a message that a connection has sent, whose header of uploads says `value`; returns how many have come.
    pub fn accept(
        &mut self,
        value: &[u8],
        connection_id: u64,
        message: HeldMessage<'_>,
        now_ns: i64,
    ) -> Result<u64, Refusal> {
        let word = Word::read(value)
            .ok_or_else(|| refused(400, "the header Jetlake-Upload cannot be read"))?;
        if self.last_sender.0 != connection_id || connection_id == 0 {
            self.last_sender = (connection_id, self.user_of(connection_id)?);
        }
        let user = &self.last_sender.1;
        if let UploadPosition::Alive { query, run } = word.place {
            let own = self.open.get_mut(user);
            for upload in own.into_iter().flat_map(|own| own.values_mut()) {
                if upload.query == query && upload.run == run {
                    upload.touched_ns = now_ns;
                }
            }
            return Ok(0);
        }
        if !self.open.contains_key(user) {
            self.open.insert(user.clone(), AHashMap::new());
        }
        let Some(own) = self.open.get_mut(user) else {
            return Err(unknown());
        };
        if let UploadPosition::First { query, run } = word.place {
            self.next_number += 1;
            let upload = Upload {
                query: query.to_owned(),
                run: run.to_owned(),
                bytes: UPLOAD_BYTES,
                number: self.next_number,
                touched_ns: now_ns,
                ..Upload::default()
            };
            begin(own, &self.usage, word.upload, upload)?;
        }
        let Some(upload) = own.get_mut(word.upload) else {
            return Err(unknown());
        };
        upload.touched_ns = now_ns;
        if let Some(refusal) = &upload.refused {
            return Err(refusal.clone());
        }
        let taken = add(upload, &word, message, &self.usage);
        if let Err(refusal) = &taken {
            upload.refused = Some(refusal.clone());
        }
        taken
    }

    /// Whose upload a user means by an id: the user's own, else the one begun first, since others see its id only then.
    fn owner_of(&self, user: &str, id: &str) -> Option<&str> {
        if let Some((owner, own)) = self.open.get_key_value(user) {
            if own.contains_key(id) {
                return Some(owner);
            }
        }
        let all = self.open.iter();
        let found = all.filter_map(|(owner, own)| Some((own.get(id)?.number, owner)));
        found.min().map(|(_, owner)| owner.as_str())
    }

    /// The messages of the upload that a user means, if it has ended with this many.
    pub fn get(&self, user: &str, id: &str, messages: u64) -> Result<&HeldMessages, Refusal> {
        let owner = self.owner_of(user, id);
        let upload = owner.and_then(|owner| self.open.get(owner)?.get(id));
        let whole = upload.filter(|upload| {
            upload.has_ended && upload.refused.is_none() && upload.messages.len() as u64 == messages
        });
        whole.map(|upload| &upload.messages).ok_or_else(|| {
            let text = format!(
                "the upload {id:?} is not here, or not with {messages} messages: it was given up, or the server has been restarted; repeat the batch"
            );
            refused(404, &text)
        })
    }

    /// What the upload that a user means has so far; nothing if there is none.
    pub fn messages_of(&self, user: &str, id: &str) -> impl Iterator<Item = HeldMessage<'_>> {
        let owner = self.owner_of(user, id);
        let upload = owner.and_then(|owner| self.open.get(owner)?.get(id));
        upload.into_iter().flat_map(|upload| upload.messages.iter())
    }

    /// Drops the uploads that a user means.
    pub fn drop_all(&mut self, user: &str, ids: &[&str]) {
        for id in ids {
            let owner = self.owner_of(user, id).map(str::to_owned);
            let own = owner.and_then(|owner| self.open.get_mut(&owner));
            if let Some(upload) = own.and_then(|own| own.remove(*id)) {
                self.usage.upload_bytes.give_back(upload.bytes);
            }
        }
        self.open.retain(|_, own| !own.is_empty());
    }

    /// Gives up those of queries from which nothing has come for too long.
    pub fn expire(&mut self, now_ns: i64) {
        if self.open.is_empty() || now_ns.saturating_sub(self.looked_ns) < LOOK_NS {
            return;
        }
        self.looked_ns = now_ns;
        for own in self.open.values_mut() {
            let mut active: AHashMap<String, i64> = AHashMap::new();
            for upload in own.values() {
                let last_ns = active.entry(upload.query.clone()).or_insert(i64::MIN);
                *last_ns = upload.touched_ns.max(*last_ns);
            }
            drop_if(own, &self.usage, |_, upload| {
                let last_ns = active.get(&upload.query).copied().unwrap_or(i64::MIN);
                now_ns.saturating_sub(last_ns) >= IDLE_NS_MAX
            });
        }
        self.open.retain(|_, own| !own.is_empty());
    }
}

fn begin(
    own: &mut AHashMap<String, Upload>,
    usage: &AccountUsage,
    id: &str,
    upload: Upload,
) -> Result<(), Refusal> {
    drop_if(own, usage, |_, other| {
        other.query == upload.query && other.run != upload.run
    });
    if own.contains_key(id) {
        return Err(refused(400, "there is an upload with this id already"));
    }
    if own.len() >= UPLOADS_MAX {
        let text = format!("{UPLOADS_MAX} uploads are open: commit or abort others first");
        return Err(refused(429, &text));
    }
    usage
        .upload_bytes
        .reserve(UPLOAD_BYTES)
        .map_err(too_many_bytes)?;
    own.insert(id.to_owned(), upload);
    Ok(())
}

fn add(
    upload: &mut Upload,
    word: &Word<'_>,
    message: HeldMessage<'_>,
    usage: &AccountUsage,
) -> Result<u64, Refusal> {
    let held = upload.messages.len() as u64;
    let is_end = word.place == UploadPosition::End;
    if word.number != held + u64::from(!is_end) || upload.has_ended {
        return Err(refused(
            400,
            "messages of the upload are missing: repeat the task",
        ));
    }
    if is_end {
        upload.has_ended = true;
        return Ok(held);
    }
    let bytes = HeldMessages::bytes_of(&message);
    usage.upload_bytes.reserve(bytes).map_err(too_many_bytes)?;
    upload.bytes += bytes;
    upload.messages.push(message);
    Ok(held + 1)
}

fn drop_if(
    own: &mut AHashMap<String, Upload>,
    usage: &AccountUsage,
    is_over: impl Fn(&str, &Upload) -> bool,
) {
    own.retain(|id, upload| {
        let goes = is_over(id, upload);
        if goes {
            usage.upload_bytes.give_back(upload.bytes);
        }
        !goes
    });
}

impl Drop for Uploads {
    fn drop(&mut self) {
        for own in self.open.values_mut() {
            drop_if(own, &self.usage, |_, _| true);
        }
    }
}

fn unknown() -> Refusal {
    let text =
        "the upload is unknown: it was given up, or the server has been restarted; repeat the task";
    refused(404, text)
}

/// The account, or the server, holds as much as it may.
fn too_many_bytes(exceeded: Exceeded) -> Refusal {
    match exceeded {
        // Whatever else is held, one batch alone may be what is too large.
        Exceeded::Account(_) => too_large(),
        Exceeded::Server(most) => {
            let text = format!("the uploads of all accounts hold {most} bytes: try again when others are committed");
            refused(429, &text)
        }
    }
}

/// More than can be held, or stored together.
pub fn too_large() -> Refusal {
    let text = "the batch is too large to be stored at once: read less at a time (maxBytesPerTrigger, maxRowsPerTrigger), or write with commit=ids";
    refused(413, text)
}

pub fn refused(code: u16, text: &str) -> Refusal {
    refusal(code, ERROR_CODE, text)
}

/// The answer to a message that was taken.
pub fn put_answer(out: &mut Vec<u8>, stream: &str, messages: u64) {
    out.extend_from_slice(b"{\"stream\":");
    put_text(out, stream);
    // Writing to memory does not fail.
    let _ = write!(out, ",\"uploaded\":{messages}}}");
}

#[cfg(test)]
#[path = "uploads_tests.rs"]
mod tests;
