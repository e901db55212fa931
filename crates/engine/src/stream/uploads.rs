//! Uploads that are open: messages that tasks of a query have sent, and that wait until the query names them in a commit.
//!
//! A message of an upload has a header `Jetlake-Upload: <upload>/<number>`, and comes on its own subject, so that whoever sends it needs the right to.
//! The first one says `<upload>/1/<query>/<run>`: when a query runs anew, what its earlier run has left is dropped. The end is
//! `<upload>/<messages>/end`, and no message. Only what has a reply subject is answered: with how many have come, or why no more is taken.
//! Nothing of an upload is in the store, or survives the server. Invariant: the bytes of all uploads of a server are at most `UPLOADED_BYTES_MAX`.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use ahash::AHashMap;

use super::acknowledgement::{put_text, Refusal};
use super::held_messages::{Held, HeldMessages};
use super::publish_checks::refusal;

/// What the uploads of a server take up together at most.
pub const UPLOADED_BYTES_MAX: usize = 512 * 1024 * 1024;

/// Tasks that may upload to one stream at a time.
const UPLOADS_MAX: usize = 4096;

/// An id, and the name of a query or a run, has no more bytes.
const NAME_BYTES_MAX: usize = 64;

/// An upload that nothing was added to for so long is given up: its query may have tasks that take longer than others.
const IDLE_NS_MAX: i64 = 3_600_000_000_000;

/// What goes wrong with uploads has no number of its own at nats-server; this one stands for anything about a stream.
const ERROR_CODE: u16 = 10051;

pub const HEADER: &[u8] = b"Jetlake-Upload";

#[derive(Debug, Default)]
struct Upload {
    query: String,
    run: String,
    messages: HeldMessages,
    bytes: usize,
    touched_ns: i64,
    has_ended: bool,
    /// Why nothing more is taken.
    refused: Option<Refusal>,
}

pub struct Uploads {
    open: AHashMap<String, Upload>,
    /// Of all streams.
    bytes_of_server: Arc<AtomicUsize>,
}

/// What the header of a message says.
#[derive(Debug, PartialEq, Eq)]
struct Word<'a> {
    upload: &'a str,
    number: u64,
    place: Place<'a>,
}

#[derive(Debug, PartialEq, Eq)]
enum Place<'a> {
    First { query: &'a str, run: &'a str },
    Further,
    End,
}

impl<'a> Word<'a> {
    fn read(value: &'a [u8]) -> Option<Self> {
        let mut parts = std::str::from_utf8(value).ok()?.split('/');
        let upload = parts.next().filter(|name| is_name(name))?;
        let number = parts.next()?.parse().ok()?;
        let place = match (parts.next(), parts.next(), parts.next()) {
            (None, ..) => Place::Further,
            (Some("end"), None, _) => Place::End,
            (Some(query), Some(run), None) if number == 1 && is_name(query) && is_name(run) => {
                Place::First { query, run }
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

/// Can stand between the slashes of the header, and in a stored one.
pub fn is_name(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_allowed)
}

impl Uploads {
    pub fn new(bytes_of_server: Arc<AtomicUsize>) -> Self {
        Self {
            open: AHashMap::new(),
            bytes_of_server,
        }
    }

    /// No uploads, counted with those of the same server.
    pub fn none(&self) -> Self {
        Self::new(Arc::clone(&self.bytes_of_server))
    }

    /// Takes a message, whose header of uploads says `value`; returns how many have come.
    pub fn take(&mut self, value: &[u8], message: Held<'_>, now_ns: i64) -> Result<u64, Refusal> {
        let word = Word::read(value)
            .ok_or_else(|| refused(400, "the header Jetlake-Upload cannot be read"))?;
        if let Place::First { query, run } = word.place {
            self.begin(word.upload, query, run, now_ns)?;
        }
        let Some(upload) = self.open.get_mut(word.upload) else {
            let text = "the upload is unknown: it was given up, or the server has been restarted; repeat the task";
            return Err(refused(404, text));
        };
        upload.touched_ns = now_ns;
        if let Some(refusal) = &upload.refused {
            return Err(refusal.clone());
        }
        let taken = Self::add(upload, &word, message, &self.bytes_of_server);
        if let Err(refusal) = &taken {
            upload.refused = Some(refusal.clone());
        }
        taken
    }

    fn begin(&mut self, id: &str, query: &str, run: &str, now_ns: i64) -> Result<(), Refusal> {
        self.drop_if(|_, upload| upload.query == query && upload.run != run);
        if self.open.contains_key(id) {
            return Err(refused(400, "there is an upload with this id already"));
        }
        if self.open.len() >= UPLOADS_MAX {
            let text = format!("{UPLOADS_MAX} uploads are open: commit or abort others first");
            return Err(refused(429, &text));
        }
        let upload = Upload {
            query: query.to_owned(),
            run: run.to_owned(),
            touched_ns: now_ns,
            ..Upload::default()
        };
        self.open.insert(id.to_owned(), upload);
        Ok(())
    }

    fn add(
        upload: &mut Upload,
        word: &Word<'_>,
        message: Held<'_>,
        bytes_of_server: &AtomicUsize,
    ) -> Result<u64, Refusal> {
        let held = upload.messages.len() as u64;
        let is_end = word.place == Place::End;
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
        if bytes_of_server.fetch_add(bytes, Ordering::Relaxed) + bytes > UPLOADED_BYTES_MAX {
            bytes_of_server.fetch_sub(bytes, Ordering::Relaxed);
            return Err(too_large());
        }
        upload.bytes += bytes;
        upload.messages.push(message);
        Ok(held + 1)
    }

    /// The messages of an upload, if it has ended with so many.
    pub fn get(&self, id: &str, messages: u64) -> Result<&HeldMessages, Refusal> {
        let upload = self.open.get(id);
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

    pub fn drop_all(&mut self, ids: &[&str]) {
        self.drop_if(|id, _| ids.contains(&id));
    }

    /// Gives up those that nothing was added to for too long.
    pub fn expire(&mut self, now_ns: i64) {
        if !self.open.is_empty() {
            self.drop_if(|_, upload| now_ns.saturating_sub(upload.touched_ns) >= IDLE_NS_MAX);
        }
    }

    fn drop_if(&mut self, is_over: impl Fn(&str, &Upload) -> bool) {
        let bytes_of_server = &self.bytes_of_server;
        self.open.retain(|id, upload| {
            let goes = is_over(id, upload);
            if goes {
                bytes_of_server.fetch_sub(upload.bytes, Ordering::Relaxed);
            }
            !goes
        });
    }
}

impl Drop for Uploads {
    fn drop(&mut self) {
        self.drop_if(|_, _| true);
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
