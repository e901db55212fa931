//! Messages of a stream, fetched in batches: pull requests in a loop, a limited number of them under way.
//!
//! The consumer exists before the load begins. A new request goes out once as many messages have come as one asks for,
//! so that with two under way the server always has one to work on. Every message is checked to be the expected one.

use std::collections::VecDeque;
use std::time::Instant;

use super::client::{Client, Delivered};
use super::delivery;
use super::delivery::{DeliveryListener, Order, StreamPosition};
use super::exchange::ReplyInbox;
use super::latency::Samples;
use super::plan::{Acknowledge, LoadPlan};
use super::workload::{LoadOutcome, LoadWork};
use crate::common::error::EngineError;

/// Longer than a load lasts: silence distinguishes a server that has less than it was asked for from a slow one.
const EXPIRES_NANOS: u64 = 60_000_000_000;

/// The number of the inbox where the last acknowledgement is answered; requests are numbered from 0.
const LAST_ANSWER: u64 = u64::MAX;

/// Makes the connection ready to receive messages.
pub fn prepare(
    plan: &LoadPlan,
    client: &mut Client,
    connection: u64,
) -> Result<LoadWork, EngineError> {
    let mut fetcher = Fetcher::new(plan, connection);
    fetcher.inbox.subscribe(client)?;
    Ok(Box::new(move |plan, client| {
        run(client, &mut fetcher, plan.messages, plan.in_flight)
    }))
}

/// Fetches this many messages, and waits for the last acknowledgement if there is one.
fn run(client: &mut Client, fetcher: &mut Fetcher, messages: u64, in_flight: u64) -> LoadOutcome {
    let requests = messages / fetcher.batch;
    let mut samples = Samples::default();
    let mut asked_at = VecDeque::new();
    let mut asked = 0;
    let mut output = Vec::new();
    while !fetcher.is_done(messages) {
        output.clear();
        while asked < requests.min(fetcher.received / fetcher.batch + in_flight) {
            fetcher.write_request(asked, &mut output);
            asked_at.push_back(Instant::now());
            asked += 1;
        }
        if !output.is_empty() {
            client.send(&output)?;
        }
        let (batch, before) = (fetcher.batch, fetcher.received);
        delivery::listen(client, fetcher, messages)?;
        for _ in before / batch..fetcher.received / batch {
            if let Some(at) = asked_at.pop_front() {
                samples.add(at.elapsed().as_nanos() as u64);
            }
        }
        fetcher.send_acknowledgements(client)?;
    }
    Ok((samples, Instant::now()))
}

/// One connection's requests.
///
/// Invariant: `acknowledgements[..]` are whole lines, and each of `ends` is where one of them ends.
struct Fetcher {
    inbox: ReplyInbox,
    /// `PUB <subject of the API> `.
    line_start: Vec<u8>,
    /// With its size and the ends of its lines.
    body: Vec<u8>,
    batch: u64,
    order: Order,
    received: u64,
    acknowledge: Acknowledge,
    acknowledgements: Vec<u8>,
    ends: Vec<usize>,
    last_is_answered: bool,
}

impl Fetcher {
    fn new(plan: &LoadPlan, connection: u64) -> Self {
        let body = format!(r#"{{"batch":{},"expires":{EXPIRES_NANOS}}}"#, plan.batch);
        let (stream, consumer) = (&plan.stream, &plan.consumer);
        Self {
            inbox: ReplyInbox::new(connection),
            line_start: format!("PUB $JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer} ").into_bytes(),
            body: format!(" {}\r\n{body}\r\n", body.len()).into_bytes(),
            batch: plan.batch,
            order: Order::new(plan.first_sequence, plan.publishers == 1),
            received: 0,
            acknowledge: plan.acknowledge,
            acknowledgements: Vec::new(),
            ends: Vec::new(),
            last_is_answered: plan.acknowledge == Acknowledge::None,
        }
    }

    fn is_done(&self, messages: u64) -> bool {
        self.received == messages && self.last_is_answered
    }

    fn write_request(&mut self, number: u64, output: &mut Vec<u8>) {
        output.extend_from_slice(&self.line_start);
        self.inbox.append(number, output);
        output.extend_from_slice(&self.body);
    }

    /// Sends what one read made due.
    fn send_acknowledgements(&mut self, client: &mut Client) -> Result<(), EngineError> {
        let each = self.acknowledge == Acknowledge::Each;
        let mut start = 0;
        for end in self.ends.drain(..) {
            if each || end == self.acknowledgements.len() {
                client.send(&self.acknowledgements[start..end])?;
                start = end;
            }
        }
        self.acknowledgements.clear();
        Ok(())
    }
}

impl DeliveryListener for Fetcher {
    fn on_message(&mut self, message: &Delivered<'_>, messages: u64) -> Result<(), String> {
        let Some(position) = StreamPosition::of(message) else {
            if self.inbox.number(message.subject)? == LAST_ANSWER && message.body.is_empty() {
                self.last_is_answered = true;
                return Ok(());
            }
            let text = String::from_utf8_lossy(message.body);
            return Err(format!("instead of a message: {}", text.trim_end()));
        };
        self.order.meet(position)?;
        self.received += 1;
        if self.acknowledge != Acknowledge::None {
            let output = &mut self.acknowledgements;
            output.extend_from_slice(b"PUB ");
            output.extend_from_slice(
                message
                    .reply
                    .expect("a position is read from a reply subject"),
            );
            if self.received == messages {
                // Its answer says that this and everything before has arrived.
                output.push(b' ');
                self.inbox.append(LAST_ANSWER, output);
            }
            output.extend_from_slice(b" 4\r\n+ACK\r\n");
            self.ends.push(output.len());
        }
        Ok(())
    }

    fn received(&self) -> u64 {
        self.received
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetcher(fields: &str) -> Fetcher {
        let json = format!(
            r#"{{"url": "x:1", "workload": "fetch", "publishers": 1, "subscribers": 0, "payload_bytes": 0, "messages": 4, "subject": "s", "stream": "S", "consumer": "c"{fields}}}"#
        );
        Fetcher::new(&LoadPlan::from_json(json.as_bytes()).unwrap(), 0)
    }

    fn on_message(fetcher: &mut Fetcher, sequence: u64) -> Result<(), String> {
        let reply = format!("$JS.ACK.S.c.1.{sequence}.{sequence}.99.0");
        let message = Delivered {
            subject: b"s",
            reply: Some(reply.as_bytes()),
            body: b"...",
        };
        fetcher.on_message(&message, 4)
    }

    fn hear_status(fetcher: &mut Fetcher, number: u64, body: &str) -> Result<(), String> {
        let mut subject = Vec::new();
        fetcher.inbox.append(number, &mut subject);
        let message = Delivered {
            subject: &subject,
            reply: None,
            body: body.as_bytes(),
        };
        fetcher.on_message(&message, 4)
    }

    #[test]
    fn a_request_says_how_many_messages_it_wants() {
        let mut fetcher = fetcher(r#", "batch": 2"#);
        let mut output = Vec::new();

        fetcher.write_request(7, &mut output);

        let text = String::from_utf8(output).unwrap();
        assert!(
            text.starts_with("PUB $JS.API.CONSUMER.MSG.NEXT.S.c _INBOX."),
            "{text}"
        );
        assert!(
            text.ends_with(".7 33\r\n{\"batch\":2,\"expires\":60000000000}\r\n"),
            "{text}"
        );
    }

    #[test]
    fn without_acknowledgements_the_last_message_is_the_end() {
        let mut fetcher = fetcher("");

        for sequence in 1..=4 {
            assert!(!fetcher.is_done(4));
            assert_eq!(on_message(&mut fetcher, sequence), Ok(()));
        }

        assert!(fetcher.is_done(4));
        assert!(fetcher.acknowledgements.is_empty());
    }

    #[test]
    fn the_answer_to_the_last_acknowledgement_is_the_end() {
        let mut fetcher = fetcher(r#", "acknowledge": "read""#);

        for sequence in 1..=4 {
            assert_eq!(on_message(&mut fetcher, sequence), Ok(()));
        }

        let text = String::from_utf8(fetcher.acknowledgements.clone()).unwrap();
        assert!(
            text.starts_with("PUB $JS.ACK.S.c.1.1.1.99.0 4\r\n+ACK\r\nPUB "),
            "{text}"
        );
        assert_eq!(text.matches(" _INBOX.").count(), 1);
        assert_eq!(fetcher.ends.len(), 4);
        assert!(!fetcher.is_done(4));
        assert_eq!(hear_status(&mut fetcher, LAST_ANSWER, ""), Ok(()));
        assert!(fetcher.is_done(4));
    }

    #[test]
    fn a_status_or_a_gap_is_a_failure() {
        let mut fetcher = fetcher("");

        assert!(
            hear_status(&mut fetcher, 0, "NATS/1.0 408 Request Timeout\r\n\r\n")
                .unwrap_err()
                .ends_with("NATS/1.0 408 Request Timeout")
        );
        assert!(on_message(&mut fetcher, 2)
            .unwrap_err()
            .contains("where 1 was due"));
    }
}
