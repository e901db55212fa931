//! Handles acknowledgements: what each of their forms does to the deliveries, and who is notified. The second half of
//! `DeliveredMessages`.
//!
//! Invariant: an acknowledgement with a reply subject is answered once what it changed is on disk.

use super::body::AckBody;
use super::delivered::{DeliveredMessages, CONFIRMATIONS_MAX};
use crate::consumer::advisory::{Advisory, AdvisoryPublisher};
use crate::consumer::sampler::Sampler;
use crate::consumer::settings::{AckPolicy, ConsumerSettings};
use crate::wire::ack_subject::AckSubject;

/// A message that is to come again after a delay does not come earlier, however short that is.
const AGAIN_NS_MIN: i64 = 10_000_000;

/// An acknowledgement as it came.
#[derive(Clone, Copy)]
pub struct IncomingAck<'a> {
    pub numbers: AckSubject,
    pub body: AckBody<'a>,
    pub reply: &'a [u8],
}

impl<'a> IncomingAck<'a> {
    /// Whether the message is done with.
    pub fn settles(&self) -> bool {
        matches!(
            self.body,
            AckBody::Acknowledge | AckBody::Next(_) | AckBody::Terminate { .. }
        )
    }

    /// The pull request that came with it.
    pub fn request(&self) -> Option<&'a [u8]> {
        match self.body {
            AckBody::Next(pull) => Some(pull),
            _ => None,
        }
    }
}

impl DeliveredMessages {
    /// Whether an acknowledgement is of something that was delivered, or settles nothing.
    pub fn concerns(&self, ack: &IncomingAck<'_>) -> bool {
        let was_delivered = ack.numbers.stream_sequence < self.acks.next_stream;
        was_delivered || !ack.settles()
    }

    /// Takes an acknowledgement.
    pub fn acknowledge(
        &mut self,
        settings: &ConsumerSettings,
        ack: &IncomingAck<'_>,
        now_ns: i64,
        publisher: &mut AdvisoryPublisher<'_>,
    ) {
        let numbers = &ack.numbers;
        let sequence = numbers.stream_sequence;
        let mut is_held = false;
        match ack.body {
            AckBody::Acknowledge | AckBody::Next(_) => {
                is_held = self.acknowledge_message(settings, numbers, now_ns, publisher);
            }
            AckBody::Nak { delay_ns } => {
                self.refuse(settings, numbers, delay_ns, now_ns, publisher)
            }
            AckBody::Progress => self.acks.touch(sequence, now_ns),
            AckBody::Terminate { reason } => {
                is_held = self.terminate(settings, numbers, reason, publisher);
            }
            AckBody::Unknown => {}
        }
        if ack.reply.is_empty() || ack.request().is_some() {
            return;
        }
        if is_held {
            if self.letters.held_confirmations() < CONFIRMATIONS_MAX {
                self.letters.hold_confirmation(sequence, ack.reply);
            }
        } else {
            self.await_confirmation(ack.reply);
        }
    }

    /// Holds back what concerns a terminated message; false if this does not.
    fn hold_acknowledgement(&mut self, settings: &ConsumerSettings, numbers: &AckSubject) -> bool {
        let (sequence, consumer_sequence) = (numbers.stream_sequence, numbers.consumer_sequence);
        self.letters
            .hold_acknowledgement(settings.ack_policy, sequence, consumer_sequence)
    }

    /// Settles a message; true if that has to wait for a dead letter.
    fn acknowledge_message(
        &mut self,
        settings: &ConsumerSettings,
        numbers: &AckSubject,
        now_ns: i64,
        publisher: &mut AdvisoryPublisher<'_>,
    ) -> bool {
        if self.hold_acknowledgement(settings, numbers) {
            return true;
        }
        let sequence = numbers.stream_sequence;
        match settings.ack_policy {
            AckPolicy::Explicit => {
                let delivered_ns = self.acks.entry(sequence).map(|entry| entry.time_ns);
                self.release(sequence);
                if let Some(delivered_ns) = delivered_ns {
                    let ack_time_ns = now_ns.saturating_sub(delivered_ns);
                    sample(settings, numbers, ack_time_ns, publisher);
                }
            }
            AckPolicy::All | AckPolicy::FlowControl => {
                self.release_through(sequence, numbers.consumer_sequence);
            }
            AckPolicy::None => {}
        }
        false
    }

    /// The receiver wants a message once more, now or later.
    fn refuse(
        &mut self,
        settings: &ConsumerSettings,
        numbers: &AckSubject,
        delay_ns: Option<i64>,
        now_ns: i64,
        publisher: &mut AdvisoryPublisher<'_>,
    ) {
        let sequence = numbers.stream_sequence;
        let is_open = self.acks.out_of_order
            || (self.acks.floor.consumer + 1..self.acks.next_consumer)
                .contains(&numbers.consumer_sequence);
        let entry = self.acks.entry(sequence).filter(|_| is_open);
        // One that nobody has cannot be sent back.
        let Some(entry) = entry.filter(|entry| entry.was_delivered()) else {
            return;
        };
        let deliveries = entry.deliveries;
        let event = Advisory::Nak {
            consumer_sequence: numbers.consumer_sequence,
            stream_sequence: sequence,
            deliveries: numbers.delivered_count,
        };
        publisher.publish(&event);
        let delay_ns = match delay_ns {
            None if settings.nak_backoff => {
                Some(settings.wait_ns(deliveries)).filter(|_| !settings.back_off_ns.is_empty())
            }
            other => other,
        };
        match delay_ns {
            None => self.acks.requeue(sequence),
            Some(delay_ns) => {
                // It waits for an acknowledgement that does not come; so long that it is due after the delay.
                let wait_ns = match settings.nak_backoff {
                    true => settings.wait_ns(deliveries),
                    false => settings.ack_wait_ns,
                };
                let since_ns = now_ns.saturating_sub(wait_ns).saturating_add(delay_ns);
                self.acks.unqueue(sequence);
                self.acks.touch(sequence, since_ns);
                let due_ns = since_ns.saturating_add(settings.wait_ns(deliveries));
                // What is due at once still comes after what is new.
                let due_ns = due_ns.max(now_ns + AGAIN_NS_MIN);
                self.expect_by(due_ns);
            }
        }
    }

    /// Gives a message up; true if it is settled only when its dead letter is stored.
    fn terminate(
        &mut self,
        settings: &ConsumerSettings,
        numbers: &AckSubject,
        reason: &[u8],
        publisher: &mut AdvisoryPublisher<'_>,
    ) -> bool {
        let (sequence, consumer_sequence) = (numbers.stream_sequence, numbers.consumer_sequence);
        if self.letters.is_terminated(sequence) {
            return true;
        }
        let is_held = self.acks.is_pending(sequence) && publisher.context.wants_dead_letters;
        if is_held {
            let deliveries = u32::try_from(numbers.delivered_count).unwrap_or(u32::MAX);
            self.hold_terminated(sequence, consumer_sequence, deliveries, reason);
        } else if self.hold_acknowledgement(settings, numbers) {
            return true;
        } else if settings.ack_policy == AckPolicy::Explicit {
            self.release(sequence);
        } else {
            self.release_through(sequence, consumer_sequence);
        }
        let event = Advisory::Terminated {
            consumer_sequence: numbers.consumer_sequence,
            stream_sequence: sequence,
            deliveries: numbers.delivered_count,
            reason,
        };
        publisher.publish(&event);
        is_held
    }
}

fn sample(
    settings: &ConsumerSettings,
    numbers: &AckSubject,
    ack_time_ns: i64,
    publisher: &mut AdvisoryPublisher<'_>,
) {
    let Some(percent) = settings.sample_percent else {
        return;
    };
    if Sampler::new(percent).takes(publisher.random) {
        publisher.publish(&Advisory::Acknowledged {
            consumer_sequence: numbers.consumer_sequence,
            stream_sequence: numbers.stream_sequence,
            ack_time_ns,
            deliveries: numbers.delivered_count,
        });
    }
}
