//! A client's publishing of rows, without its socket: batches in, publishes out, and every acknowledgement checked.
//!
//! Every message has a reply subject of its own that ends in its number, so an acknowledgement says which message it is for. Of an upload only some have one,
//! and what is said of a message holds for all before it.
//! Invariant: `window` holds what was sent from the oldest message on that is not acknowledged; `outstanding` of them are not.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::RecordBatch;
use serde::Deserialize;

use super::content_ids::ContentIds;
use super::frames;
use super::frames::{Frames, MessageFrame};
use super::header_block::{number, HeaderBlock};
use super::options::{Ids, PublishOptions, UploadOptions};
use super::publish_columns::PublishColumns;
use crate::common::error::EngineError;
use crate::common::subject;
use crate::wire::trusted_headers;

/// What is handed out at a time: some hundred messages, so that a socket is never waited for long with acknowledgements unread.
const SEND_BYTES_MAX: usize = 1024 * 1024;

/// Messages of an upload for which one answer is asked.
const UPLOADED_PER_ANSWER: u64 = 64;

pub struct PublishWriter {
    options: Arc<PublishOptions>,
    sid: String,
    frames: Frames,
    ids: Option<ContentIds>,
    batch: Option<PublishColumns>,
    next_row: usize,
    /// Rows of batches before this one.
    rows_before: u64,
    window: VecDeque<Sent>,
    /// The number of the window's first message.
    window_first: u64,
    outstanding: usize,
    outstanding_bytes: usize,
    stored: u64,
    duplicates: u64,
    out: Vec<u8>,
    header: Vec<u8>,
    /// Of the last message, on which the end of an upload goes, too.
    last_subject: Vec<u8>,
    has_failed: bool,
}

struct Sent {
    size_bytes: u32,
    is_acknowledged: bool,
}

#[derive(Deserialize)]
struct Acknowledgement<'a> {
    #[serde(borrow, default)]
    stream: Cow<'a, str>,
    #[serde(default)]
    seq: u64,
    #[serde(default)]
    duplicate: bool,
    #[serde(default)]
    uploaded: u64,
    #[serde(borrow)]
    error: Option<RefusedPublish<'a>>,
}

#[derive(Deserialize)]
struct RefusedPublish<'a> {
    #[serde(borrow, default)]
    description: Cow<'a, str>,
}

impl PublishWriter {
    pub fn new(options: &[u8]) -> Result<Self, EngineError> {
        let options = PublishOptions::from_json(options)?;
        let sid = options.sid.to_string();
        let mut out = Vec::new();
        frames::put_subscribe(&mut out, &format!("{}.*", options.inbox), &sid);
        Ok(Self {
            ids: (options.ids == Ids::Content).then(|| ContentIds::new(&options.id_prefix)),
            options: Arc::new(options),
            sid,
            frames: Frames::default(),
            batch: None,
            next_row: 0,
            rows_before: 0,
            window: VecDeque::new(),
            window_first: 0,
            outstanding: 0,
            outstanding_bytes: 0,
            stored: 0,
            duplicates: 0,
            out,
            header: Vec::new(),
            last_subject: Vec::new(),
            has_failed: false,
        })
    }

    /// Takes rows, when those before are all sent.
    pub fn add(&mut self, batch: &RecordBatch) -> Result<(), EngineError> {
        self.check_not_failed()?;
        if self.waiting() > 0 {
            return Err(EngineError::Options(format!(
                "{} rows are not sent yet: send them first",
                self.waiting()
            )));
        }
        let columns = PublishColumns::read(batch)?;
        if self.options.ids == Ids::Column && !columns.has_message_id() {
            return Err(EngineError::Data(
                "ids come from the column msg_id, which is missing: add it, or choose other ids"
                    .to_owned(),
            ));
        }
        if self.options.ids != Ids::Column && columns.has_message_id() {
            return Err(EngineError::Data(
                "there is a column msg_id, but ids do not come from it: drop it, or choose ids of the column".to_owned(),
            ));
        }
        self.rows_before += self.next_row as u64;
        self.next_row = 0;
        self.batch = Some(columns);
        Ok(())
    }

    /// What to send now.
    pub fn to_send(&mut self) -> Result<Vec<u8>, EngineError> {
        self.check_not_failed()?;
        let Some(batch) = self.batch.take() else {
            return Ok(std::mem::take(&mut self.out));
        };
        let put = self.put_rows(&batch);
        if self.next_row < batch.rows() {
            self.batch = Some(batch);
        }
        if let Err(error) = put {
            self.has_failed = true;
            return Err(error);
        }
        Ok(std::mem::take(&mut self.out))
    }

    fn put_rows(&mut self, batch: &PublishColumns) -> Result<(), EngineError> {
        let options = Arc::clone(&self.options);
        let mut headers = Vec::new();
        while self.next_row < batch.rows() && self.has_room() && self.out.len() < SEND_BYTES_MAX {
            headers.clear();
            batch.put_headers(self.next_row, &mut headers);
            self.put_row(&options, batch, &mut headers)?;
            self.next_row += 1;
        }
        Ok(())
    }

    fn has_room(&self) -> bool {
        self.outstanding < self.options.outstanding_max
            && (self.outstanding == 0
                || self.outstanding_bytes < self.options.outstanding_bytes_max)
    }

    fn put_row<'a>(
        &mut self,
        options: &PublishOptions,
        batch: &'a PublishColumns,
        headers: &mut [(&'a [u8], &'a [u8])],
    ) -> Result<(), EngineError> {
        let row = self.next_row;
        let own_subject = options.subject.as_bytes();
        let target = match batch.subject(row) {
            Some(target) => target,
            None if own_subject.is_empty() => {
                return Err(self.bad_row("has no subject: give it one, or a subject for all rows"))
            }
            None => own_subject,
        };
        if !is_publishable(target) {
            let shown = String::from_utf8_lossy(target);
            return Err(self.bad_row(&format!("has an invalid subject {shown:?}: use tokens that are not empty, without wildcards and blanks")));
        }
        let data = batch.data(row);
        self.put_header(batch, headers, target)?;
        let total = self.header.len() + data.len();
        if options.payload_bytes_max > 0 && total > options.payload_bytes_max {
            return Err(self.bad_row(&format!(
                "has {total} bytes, and the server takes {} at most: raise its max_payload",
                options.payload_bytes_max
            )));
        }
        let is_answered = options.ids != Ids::Upload || self.needs_answer(target.len() + total);
        self.put_frame(options, target, data, is_answered);
        Ok(())
    }

    /// Puts a message with the headers in `header`, and remembers it.
    fn put_frame(
        &mut self,
        options: &PublishOptions,
        target: &[u8],
        data: &[u8],
        is_answered: bool,
    ) {
        let message_number = self.next_number();
        let total = self.header.len() + data.len();
        let mut digits = itoa::Buffer::new();
        let before = self.out.len();
        let out = &mut self.out;
        out.extend_from_slice(if self.header.is_empty() {
            b"PUB "
        } else {
            b"HPUB "
        });
        out.extend_from_slice(target);
        out.push(b' ');
        if is_answered {
            out.extend_from_slice(options.inbox.as_bytes());
            out.push(b'.');
            out.extend_from_slice(digits.format(message_number).as_bytes());
            out.push(b' ');
        }
        if !self.header.is_empty() {
            out.extend_from_slice(digits.format(self.header.len()).as_bytes());
            out.push(b' ');
        }
        out.extend_from_slice(digits.format(total).as_bytes());
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&self.header);
        out.extend_from_slice(data);
        out.extend_from_slice(b"\r\n");
        let size_bytes = out.len() - before;
        self.window.push_back(Sent {
            size_bytes: size_bytes as u32,
            is_acknowledged: false,
        });
        self.outstanding += 1;
        self.outstanding_bytes += size_bytes;
    }

    fn next_number(&self) -> u64 {
        self.window_first + self.window.len() as u64
    }

    /// Whether the next message of an upload, of about `size_bytes`, must ask for an answer: now and then, and before
    /// the window is full.
    fn needs_answer(&self, size_bytes: usize) -> bool {
        (self.next_number() + 1) % UPLOADED_PER_ANSWER == 0
            || self.outstanding + 1 >= self.options.outstanding_max
            || self.outstanding_bytes + size_bytes >= self.options.outstanding_bytes_max
    }

    /// All rows have been added: says so to the server, if they are an upload.
    pub fn end(&mut self) -> Result<(), EngineError> {
        self.check_not_failed()?;
        let messages = self.next_number();
        if self.options.ids != Ids::Upload || messages == 0 {
            return Ok(());
        }
        let options = Arc::clone(&self.options);
        self.header.clear();
        self.header.extend_from_slice(b"NATS/1.0\r\n");
        let end = format!("{}/{messages}/end", options.upload.id);
        self.put_upload_line(&end);
        self.header.extend_from_slice(b"\r\n");
        let target = std::mem::take(&mut self.last_subject);
        self.put_frame(&options, &target, b"", true);
        Ok(())
    }

    fn put_upload_line(&mut self, value: &str) {
        self.header.extend_from_slice(trusted_headers::UPLOAD);
        self.header.extend_from_slice(b": ");
        self.header.extend_from_slice(value.as_bytes());
        self.header.extend_from_slice(b"\r\n");
    }

    /// Writes the headers of a message, its id among them.
    fn put_header(
        &mut self,
        batch: &PublishColumns,
        headers: &mut [(&[u8], &[u8])],
        target: &[u8],
    ) -> Result<(), EngineError> {
        const MESSAGE_ID: &[u8] = b"Nats-Msg-Id";
        self.header.clear();
        // The answers to an upload name its stream, before anything is stored.
        let has_stream = !self.options.stream.is_empty() && self.options.ids != Ids::Upload;
        if headers.is_empty() && !has_stream && self.options.ids == Ids::None {
            return Ok(());
        }
        self.header.extend_from_slice(b"NATS/1.0\r\n");
        for (name, value) in headers.iter() {
            if !is_header_name(name) || memchr::memchr2(b'\r', b'\n', value).is_some() {
                let shown = String::from_utf8_lossy(name);
                return Err(self.bad_row(&format!(
                    "has the header {shown:?}, which a message cannot have: no line breaks, and no colon or blank in its name"
                )));
            }
            if self.options.ids != Ids::None && name.eq_ignore_ascii_case(MESSAGE_ID) {
                return Err(self.bad_row(
                    "has the header Nats-Msg-Id, which is for its id: drop it, or choose no other ids",
                ));
            }
            self.header.extend_from_slice(name);
            self.header.extend_from_slice(b": ");
            self.header.extend_from_slice(value);
            self.header.extend_from_slice(b"\r\n");
        }
        if has_stream {
            self.header.extend_from_slice(b"Nats-Expected-Stream: ");
            self.header
                .extend_from_slice(self.options.stream.as_bytes());
            self.header.extend_from_slice(b"\r\n");
        }
        let data = batch.data(self.next_row);
        match self.options.ids {
            Ids::None => {}
            Ids::Content => {
                self.header.extend_from_slice(b"Nats-Msg-Id: ");
                if let Some(ids) = &mut self.ids {
                    ids.put(target, headers, data, &mut self.header)?;
                }
                self.header.extend_from_slice(b"\r\n");
            }
            Ids::Upload => {
                let number = self.next_number() + 1;
                let UploadOptions { id, query, run } = &self.options.upload;
                let value = match number {
                    1 => format!("{id}/1/{query}/{run}"),
                    _ => format!("{id}/{number}"),
                };
                self.put_upload_line(&value);
                self.last_subject.clear();
                self.last_subject.extend_from_slice(target);
            }
            Ids::Column => {
                let id = batch.message_id(self.next_row).unwrap_or_default();
                if id.is_empty() || memchr::memchr2(b'\r', b'\n', id).is_some() {
                    return Err(self.bad_row("has no msg_id, or one with a line break"));
                }
                self.header.extend_from_slice(b"Nats-Msg-Id: ");
                self.header.extend_from_slice(id);
                self.header.extend_from_slice(b"\r\n");
            }
        }
        self.header.extend_from_slice(b"\r\n");
        Ok(())
    }

    fn bad_row(&self, what: &str) -> EngineError {
        let place = self.rows_before + self.next_row as u64 + 1;
        EngineError::Data(format!("row {place} {what}"))
    }

    /// Takes what was read from the server.
    pub fn feed(&mut self, data: &[u8]) -> Result<(), EngineError> {
        self.check_not_failed()?;
        let mut frames = std::mem::take(&mut self.frames);
        let mut out = std::mem::take(&mut self.out);
        let taken = frames.feed(data, &mut out, |frame, _| self.accept_frame(frame));
        self.frames = frames;
        self.out = out;
        self.has_failed = taken.is_err();
        taken
    }

    fn accept_frame(&mut self, frame: &MessageFrame<'_>) -> Result<(), EngineError> {
        if frame.sid != self.sid.as_bytes() {
            return Ok(());
        }
        let message_number = frame
            .subject
            .strip_prefix(self.options.inbox.as_bytes())
            .and_then(|rest| rest.strip_prefix(b"."))
            .and_then(number);
        let sent_end = self.next_number();
        let Some(message_number) = message_number.filter(|number| *number < sent_end) else {
            return Err(EngineError::Protocol(
                "there is an acknowledgement of a message that was not sent".to_owned(),
            ));
        };
        let is_duplicate = self.check(frame, message_number)?;
        if self.options.ids == Ids::Upload {
            self.acknowledge_through(message_number);
            return Ok(());
        }
        let Some(place) = message_number.checked_sub(self.window_first) else {
            return Ok(());
        };
        let sent = &mut self.window[place as usize];
        if std::mem::replace(&mut sent.is_acknowledged, true) {
            return Ok(());
        }
        self.outstanding -= 1;
        self.outstanding_bytes -= sent.size_bytes as usize;
        self.duplicates += u64::from(is_duplicate);
        self.stored += u64::from(!is_duplicate);
        while self.window.front().is_some_and(|sent| sent.is_acknowledged) {
            self.window.pop_front();
            self.window_first += 1;
        }
        Ok(())
    }

    /// Everything of an upload up to a message has come.
    fn acknowledge_through(&mut self, message_number: u64) {
        while self.window_first <= message_number {
            let Some(sent) = self.window.pop_front() else {
                return;
            };
            self.window_first += 1;
            self.outstanding -= 1;
            self.outstanding_bytes -= sent.size_bytes as usize;
        }
    }

    /// Whether the server had the message already; an error if it was not stored.
    fn check(&self, frame: &MessageFrame<'_>, message_number: u64) -> Result<bool, EngineError> {
        let block = HeaderBlock::read(frame.header);
        if block.code() == Some(503) {
            return Err(EngineError::Refused(
                "no stream takes messages on this subject: add it to the subjects of the stream"
                    .to_owned(),
            ));
        }
        if block.code().is_some() {
            return Err(EngineError::Refused(block.text()));
        }
        let Ok(answer) = serde_json::from_slice::<Acknowledgement<'_>>(frame.payload) else {
            return Err(EngineError::Protocol(
                "the reply to a publish did not come from a stream: does a service listen on the same subject?".to_owned(),
            ));
        };
        if let Some(error) = answer.error {
            return Err(EngineError::Refused(error.description.into_owned()));
        }
        // The end of an upload is a message more than has come.
        let is_uploaded = (message_number..=message_number + 1).contains(&answer.uploaded);
        let is_good = match self.options.ids {
            Ids::Upload => is_uploaded,
            _ => answer.seq > 0,
        };
        if !is_good {
            return Err(EngineError::Protocol(
                "an acknowledgement says no sequence, or not what was sent: write with commit=ids"
                    .to_owned(),
            ));
        }
        if !self.options.stream.is_empty() && answer.stream != self.options.stream {
            return Err(EngineError::Refused(format!(
                "the stream {:?} took a message that was for {:?}",
                answer.stream, self.options.stream
            )));
        }
        Ok(answer.duplicate)
    }

    fn check_not_failed(&self) -> Result<(), EngineError> {
        match self.has_failed {
            true => Err(EngineError::Lost(
                "the writer has failed before: make a new one".to_owned(),
            )),
            false => Ok(()),
        }
    }

    pub fn waiting(&self) -> usize {
        self.batch
            .as_ref()
            .map_or(0, |batch| batch.rows() - self.next_row)
    }

    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Messages that the server has stored, or that have been uploaded.
    pub fn stored(&self) -> u64 {
        match self.options.ids {
            // The last thing that was acknowledged is the end.
            Ids::Upload => self.window_first.saturating_sub(1),
            _ => self.stored,
        }
    }

    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }
}

/// Whether a message can be sent to it: a literal subject that can stand in a line.
fn is_publishable(target: &[u8]) -> bool {
    subject::is_literal(target) && target.iter().all(|byte| *byte > b' ' && *byte != 0x7f)
}

fn is_header_name(name: &[u8]) -> bool {
    let is_allowed = |byte: &u8| *byte > b' ' && *byte != b':' && *byte != 0x7f;
    !name.is_empty() && name.iter().all(is_allowed)
}
