//! The thread that reads one stream of another server.
//!
//! It connects, finds the stream, makes a consumer that begins where the job says, and hands over what comes. Whatever goes wrong is noted and tried again:
//! at the next address, after a pause that grows as long as nothing comes. Invariants: messages are handed over in the order of their consumer without a
//! gap, and acknowledged only when they are on disk here.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::channel::{ReaderEnd, RemoteChannel};
use super::connection::{read_information, RemoteConnection};
use super::delivery;
use super::delivery::{HeardFrame, RemoteDelivery};
use super::origin_api::{OriginApi, OriginStream};
use super::pulls::{Pull, Pulls, EXPIRES_NS, HEARTBEAT_NS, SLOTS};
use super::remotes::Remote;
use super::trouble::Trouble;
use crate::common::events::Events;
use crate::common::threads;
use crate::stream::replication::origin::Origin;
use crate::wire::reply::Reply;

/// The first pause after a failure, and the longest; each is twice the one before.
const PAUSE_MIN: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(8);

/// The longest pause if the origin is behind a link: a missing link is known at once, without a connection attempt.
const LINKED_PAUSE_MAX: Duration = Duration::from_secs(1);

/// The longest that a read waits before the thread looks at what is wanted of it.
const TICK: Duration = Duration::from_millis(100);

/// The same where acknowledgements are due as soon as something is on disk.
const ACKNOWLEDGING_TICK: Duration = Duration::from_millis(5);

/// The shortest read, for what has come already.
const GLANCE: Duration = Duration::from_millis(1);

/// A server that has a request of ours and says nothing for so long is taken for dead.
const SILENCE_MAX: Duration = Duration::from_nanos(HEARTBEAT_NS * 2 + HEARTBEAT_NS / 2);

/// The subscriptions of requests; that for answers is below.
const FIRST_PULL_SID: u64 = 10;

/// What one reader is for.
pub struct Assignment {
    pub remote: Arc<Remote>,
    pub origin: Arc<Origin>,
    /// Of its consumer, or what the names of its consumers begin with: nobody else has it.
    pub consumer: String,
    /// How it names itself to the server.
    pub client: String,
}

/// A reader; it ends when this is dropped.
pub struct OriginReader {
    channel: Arc<RemoteChannel>,
}

impl OriginReader {
    /// Starts the thread.
    pub fn start(
        assignment: Assignment,
        channel: Arc<RemoteChannel>,
        events: &Arc<Events>,
    ) -> Result<Self, String> {
        let counted = assignment
            .remote
            .count_reader()
            .ok_or("too many streams of other servers are read already")?;
        let pause_max = match assignment.remote.linked {
            Some(_) => LINKED_PAUSE_MAX,
            None => PAUSE_MAX,
        };
        let mut thread = Thread {
            api: assignment.remote.api(),
            consumer: assignment.consumer.clone(),
            assignment,
            channel: Arc::clone(&channel),
            address: 0,
            next_sid: FIRST_PULL_SID,
            pause: PAUSE_MIN,
            pause_max,
        };
        let heard = Arc::clone(events);
        let run = move || {
            let _counted = counted;
            heard.fail_point("remote");
            thread.run();
            Ok(())
        };
        threads::spawn(events, "jetlake-remote", run)
            .map_err(|error| format!("no thread for it: {error}"))?;
        Ok(Self { channel })
    }

    pub fn channel(&self) -> &Arc<RemoteChannel> {
        &self.channel
    }

    /// The stream no longer has this origin.
    pub fn say_farewell(&self) {
        self.channel.end(ReaderEnd::Farewell);
    }
}

impl Drop for OriginReader {
    fn drop(&mut self) {
        if self.channel.wait_for_end(Duration::ZERO).is_none() {
            self.channel.end(ReaderEnd::Pause);
        }
    }
}

struct Thread {
    assignment: Assignment,
    channel: Arc<RemoteChannel>,
    api: String,
    /// The consumer of this session.
    consumer: String,
    /// Which one of the remote's.
    address: usize,
    next_sid: u64,
    pause: Duration,
    pause_max: Duration,
}

/// What a session knows.
struct ReaderSession {
    pulls: Pulls,
    first_sid: u64,
    inboxes: [String; SLOTS],
    last_sequence: u64,
    last_consumer_sequence: Option<u64>,
    /// Sequences with where they are acknowledged, where that is asked for.
    unacknowledged: VecDeque<(u64, Box<[u8]>)>,
    acknowledges: bool,
    /// There is another server to go to when this one leaves.
    has_choice: bool,
    heard_at: Instant,
}

impl Thread {
    fn run(&mut self) {
        loop {
            let trouble = self.connect_and_read();
            if trouble != Trouble::Stopped {
                self.channel.note(trouble);
            }
            if self.channel.wait_for_end(self.pause).is_some() {
                return;
            }
            self.pause = (self.pause * 2).min(self.pause_max);
        }
    }

    /// Reads through one connection, until something is wrong with it.
    fn connect_and_read(&mut self) -> Trouble {
        let addresses = &self.assignment.remote.options.addresses;
        let address = addresses[self.address % addresses.len()].clone();
        let opened =
            RemoteConnection::open(&self.assignment.remote, &address, &self.assignment.client);
        let mut connection = match opened {
            Ok(connection) => connection,
            Err(trouble) => {
                self.address += 1;
                return trouble;
            }
        };
        loop {
            let Err(trouble) = self.read_stream(&mut connection);
            match &trouble {
                Trouble::Anew => continue,
                Trouble::Stopped => {
                    self.leave(&mut connection);
                    return trouble;
                }
                // The connection is good, and what it is for may be there later.
                Trouble::Api { .. } | Trouble::Lost(_) => {
                    self.channel.note(trouble.clone());
                    let paused = self.pause_on(&mut connection);
                    self.pause = (self.pause * 2).min(self.pause_max);
                    if let Err(trouble) = paused {
                        if trouble == Trouble::Stopped {
                            self.leave(&mut connection);
                        }
                        return trouble;
                    }
                }
                _ => {
                    self.address += 1;
                    return trouble;
                }
            }
        }
    }

    fn api(&self) -> OriginApi<'_> {
        OriginApi {
            api: &self.api,
            origin: &self.assignment.origin,
            name: &self.consumer,
        }
    }

    /// The server may as well forget the consumer at once, if nobody will come back to it.
    fn leave(&self, connection: &mut RemoteConnection) {
        if self.channel.wait_for_end(Duration::ZERO) == Some(ReaderEnd::Farewell) {
            let mut line = Vec::new();
            self.api().put_deletion(&mut line);
            // If that does not reach it, an unused consumer is left behind there.
            let _ = connection
                .send(&line)
                .and_then(|()| connection.wait_until_read());
        }
    }

    /// Waits, and keeps the connection alive meanwhile.
    fn pause_on(&self, connection: &mut RemoteConnection) -> Result<(), Trouble> {
        let until = Instant::now() + self.pause;
        while Instant::now() < until {
            if self.channel.wait_for_end(TICK.min(self.pause)).is_some() {
                return Err(Trouble::Stopped);
            }
            self.answer_pings(connection)?;
        }
        Ok(())
    }

    fn answer_pings(&self, connection: &mut RemoteConnection) -> Result<(), Trouble> {
        connection.receive(GLANCE)?;
        while let Some(reply) = connection.next_reply()? {
            match reply {
                Reply::Ping => connection.send(b"PONG\r\n")?,
                Reply::Error(text) => return Err(Trouble::error_line(text)),
                _ => {}
            }
        }
        Ok(())
    }

    /// One session: finds the stream, has it begun, and reads.
    fn read_stream(&mut self, connection: &mut RemoteConnection) -> Result<Infallible, Trouble> {
        let found = self.api().find_stream(connection)?;
        self.channel.heard();
        self.consumer.clone_from(&self.assignment.consumer);
        if !found.is_consumed {
            // The one before may still be there, and begin elsewhere.
            let nonce = getrandom::u64().map_err(|error| Trouble::from(io::Error::from(error)))?;
            self.consumer.push_str(&format!("_{nonce:016x}"));
        }
        self.channel.offer(found.clone());
        let start = loop {
            match self.channel.wait_for_start(TICK * 10)? {
                Some(start) => break start,
                None => self.answer_pings(connection)?,
            }
        };
        let pending = self.api().begin(connection, &found, start)?;
        self.channel.set_pending(pending);
        let mut session = self.subscribe(connection, &found)?;
        let outcome = self.converse(connection, &mut session);
        let mut line = Vec::new();
        for slot in 0..SLOTS as u64 {
            line.extend_from_slice(format!("UNSUB {}\r\n", session.first_sid + slot).as_bytes());
        }
        if !found.is_consumed {
            self.api().put_deletion(&mut line);
        }
        // A connection that is broken says so by itself.
        let _ = connection.send(&line);
        outcome
    }

    fn subscribe(
        &mut self,
        connection: &mut RemoteConnection,
        found: &OriginStream,
    ) -> Result<ReaderSession, Trouble> {
        let first_sid = self.next_sid;
        self.next_sid += SLOTS as u64;
        let inboxes: [String; SLOTS] = std::array::from_fn(|_| connection.new_inbox("P."));
        let mut line = Vec::new();
        for (inbox, sid) in inboxes.iter().zip(first_sid..) {
            line.extend_from_slice(format!("SUB {inbox} {sid}\r\n").as_bytes());
        }
        connection.send(&line)?;
        Ok(ReaderSession {
            pulls: Pulls::default(),
            first_sid,
            inboxes,
            last_sequence: 0,
            last_consumer_sequence: (!found.is_consumed).then_some(0),
            unacknowledged: VecDeque::new(),
            acknowledges: found.is_consumed,
            has_choice: self.assignment.remote.options.addresses.len() > 1,
            heard_at: Instant::now(),
        })
    }

    /// Asks, reads, hands over and acknowledges, until something is wrong.
    fn converse(
        &mut self,
        connection: &mut RemoteConnection,
        session: &mut ReaderSession,
    ) -> Result<Infallible, Trouble> {
        let next_subject = self.api().next_subject();
        let mut came = Vec::new();
        let mut out = Vec::new();
        loop {
            let (waiting, waiting_bytes, confirmed) = self.channel.waiting()?;
            session.put_acknowledgements(confirmed, &mut out);
            let payload_bytes_max = connection.information.max_payload;
            while let Some(pull) =
                session
                    .pulls
                    .next_request(waiting, waiting_bytes, payload_bytes_max)
            {
                session.put_request(&next_subject, &pull, &mut out);
            }
            if !out.is_empty() {
                connection.send(&out)?;
                out.clear();
            }
            let timeout = if !session.pulls.is_under_way() {
                self.channel.wait_for_room(TICK);
                session.heard_at = Instant::now();
                GLANCE
            } else if session.unacknowledged.is_empty() {
                TICK
            } else {
                ACKNOWLEDGING_TICK
            };
            if connection.receive(timeout)? {
                session.heard_at = Instant::now();
                self.pause = PAUSE_MIN;
                self.channel.heard();
            } else if session.heard_at.elapsed() > SILENCE_MAX {
                return Err(Trouble::Unreachable("it fell silent".to_owned()));
            }
            let mut pending = None;
            let heard = session.read_replies(connection, &mut came, &mut pending, &mut out);
            self.channel.push(&mut came, pending.unwrap_or(0))?;
            heard?;
        }
    }
}

impl ReaderSession {
    /// Takes everything that has come as a whole.
    fn read_replies(
        &mut self,
        connection: &mut RemoteConnection,
        came: &mut Vec<RemoteDelivery>,
        pending: &mut Option<u64>,
        out: &mut Vec<u8>,
    ) -> Result<(), Trouble> {
        while let Some(reply) = connection.next_reply()? {
            match &reply {
                Reply::Ping => out.extend_from_slice(b"PONG\r\n"),
                Reply::Error(text) => return Err(Trouble::error_line(text)),
                Reply::Information(json) => {
                    if read_information(json)?.is_leaving && self.has_choice {
                        let text = "the server is leaving, another one is tried".to_owned();
                        return Err(Trouble::Unreachable(text));
                    }
                }
                Reply::Message { sid, .. } => {
                    let Some(slot) = self.slot(sid) else {
                        continue;
                    };
                    let heard = delivery::read(&reply)
                        .ok_or(Trouble::NotUnderstood("a message makes no sense"))?;
                    self.hear_one(slot, heard, came, pending)?;
                }
                Reply::Pong | Reply::Acknowledged => {}
            }
        }
        Ok(())
    }

    fn slot(&self, sid: &[u8]) -> Option<usize> {
        let sid: u64 = std::str::from_utf8(sid).ok()?.parse().ok()?;
        let slot = usize::try_from(sid.checked_sub(self.first_sid)?).ok()?;
        (slot < SLOTS).then_some(slot)
    }

    fn hear_one(
        &mut self,
        slot: usize,
        heard: HeardFrame<'_>,
        came: &mut Vec<RemoteDelivery>,
        still_pending: &mut Option<u64>,
    ) -> Result<(), Trouble> {
        match heard {
            HeardFrame::Alive => Ok(()),
            HeardFrame::Ended(code, words) => {
                self.pulls.ended(slot);
                self.end(code, words)
            }
            HeardFrame::Message {
                delivery,
                consumer_sequence,
                pending,
                reply,
            } => {
                if !self.pulls.came(slot) {
                    return Err(Trouble::NotUnderstood("more comes than was asked for"));
                }
                let is_next = self
                    .last_consumer_sequence
                    .is_none_or(|last| consumer_sequence == last + 1);
                if !is_next {
                    return Err(Trouble::Lost("a message was lost on the way".to_owned()));
                }
                self.last_consumer_sequence = Some(consumer_sequence);
                if self.acknowledges {
                    self.unacknowledged
                        .push_back((delivery.sequence, reply.into()));
                }
                // What comes again was handed over before.
                if delivery.sequence > self.last_sequence {
                    self.last_sequence = delivery.sequence;
                    *still_pending = Some(pending);
                    came.push(delivery);
                }
                Ok(())
            }
        }
    }

    /// A request is over.
    fn end(&mut self, code: u16, words: &[u8]) -> Result<(), Trouble> {
        let words = String::from_utf8_lossy(words);
        match code {
            // Nothing came in its time, or it was filled by size.
            404 | 408 => Ok(()),
            409 if words.starts_with("Message Size Exceeds MaxBytes") => {
                self.pulls.ask_for_single();
                Ok(())
            }
            409 if words.starts_with("Exceeded MaxBytes") => Ok(()),
            409 if words.starts_with("Batch Completed") => Ok(()),
            503 => Err(Trouble::Lost("the consumer is gone".to_owned())),
            _ => Err(Trouble::Lost(format!(
                "a request for messages ended with {code} {}",
                words.chars().take(60).collect::<String>()
            ))),
        }
    }

    fn put_request(&self, subject: &str, pull: &Pull, out: &mut Vec<u8>) {
        let mut body = serde_json::json!({
            "batch": pull.batch, "expires": EXPIRES_NS, "idle_heartbeat": HEARTBEAT_NS,
        });
        if pull.bytes_max > 0 {
            body["max_bytes"] = pull.bytes_max.into();
        }
        let body = body.to_string();
        let inbox = &self.inboxes[pull.slot];
        let line = format!("PUB {subject} {inbox} {}\r\n{body}\r\n", body.len());
        out.extend_from_slice(line.as_bytes());
    }

    /// Appends the acknowledgements of everything up to a sequence.
    fn put_acknowledgements(&mut self, confirmed: u64, out: &mut Vec<u8>) {
        while let Some((sequence, reply)) = self.unacknowledged.front() {
            if *sequence > confirmed {
                break;
            }
            out.extend_from_slice(b"PUB ");
            out.extend_from_slice(reply);
            out.extend_from_slice(b" 0\r\n\r\n");
            self.unacknowledged.pop_front();
        }
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
