//! Reading by a consumer that needs no acknowledgements: ordered, in memory, and gone soon after its reader is.
//!
//! What is asked for is bounded in messages and bytes, so a reader that takes its time fills no outbox, and nothing much beyond the end of the range is
//! sent. Sequence and time of a message are in its reply subject, and so is the consumer's own count: where that jumps, something was lost on the
//! way, and a new consumer begins after the last message.
//!
//! Invariant: `asked` messages are still to come from requests under way; sequences only grow.

use serde::{Deserialize, Serialize};

use super::batches::Batches;
use super::columns::Row;
use super::frames;
use super::frames::{MessageFrame, MESSAGE_BYTES_MAX};
use super::header_block::HeaderBlock;
use super::options::RowOptions;
use super::rows::RowSource;
use crate::common::error::EngineError;
use crate::wire::ack_subject;

/// New consumers after gaps and failures, for one range.
const RESTARTS_MAX: u32 = 16;

/// Bytes that one request asks for: two of them are well within what servers keep for a client.
const REQUEST_BYTES_MAX: usize = 8 * 1024 * 1024;

/// How long a request waits for messages that were there when it was made.
const REQUEST_WAIT_NS: u64 = 2_000_000_000;

/// Requests that end without a message, though some are to come, before it is given up.
const EMPTY_MAX: u32 = 8;

/// The server removes the consumer when it has not been asked for so long.
const INACTIVE_NS: u64 = 60_000_000_000;

pub struct Deliveries {
    stream: String,
    api_prefix: String,
    inbox: String,
    sid_base: u64,
    subjects: Vec<String>,
    request_rows: u64,
    request_bytes: usize,
    next_sequence: u64,
    end: u64,
    /// Counts the consumers; every one has its own name, subscription and inbox.
    generation: u32,
    sid: String,
    name: String,
    is_made: bool,
    /// The consumer's own count of what it has delivered.
    delivered: u64,
    asked: u64,
    /// Messages to come, as the server last said.
    pending: u64,
    /// Whether a message came since a request ended early.
    has_progressed: bool,
    empty: u32,
    is_finished: bool,
}

#[derive(Serialize)]
struct CreateRequest<'a> {
    stream_name: &'a str,
    config: BulkConsumerConfig<'a>,
}

#[derive(Serialize)]
struct BulkConsumerConfig<'a> {
    name: &'a str,
    deliver_policy: &'a str,
    opt_start_seq: u64,
    ack_policy: &'a str,
    max_deliver: i64,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    filter_subjects: &'a [String],
    inactive_threshold: u64,
    mem_storage: bool,
    num_replicas: u32,
}

#[derive(Serialize)]
struct NextRequest {
    batch: u64,
    max_bytes: usize,
    expires: u64,
}

/// What a server says about a consumer, or why there is none.
#[derive(Deserialize)]
struct ConsumerAnswer {
    #[serde(default)]
    num_pending: u64,
    error: Option<ConsumerAnswerError>,
}

#[derive(Deserialize)]
struct ConsumerAnswerError {
    #[serde(default)]
    description: String,
}

impl Deliveries {
    pub fn new(options: &RowOptions) -> Self {
        Self {
            stream: options.stream.clone(),
            api_prefix: options.api_prefix.clone(),
            inbox: options.inbox.clone(),
            sid_base: options.sid,
            subjects: options.subjects.clone(),
            request_rows: options.request_rows,
            request_bytes: REQUEST_BYTES_MAX,
            next_sequence: options.start,
            end: options.end,
            generation: 0,
            sid: String::new(),
            name: String::new(),
            is_made: false,
            delivered: 0,
            asked: 0,
            pending: 0,
            has_progressed: false,
            empty: 0,
            is_finished: options.end <= options.start,
        }
    }

    /// Asks for a consumer of its own.
    fn create(&mut self, out: &mut Vec<u8>) {
        self.sid = match self.generation {
            0 => self.sid_base.to_string(),
            generation => format!("{}r{generation}", self.sid_base),
        };
        let whose = xxhash_rust::xxh3::xxh3_64(self.inbox.as_bytes());
        self.name = format!("rows-{whose:016x}-{}", self.generation);
        self.is_made = false;
        self.delivered = 0;
        self.asked = 0;
        self.pending = 0;
        frames::put_subscribe(out, &self.inbox_of("*"), &self.sid);
        let request = CreateRequest {
            stream_name: &self.stream,
            config: BulkConsumerConfig {
                name: &self.name,
                deliver_policy: "by_start_sequence",
                opt_start_seq: self.next_sequence,
                ack_policy: "none",
                max_deliver: 1,
                filter_subjects: &self.subjects,
                inactive_threshold: INACTIVE_NS,
                mem_storage: true,
                num_replicas: 1,
            },
        };
        let body = serde_json::to_vec(&request).expect("numbers and texts can be written");
        frames::put_publish(
            out,
            &self.api("CONSUMER.CREATE"),
            &self.inbox_of("made"),
            &body,
        );
    }

    fn api(&self, operation: &str) -> String {
        format!(
            "{}.{operation}.{}.{}",
            self.api_prefix, self.stream, self.name
        )
    }

    fn inbox_of(&self, what: &str) -> String {
        format!("{}.{}.{what}", self.inbox, self.generation)
    }

    /// Restarts after the last message.
    fn restart(&mut self, why: &str, out: &mut Vec<u8>) -> Result<(), EngineError> {
        self.forget(out);
        self.generation += 1;
        if self.generation > RESTARTS_MAX {
            return Err(EngineError::Lost(format!(
                "delivery broke off {RESTARTS_MAX} times, the last time before sequence {}: {why}",
                self.next_sequence
            )));
        }
        self.create(out);
        Ok(())
    }

    fn forget(&mut self, out: &mut Vec<u8>) {
        if self.name.is_empty() {
            return;
        }
        frames::put_unsubscribe(out, &self.sid);
        // Nobody waits for the answer, but a request without a reply subject may not count as one.
        frames::put_publish(
            out,
            &self.api("CONSUMER.DELETE"),
            &self.inbox_of("gone"),
            b"",
        );
    }

    /// Keeps messages coming.
    fn write_pull(&mut self, out: &mut Vec<u8>) {
        if !self.is_made || self.asked > self.request_rows / 2 {
            return;
        }
        let to_come = self.pending.min(self.end - self.next_sequence);
        let batch = to_come.saturating_sub(self.asked).min(self.request_rows);
        if batch == 0 {
            return;
        }
        self.asked += batch;
        let request = NextRequest {
            batch,
            max_bytes: self.request_bytes,
            expires: REQUEST_WAIT_NS,
        };
        let body = serde_json::to_vec(&request).expect("numbers can be written");
        frames::put_publish(
            out,
            &self.api("CONSUMER.MSG.NEXT"),
            &self.inbox_of("next"),
            &body,
        );
    }

    fn delivery(
        &mut self,
        frame: &MessageFrame<'_>,
        numbers: &ack_subject::AckSubject,
        batches: &mut Batches,
        out: &mut Vec<u8>,
    ) -> Result<(), EngineError> {
        if numbers.consumer_sequence <= self.delivered {
            return Ok(());
        }
        if numbers.consumer_sequence != self.delivered + 1 {
            return self.restart("messages were lost on the way", out);
        }
        self.delivered += 1;
        self.asked = self.asked.saturating_sub(1);
        self.pending = numbers.pending;
        self.has_progressed = true;
        self.empty = 0;
        let sequence = numbers.stream_sequence;
        if sequence >= self.end {
            self.is_finished = true;
            return Ok(());
        }
        if sequence >= self.next_sequence {
            self.next_sequence = sequence + 1;
            batches.push(&Row {
                subject: frame.subject,
                sequence,
                time_ns: numbers.time_ns,
                header_lines: HeaderBlock::read(frame.header).lines,
                payload: Some(frame.payload),
            })?;
        }
        if self.next_sequence >= self.end || self.pending == 0 {
            self.is_finished = true;
            return Ok(());
        }
        self.write_pull(out);
        Ok(())
    }

    /// The server has created the consumer, or reports its state.
    fn answer(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<(), EngineError> {
        let answer: ConsumerAnswer = serde_json::from_slice(body).map_err(|error| {
            EngineError::Protocol(format!("the server's answer is not understood: {error}"))
        })?;
        if let Some(error) = answer.error {
            if self.is_made {
                return self.restart(&error.description, out);
            }
            return Err(EngineError::Refused(format!(
                "no consumer can be made: {}",
                error.description
            )));
        }
        self.is_made = true;
        self.pending = answer.num_pending;
        if self.pending == 0 {
            self.is_finished = true;
            return Ok(());
        }
        self.write_pull(out);
        Ok(())
    }

    /// A request has ended, or something is wrong.
    fn status(
        &mut self,
        subject: &[u8],
        block: &HeaderBlock<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), EngineError> {
        let unsent = block
            .number(b"Nats-Pending-Messages")
            .unwrap_or(self.asked)
            .min(self.asked);
        let text = block.text();
        match block.code() {
            Some(100) => return Ok(()),
            Some(503) if subject == self.inbox_of("made").as_bytes() => {
                return Err(EngineError::Refused(
                    "nobody answers: JetStream is not enabled, or the API has another prefix"
                        .to_owned(),
                ))
            }
            // A request that is bounded in bytes says so when its last message was sent.
            Some(409) if text.contains("Batch Completed") => {
                self.asked -= block
                    .number(b"Nats-Pending-Messages")
                    .unwrap_or(0)
                    .min(self.asked);
                self.write_pull(out);
                return Ok(());
            }
            Some(404 | 408) => {
                self.asked -= unsent;
                if !self.has_progressed {
                    return self.look(out);
                }
            }
            Some(409) if text.contains("MaxBytes") && text.contains("Exceeds") => {
                self.asked -= unsent;
                if !self.has_progressed {
                    // The next message alone is larger than a request.
                    self.request_bytes = MESSAGE_BYTES_MAX;
                }
            }
            Some(409) if text.contains("Exceeded") => return Err(EngineError::Refused(text)),
            _ => return self.restart(&text, out),
        }
        self.has_progressed = false;
        self.write_pull(out);
        Ok(())
    }

    /// Nothing came: perhaps what was to come has been removed.
    fn look(&mut self, out: &mut Vec<u8>) -> Result<(), EngineError> {
        self.empty += 1;
        if self.empty > EMPTY_MAX {
            return Err(EngineError::Lost(format!(
                "the server says that {} messages are to come and sends none",
                self.pending
            )));
        }
        frames::put_publish(out, &self.api("CONSUMER.INFO"), &self.inbox_of("info"), b"");
        Ok(())
    }
}

impl RowSource for Deliveries {
    fn begin(&mut self, out: &mut Vec<u8>) {
        if !self.is_finished {
            self.create(out);
        }
    }

    fn accept_frame(
        &mut self,
        frame: &MessageFrame<'_>,
        batches: &mut Batches,
        out: &mut Vec<u8>,
    ) -> Result<(), EngineError> {
        if frame.sid != self.sid.as_bytes() {
            return Ok(());
        }
        if let Some(numbers) = frame.reply.and_then(ack_subject::read) {
            return self.delivery(frame, &numbers, batches, out);
        }
        let block = HeaderBlock::read(frame.header);
        if block.code().is_some() {
            return self.status(frame.subject, &block, out);
        }
        self.answer(frame.payload, out)
    }

    fn is_finished(&self) -> bool {
        self.is_finished
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.is_finished = true;
        self.forget(out);
    }
}
