//! Requests and answers, a limited number of them under way: what `store` and `direct_get` have in common.
//!
//! A connection writes until its window is full and then reads; for all answers of one read it sends new requests with
//! one write. Each request has a reply subject of its own below one wildcard subscription, as in the client libraries.

use std::collections::VecDeque;
use std::time::Instant;

use super::client::{Client, Delivered};
use super::latency::Samples;
use super::workload::{LoadOutcome, BATCH_BYTES, SAMPLE_EVERY};
use crate::common::error::EngineError;

/// Prime, so that multiples of it meet every one of fewer subjects once before they meet any twice.
const SUBJECT_STRIDE: u64 = 2_654_435_761;

/// What is asked and what counts as an answer.
pub trait Exchange {
    /// Appends question `number` to what is written next.
    fn write_request(&mut self, number: u64, output: &mut Vec<u8>);

    /// Returns the number of the question that is answered with this, `None` if an answer is still to come, or why the load has failed.
    fn on_answer(&mut self, answer: &Delivered<'_>) -> Result<Option<u64>, String>;
}

/// Asks `questions` times, with at most `in_flight` unanswered.
pub fn run(
    client: &mut Client,
    exchange: &mut impl Exchange,
    questions: u64,
    in_flight: u64,
) -> LoadOutcome {
    debug_assert!(in_flight > 0);
    let mut timing = Timing::new(in_flight);
    let mut output = Vec::with_capacity(2 * BATCH_BYTES);
    let (mut asked, mut answered) = (0, 0);
    while answered < questions {
        let asked_until = questions.min(answered + in_flight);
        while asked < asked_until {
            output.clear();
            while asked < asked_until && output.len() < BATCH_BYTES {
                timing.asked(asked);
                exchange.write_request(asked, &mut output);
                asked += 1;
            }
            client.send(&output)?;
        }
        let mut failure = None;
        client
            .read(
                |answer| match exchange.on_answer(&answer) {
                    Ok(None) => {}
                    Ok(Some(number)) => {
                        answered += 1;
                        timing.answered(number);
                    }
                    Err(reason) => failure = failure.take().or(Some(reason)),
                },
                |_| {},
            )
            .map_err(|error| {
                EngineError::Load(format!(
                    "{answered} of {questions} answers arrived, then: {error}"
                ))
            })?;
        if let Some(reason) = failure {
            return Err(EngineError::Load(format!(
                "after {answered} of {questions} answers: {reason}"
            )));
        }
        debug_assert!(answered <= asked);
    }
    Ok((timing.samples, Instant::now()))
}

/// When the questions that are timed were asked.
struct Timing {
    every: u64,
    under_way: VecDeque<(u64, Instant)>,
    samples: Samples,
}

impl Timing {
    fn new(in_flight: u64) -> Self {
        Self {
            every: if in_flight < SAMPLE_EVERY {
                1
            } else {
                SAMPLE_EVERY
            },
            under_way: VecDeque::new(),
            samples: Samples::default(),
        }
    }

    fn asked(&mut self, number: u64) {
        if number % self.every == 0 {
            self.under_way.push_back((number, Instant::now()));
        }
    }

    fn answered(&mut self, number: u64) {
        if number % self.every != 0 {
            return;
        }
        // Servers answer in order, mostly: it is the first.
        let position = self
            .under_way
            .iter()
            .position(|(asked, _)| *asked == number);
        if let Some((_, asked_at)) = position.and_then(|at| self.under_way.remove(at)) {
            self.samples.add(asked_at.elapsed().as_nanos() as u64);
        }
    }
}

/// The reply subjects of one connection.
pub struct ReplyInbox {
    /// `_INBOX.<22 characters>.`, the length that clients have.
    prefix: Vec<u8>,
}

impl ReplyInbox {
    pub fn new(connection: u64) -> Self {
        let nonce = getrandom::u64().expect("the system has random numbers");
        Self {
            prefix: format!("_INBOX.{nonce:016x}{connection:06}.").into_bytes(),
        }
    }

    pub fn subscribe(&self, client: &mut Client) -> Result<(), EngineError> {
        let subscription = [b"SUB ", self.prefix.as_slice(), b"* 1\r\n"].concat();
        client.send(&subscription)?;
        client.synchronise()
    }

    /// Appends the reply subject of question `number`.
    pub fn append(&self, number: u64, output: &mut Vec<u8>) {
        output.extend_from_slice(&self.prefix);
        append_decimal(number, output);
    }

    /// Returns which question a message to this subject answers.
    pub fn number(&self, subject: &[u8]) -> Result<u64, String> {
        subject
            .strip_prefix(self.prefix.as_slice())
            .and_then(leading_decimal)
            .ok_or_else(|| {
                format!(
                    "an answer to nothing that was asked, {}",
                    String::from_utf8_lossy(subject)
                )
            })
    }
}

pub fn append_decimal(number: u64, output: &mut Vec<u8>) {
    output.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Reads the digits at the front, if there are any.
pub fn leading_decimal(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&text[..digits]).ok()?.parse().ok()
}

/// Which of the subjects is number so much of a connection's: the connections take turns, and after `subjects` messages each had its own.
pub fn subject_number(number: u64, connection: u64, connections: u64, subjects: u64) -> u64 {
    (number * connections + connection) % subjects * SUBJECT_STRIDE % subjects
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn an_inbox_knows_which_question_was_answered() {
        let inbox = ReplyInbox::new(7);
        let mut reply = Vec::new();
        inbox.append(1_234, &mut reply);

        assert_eq!(inbox.number(&reply), Ok(1_234));
        assert_eq!(reply.len(), "_INBOX.".len() + 22 + ".1234".len());
        assert!(inbox.number(b"_INBOX.other.1").is_err());
        assert!(ReplyInbox::new(7).number(&reply).is_err());
    }

    #[test]
    fn every_subject_is_met_once_before_any_is_met_again() {
        for subjects in [1_u64, 2, 1_000, 4_096, 99_991] {
            let mut met = HashSet::new();
            for number in 0..subjects.div_ceil(4) {
                for connection in 0..4 {
                    met.insert(subject_number(number, connection, 4, subjects));
                }
            }

            assert_eq!(met.len() as u64, subjects);
        }
    }

    #[test]
    fn answers_in_any_order_are_timed() {
        let mut timing = Timing::new(2);
        timing.asked(0);
        timing.asked(1);

        timing.answered(1);
        timing.answered(0);
        timing.answered(0);

        assert!(timing.under_way.is_empty());
        assert!(timing.samples.percentiles().is_some());
    }
}
