//! Direct gets: messages as messages, with where they come from in their headers. One, a batch, or the last of each of several subjects.
//!
//! Invariant: every request is answered, by messages or by a status that says why there are none.

use std::collections::BTreeSet;
use std::io::Write;

use super::get_request::GetRequest;
use super::reads::ReadableStream;
use crate::common::subject;
use crate::common::timestamp;
use crate::config::options::API_LEVEL;
use crate::routing::sender::{Outgoing, Sender};
use crate::storage::format::record::Record;
use crate::storage::message::{Counting, Message};
use crate::storage::segment::segment_file::Buffers;
use crate::storage::store::reading::{Cached, FINDS_MAX};

/// Subjects that one request may get the last messages of.
const MULTI_LAST_MAX: usize = 1024;

/// A batch ends here unless the request says otherwise: what an outbox holds.
const BATCH_BYTES_DEFAULT: u64 = 64 * 1024 * 1024;

const PREFIX: &[u8] = b"$JS.API.DIRECT.GET.";

const EMPTY_REQUEST: &str = "408 Empty Request";
const MALFORMED: &str = "408 Malformed Request";
const BAD_REQUEST: &str = "408 Bad Request";
const NOT_FOUND: &str = "404 Message Not Found";
/// The message is there, and the disk does not give it.
const READ_FAILED: &str = "503 Reading Failed";
const NO_RESULTS: &str = "404 No Results";
const TOO_MANY: &str = "413 Too Many Results";
const API_LEVEL_TOO_HIGH: &str = "412 Required Api Level";

/// A request as it came.
#[derive(Debug, Clone, Copy)]
pub struct DirectGetRequest<'a> {
    pub subject: &'a [u8],
    pub reply: &'a [u8],
    pub header: &'a [u8],
    pub body: &'a [u8],
}

impl DirectGetRequest<'_> {
    pub fn bytes(&self) -> usize {
        self.subject.len() + self.reply.len() + self.header.len() + self.body.len()
    }
}

/// What answers requests, one after the other, with the same buffers.
pub struct Answers<'a> {
    source: &'a ReadableStream<'a>,
    sender: &'a mut Sender,
    /// Where the present answer goes.
    reply: &'a [u8],
    header: Vec<u8>,
    buffers: Buffers,
}

/// A message to be sent.
#[derive(Clone, Copy)]
struct FoundMessage<'a> {
    sequence: u64,
    time_ns: i64,
    subject: &'a [u8],
    headers: &'a [u8],
    payload: &'a [u8],
}

impl<'a> From<&'a Message> for FoundMessage<'a> {
    fn from(message: &'a Message) -> Self {
        Self {
            sequence: message.sequence,
            time_ns: message.time_ns,
            subject: message.subject(),
            headers: message.headers(),
            payload: message.payload(),
        }
    }
}

impl<'a> From<&Record<'a>> for FoundMessage<'a> {
    fn from(record: &Record<'a>) -> Self {
        Self {
            sequence: record.sequence,
            time_ns: record.time_ns,
            subject: record.subject,
            headers: record.headers,
            payload: record.payload,
        }
    }
}

/// What a message of a batch says beyond where it comes from.
#[derive(Clone, Copy)]
struct InBatch {
    pending: u64,
    last_sequence: u64,
}

impl<'a> Answers<'a> {
    pub fn new(source: &'a ReadableStream<'a>, sender: &'a mut Sender) -> Self {
        Self {
            source,
            sender,
            reply: b"",
            header: Vec::new(),
            buffers: Buffers::default(),
        }
    }

    /// Reads what was asked for and sends it.
    pub fn answer(&mut self, request: &DirectGetRequest<'a>) {
        self.reply = request.reply;
        let answered = read_request(request).and_then(|wanted| self.run(&wanted));
        if let Err(status) = answered {
            self.status(status);
        }
    }

    /// The same if it is one message, easily found, and no disk has to be waited for; false if nothing was sent.
    pub fn answer_cached(&mut self, request: &DirectGetRequest<'a>) -> bool {
        self.reply = request.reply;
        match read_request(request) {
            Ok(wanted) => self.run_cached(&wanted),
            Err(status) => {
                self.status(status);
                true
            }
        }
    }

    fn run_cached(&mut self, wanted: &GetRequest) -> bool {
        let last = wanted.last_by_subject.as_bytes();
        let one = wanted.batch == 0
            && wanted.start_time_ns.is_none()
            && wanted.next_by_subject.is_empty()
            && wanted.multi_last.is_empty();
        if !one || !(last.is_empty() || subject::is_literal(last)) {
            return false;
        }
        let mut found = self.first(wanted);
        for _ in 0..FINDS_MAX {
            let Some(sequence) = found else {
                break;
            };
            let mut buffers = std::mem::take(&mut self.buffers);
            let store = self.source.store;
            let cached = store
                .messages()
                .read_cached(sequence, &mut buffers, |record| {
                    self.message(record.into(), wanted.no_headers, None);
                });
            self.buffers = buffers;
            if cached != Cached::NoMessage {
                return cached != Cached::Unknown;
            }
            found = self.first(wanted);
            if found == Some(sequence) {
                break;
            }
        }
        self.status(NOT_FOUND);
        true
    }

    fn run(&mut self, request: &GetRequest) -> Result<(), &'static str> {
        if !request.multi_last.is_empty() {
            return self.multi_last(request);
        }
        if request.batch != 0 {
            return self.batch(request);
        }
        let read = self
            .source
            .store
            .messages()
            .read_found(|| self.first(request));
        let message = read.map_err(|_| READ_FAILED)?.ok_or(NOT_FOUND)?;
        self.message((&message).into(), request.no_headers, None);
        Ok(())
    }

    fn read(&self, sequence: u64) -> Result<Option<Message>, &'static str> {
        let read = self.source.store.messages().read_undamaged(sequence);
        read.map_err(|_| READ_FAILED)
    }

    /// The first message that a request asks for.
    fn first(&self, request: &GetRequest) -> Option<u64> {
        let store = self.source.store;
        if !request.last_by_subject.is_empty() {
            return store
                .messages()
                .last_match(request.last_by_subject.as_bytes());
        }
        let from = match request.start_time_ns {
            Some(time_ns) => store.messages().sequence_at(time_ns).ok()?,
            None => request.sequence,
        };
        if request.next_by_subject.is_empty() {
            let exact = request.start_time_ns.is_none() && request.batch == 0;
            return if exact {
                Some(from)
            } else {
                store.messages().next_match(b">", from)
            };
        }
        store
            .messages()
            .next_match(request.next_by_subject.as_bytes(), from)
    }

    fn batch(&mut self, request: &GetRequest) -> Result<(), &'static str> {
        let store = self.source.store;
        let filter: &[u8] = match request.next_by_subject.as_str() {
            "" => b">",
            filter => filter.as_bytes(),
        };
        let mut next = self.first(request);
        let mut pending = next.map_or(0, |first| store.messages().count_matches(filter, first));
        let mut last_sequence = 0;
        let mut left = request.batch;
        let mut bytes_left = batch_bytes(request);
        while let (Some(sequence), 1.., 1..) = (next, left, bytes_left) {
            if let Some(message) = self.read(sequence)? {
                if !request.no_headers {
                    pending = pending.saturating_sub(1);
                }
                let in_batch = InBatch {
                    pending,
                    last_sequence,
                };
                let sent = self.message((&message).into(), request.no_headers, Some(in_batch));
                bytes_left -= sent;
                last_sequence = sequence;
                left -= 1;
            }
            next = store.messages().next_match(filter, sequence + 1);
        }
        if last_sequence == 0 && pending == 0 {
            return Err(NOT_FOUND);
        }
        self.end_of_batch(pending, last_sequence, None);
        Ok(())
    }

    fn multi_last(&mut self, request: &GetRequest) -> Result<(), &'static str> {
        let store = self.source.store;
        let counts = store.messages().counts();
        let up_to = match (request.up_to_sequence, request.up_to_time_ns) {
            (0, None) => counts.last_sequence,
            (0, Some(time_ns)) => {
                let behind = store
                    .messages()
                    .sequence_at(time_ns)
                    .map_err(|_| NO_RESULTS)?;
                behind.saturating_sub(1)
            }
            (sequence, _) => sequence,
        };
        let before_all = request.up_to_time_ns.is_some() && up_to < counts.first_sequence;
        // In files, nats-server finds nothing up to a sequence that is not there yet.
        let beyond = up_to > counts.last_sequence && store.counting() == Counting::File;
        if before_all || beyond {
            return Err(NO_RESULTS);
        }
        let mut wanted = BTreeSet::new();
        for filter in &request.multi_last {
            for last in
                store
                    .messages()
                    .last_of_each_up_to(filter.as_bytes(), up_to, MULTI_LAST_MAX + 1)
            {
                wanted.insert(last);
            }
            if wanted.len() > MULTI_LAST_MAX {
                return Err(TOO_MANY);
            }
        }
        if wanted.is_empty() {
            return Err(NO_RESULTS);
        }
        let wanted: Vec<u64> = wanted.range(request.sequence..).copied().collect();
        let mut pending = wanted.len() as u64;
        let mut last_sequence = 0;
        let mut left = if request.batch > 0 {
            request.batch
        } else {
            i64::MAX
        };
        let mut bytes_left = batch_bytes(request);
        for sequence in wanted {
            if left <= 0 || bytes_left <= 0 {
                break;
            }
            pending -= 1;
            let Some(message) = self.read(sequence)? else {
                continue;
            };
            let in_batch = InBatch {
                pending,
                last_sequence,
            };
            bytes_left -= self.message((&message).into(), false, Some(in_batch));
            last_sequence = sequence;
            left -= 1;
        }
        self.end_of_batch(pending, last_sequence, Some(up_to));
        Ok(())
    }

    /// Sends one message; returns how large it was.
    fn message(
        &mut self,
        message: FoundMessage<'_>,
        no_headers: bool,
        in_batch: Option<InBatch>,
    ) -> i64 {
        self.header.clear();
        if !no_headers {
            self.write_header(&message, in_batch);
        }
        self.sender.send(
            self.source.account,
            &Outgoing {
                subject: self.reply,
                reply: None,
                header: &self.header,
                payload: message.payload,
            },
        );
        (message.subject.len() + message.headers.len() + message.payload.len()) as i64
    }

    fn write_header(&mut self, message: &FoundMessage<'_>, in_batch: Option<InBatch>) {
        let header = &mut self.header;
        // What was stored, without the line that ends it.
        let stored = message.headers;
        match stored.strip_suffix(b"\r\n") {
            Some(open) if !stored.is_empty() => header.extend_from_slice(open),
            _ => header.extend_from_slice(b"NATS/1.0\r\n"),
        }
        header.extend_from_slice(b"Nats-Stream: ");
        header.extend_from_slice(self.source.name.as_bytes());
        header.extend_from_slice(b"\r\nNats-Subject: ");
        header.extend_from_slice(message.subject);
        put_number(header, b"\r\nNats-Sequence: ", message.sequence);
        header.extend_from_slice(b"\r\nNats-Time-Stamp: ");
        timestamp::write(header, message.time_ns);
        if let Some(in_batch) = in_batch {
            put_number(header, b"\r\nNats-Num-Pending: ", in_batch.pending);
            put_number(header, b"\r\nNats-Last-Sequence: ", in_batch.last_sequence);
        }
        header.extend_from_slice(b"\r\n\r\n");
    }

    fn end_of_batch(&mut self, pending: u64, last_sequence: u64, up_to: Option<u64>) {
        let mut header = b"NATS/1.0 204 EOB\r\n".to_vec();
        // Writing to memory does not fail.
        let _ = write!(
            header,
            "Nats-Num-Pending: {pending}\r\nNats-Last-Sequence: {last_sequence}\r\n"
        );
        if let Some(up_to) = up_to {
            let _ = write!(header, "Nats-UpTo-Sequence: {up_to}\r\n");
        }
        header.extend_from_slice(b"\r\n");
        self.send_header(&header);
    }

    fn status(&mut self, status: &str) {
        self.send_header(format!("NATS/1.0 {status}\r\n\r\n").as_bytes());
    }

    fn send_header(&mut self, header: &[u8]) {
        self.sender.send(
            self.source.account,
            &Outgoing {
                subject: self.reply,
                reply: None,
                header,
                payload: b"",
            },
        );
    }
}

fn put_number(out: &mut Vec<u8>, name: &[u8], value: u64) {
    out.extend_from_slice(name);
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn batch_bytes(request: &GetRequest) -> i64 {
    match request.bytes_max {
        1.. => request.bytes_max,
        _ => BATCH_BYTES_DEFAULT as i64,
    }
}

/// What a request asks for, or why it cannot be answered.
fn read_request(request: &DirectGetRequest<'_>) -> Result<GetRequest, &'static str> {
    if !is_level_served(request.header) {
        return Err(API_LEVEL_TOO_HIGH);
    }
    let tail = &request.subject[PREFIX.len().min(request.subject.len())..];
    let named = memchr::memchr(b'.', tail).map(|dot| &tail[dot + 1..]);
    let wanted = match named {
        Some(named) => request_by_subject(named, request.body)?,
        None if request.body.is_empty() => return Err(EMPTY_REQUEST),
        None => GetRequest::read(request.body).map_err(|_| MALFORMED)?,
    };
    check(&wanted)?;
    Ok(wanted)
}

/// The subject is in the request's own subject; the body may only say how to answer.
fn request_by_subject(named: &[u8], body: &[u8]) -> Result<GetRequest, &'static str> {
    let mut request = match body {
        b"" => GetRequest::default(),
        body => GetRequest::read(body).map_err(|_| MALFORMED)?,
    };
    let plain = GetRequest {
        no_headers: request.no_headers,
        bytes_max: request.bytes_max,
        has_unknown: request.has_unknown,
        ..GetRequest::default()
    };
    if request != plain {
        return Err(BAD_REQUEST);
    }
    request.last_by_subject = String::from_utf8_lossy(named).into_owned();
    if !subject::is_valid_subscription(named) {
        return Err(BAD_REQUEST);
    }
    Ok(request)
}

fn check(request: &GetRequest) -> Result<(), &'static str> {
    let sequence = request.sequence > 0;
    let start = request.start_time_ns.is_some();
    let last = !request.last_by_subject.is_empty();
    let next = !request.next_by_subject.is_empty();
    let multi = !request.multi_last.is_empty();
    if !(sequence || start || last || next || multi) {
        return Err(EMPTY_REQUEST);
    }
    let conflicts = [
        sequence && last,
        sequence && start,
        start && last,
        last && next,
        last && request.batch > 0,
        last && multi,
        next && multi,
        request.up_to_sequence > 0 && request.up_to_time_ns.is_some(),
    ];
    if conflicts.contains(&true) {
        return Err(BAD_REQUEST);
    }
    Ok(())
}

/// Whether this server has the API level that a request asks for, if it asks.
fn is_level_served(header: &[u8]) -> bool {
    let headers = crate::stream::publish::headers::PublishHeaders::read(header);
    match headers.required_api_level {
        None => true,
        Some(text) => std::str::from_utf8(text)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
            .is_some_and(|level| level <= u64::from(API_LEVEL)),
    }
}
