//! Reading by Direct Get: one request for a batch after the other, each from where the last one ended.
//!
//! Invariant: one request is under way until the range has ended; sequences only grow.

use serde::Serialize;

use super::batches::Batches;
use super::columns::Row;
use super::frames;
use super::frames::{MessageFrame, MESSAGE_BYTES_MAX};
use super::header_block::{DirectGetOrigin, HeaderBlock};
use super::options::RowOptions;
use super::rows::RowSource;
use crate::common::error::EngineError;
use crate::common::timestamp;

/// A batch ends here, so that a reader that takes its time fills no outbox of the server.
const REQUEST_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Batches without a message, though there are some to come, before it is given up.
const EMPTY_MAX: u32 = 3;

pub struct DirectGetSource {
    subject: String,
    inbox: String,
    sid: String,
    filter: Option<String>,
    request_rows: u64,
    request_bytes: usize,
    /// The number of the request under way.
    number: u64,
    reply: String,
    next_sequence: u64,
    end: u64,
    /// Messages of the batch under way.
    came: u64,
    empty: u32,
    is_finished: bool,
}

#[derive(Serialize)]
struct BulkGetRequest<'a> {
    seq: u64,
    batch: u64,
    max_bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_by_subj: Option<&'a str>,
}

impl DirectGetSource {
    pub fn new(options: &RowOptions) -> Self {
        let filter = match options.subjects.as_slice() {
            [filter] => Some(filter.clone()),
            _ => None,
        };
        Self {
            subject: format!("{}.DIRECT.GET.{}", options.api_prefix, options.stream),
            inbox: options.inbox.clone(),
            sid: options.sid.to_string(),
            filter,
            request_rows: options.request_rows,
            request_bytes: REQUEST_BYTES_MAX,
            number: 0,
            reply: String::new(),
            next_sequence: options.start,
            end: options.end,
            came: 0,
            empty: 0,
            is_finished: options.end <= options.start,
        }
    }

    fn request(&mut self, out: &mut Vec<u8>) {
        let request = BulkGetRequest {
            seq: self.next_sequence,
            batch: self.request_rows.min(self.end - self.next_sequence),
            max_bytes: self.request_bytes,
            next_by_subj: self.filter.as_deref(),
        };
        self.number += 1;
        self.came = 0;
        self.reply = format!("{}.{}", self.inbox, self.number);
        let body = serde_json::to_vec(&request).expect("numbers and texts can be written");
        frames::put_publish(out, &self.subject, &self.reply, &body);
    }

    fn end_of_batch(&mut self, pending: u64, out: &mut Vec<u8>) -> Result<(), EngineError> {
        if pending == 0 || self.next_sequence >= self.end {
            self.is_finished = true;
            return Ok(());
        }
        if self.came == 0 {
            // The next message alone may be larger than a batch.
            self.request_bytes = MESSAGE_BYTES_MAX;
            self.empty += 1;
            if self.empty > EMPTY_MAX {
                return Err(EngineError::Lost(format!(
                    "the server says that {pending} messages are to come and sends none"
                )));
            }
        }
        self.request(out);
        Ok(())
    }
}

impl RowSource for DirectGetSource {
    fn begin(&mut self, out: &mut Vec<u8>) {
        frames::put_subscribe(out, &format!("{}.*", self.inbox), &self.sid);
        if !self.is_finished {
            self.request(out);
        }
    }

    fn accept_frame(
        &mut self,
        frame: &MessageFrame<'_>,
        batches: &mut Batches,
        out: &mut Vec<u8>,
    ) -> Result<(), EngineError> {
        if frame.sid != self.sid.as_bytes() || frame.subject != self.reply.as_bytes() {
            return Ok(());
        }
        let block = HeaderBlock::read(frame.header);
        match block.code() {
            None => {}
            Some(204) => {
                return self.end_of_batch(block.number(b"Nats-Num-Pending").unwrap_or(0), out)
            }
            Some(404) => {
                self.is_finished = true;
                return Ok(());
            }
            Some(503) => {
                return Err(EngineError::Refused(
                    "nobody answers Direct Gets: there is no such stream, or it has allow_direct off; a consumer can read it".to_owned(),
                ))
            }
            Some(_) => return Err(EngineError::Refused(block.text())),
        }
        let Some(origin) = DirectGetOrigin::read(&block) else {
            return Err(EngineError::Protocol(
                "a message of a Direct Get does not say where it comes from".to_owned(),
            ));
        };
        if origin.pending.is_none() {
            return Err(EngineError::Refused(
                "the server does not know Direct Gets of batches (nats-server does from 2.11 on): a consumer can read the stream".to_owned(),
            ));
        }
        self.came += 1;
        self.empty = 0;
        if origin.sequence < self.next_sequence {
            return Ok(());
        }
        if origin.sequence >= self.end {
            self.is_finished = true;
            return Ok(());
        }
        self.next_sequence = origin.sequence + 1;
        let time = std::str::from_utf8(origin.time)
            .ok()
            .and_then(timestamp::read);
        let Some(time_ns) = time else {
            return Err(EngineError::Protocol(format!(
                "message {} has no time",
                origin.sequence
            )));
        };
        batches.push(&Row {
            subject: origin.subject,
            sequence: origin.sequence,
            time_ns,
            header_lines: origin.stored,
            payload: Some(frame.payload),
        })?;
        if self.next_sequence >= self.end {
            self.is_finished = true;
        }
        Ok(())
    }

    fn is_finished(&self) -> bool {
        self.is_finished
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.is_finished = true;
        frames::put_unsubscribe(out, &self.sid);
    }
}
