//! Taking acknowledgements in: what each of their forms does to the state, and who is told.
//!
//! Invariant: an acknowledgement with a reply subject is answered once what it changed is on disk.

use super::body::AckBody;
use crate::consumer::advisory::Advisory;
use crate::consumer::core::{Core, PassContext};
use crate::consumer::delivery::outbound::Outbound;
use crate::consumer::sampler::Sampler;
use crate::consumer::settings::AckPolicy;
use crate::wire::ack_subject::AckSubject;
use crate::wire::stored_headers;

const LAST_CONSUMER: &[u8] = b"Nats-Last-Consumer";
const LAST_STREAM: &[u8] = b"Nats-Last-Stream";

/// Acknowledgements of one consumer that wait for the disk to be confirmed, at most; those beyond are recorded and not answered, as their senders find by
/// their time-out.
const CONFIRMATIONS_MAX: usize = 100_000;

/// A message that is to come again after a delay does not come earlier, however short that is.
const AGAIN_NS_MIN: i64 = 10_000_000;

impl Core {
    /// Takes an acknowledgement. Returns the pull request that came with it.
    pub fn acknowledge<'a>(
        &mut self,
        context: &PassContext<'_>,
        numbers: &AckSubject,
        body: AckBody<'a>,
        reply: &[u8],
        now_ns: i64,
        out: &mut Outbound,
    ) -> Option<&'a [u8]> {
        let sequence = numbers.stream_sequence;
        let was_delivered = sequence < self.acks.next_stream;
        let settles = matches!(
            body,
            AckBody::Acknowledge | AckBody::Next(_) | AckBody::Terminate { .. }
        );
        if !was_delivered && settles {
            return match body {
                AckBody::Next(pull) => Some(pull),
                _ => None,
            };
        }
        self.note_activity(now_ns);
        let mut request = None;
        let mut is_held = false;
        match body {
            AckBody::Acknowledge => {
                is_held = self.acknowledge_message(context, numbers, now_ns, out)
            }
            AckBody::Next(pull) => {
                self.acknowledge_message(context, numbers, now_ns, out);
                request = Some(pull);
            }
            AckBody::Nak { delay_ns } => self.refuse(context, numbers, delay_ns, now_ns, out),
            AckBody::Progress => self.acks.touch(sequence, now_ns),
            AckBody::Terminate { reason } => {
                is_held = self.terminate(context, numbers, reason, now_ns, out);
            }
            AckBody::Unknown => {}
        }
        if reply.is_empty() || request.is_some() {
            return request;
        }
        if is_held {
            if self.held_confirmations() < CONFIRMATIONS_MAX {
                self.hold_confirmation(sequence, reply);
            }
        } else if self.confirmations.len() < CONFIRMATIONS_MAX {
            self.confirmations.push(reply.into());
        }
        request
    }

    /// Settles a message; true if that has to wait for a dead letter.
    fn acknowledge_message(
        &mut self,
        context: &PassContext<'_>,
        numbers: &AckSubject,
        now_ns: i64,
        out: &mut Outbound,
    ) -> bool {
        let sequence = numbers.stream_sequence;
        self.activity.acknowledged_ns = now_ns;
        if self.hold_acknowledgement(sequence, numbers.consumer_sequence) {
            return true;
        }
        match self.settings.ack_policy {
            AckPolicy::Explicit => {
                let delivered_ns = self.acks.entry(sequence).map(|entry| entry.time_ns);
                self.acks.acknowledge(sequence);
                self.released.push((sequence, sequence));
                if let Some(keys) = &mut self.keys {
                    keys.settled(sequence, &mut self.acks);
                }
                if let Some(delivered_ns) = delivered_ns {
                    self.sample(context, numbers, now_ns - delivered_ns, out);
                }
            }
            AckPolicy::All | AckPolicy::FlowControl => {
                self.settle_all(sequence, numbers.consumer_sequence)
            }
            AckPolicy::None => {}
        }
        false
    }

    pub(in crate::consumer) fn settle_all(&mut self, sequence: u64, consumer_sequence: u64) {
        let floor = self.acks.floor.stream;
        if self.acks.acknowledge_all(sequence, consumer_sequence) {
            self.released.push((floor + 1, sequence));
        }
    }

    fn sample(
        &mut self,
        context: &PassContext<'_>,
        numbers: &AckSubject,
        ack_time_ns: i64,
        out: &mut Outbound,
    ) {
        let Some(percent) = self.settings.sample_percent else {
            return;
        };
        if Sampler::new(percent).takes(&mut self.random) {
            let event = Advisory::Acknowledged {
                consumer_sequence: numbers.consumer_sequence,
                stream_sequence: numbers.stream_sequence,
                ack_time_ns,
                deliveries: numbers.delivered_count,
            };
            self.tell(context, &event, out);
        }
    }

    /// The receiver wants a message once more, now or later.
    fn refuse(
        &mut self,
        context: &PassContext<'_>,
        numbers: &AckSubject,
        delay_ns: Option<i64>,
        now_ns: i64,
        out: &mut Outbound,
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
        self.tell(context, &event, out);
        let delay_ns = match delay_ns {
            None if self.settings.nak_backoff => {
                Some(self.ack_wait_ns(deliveries)).filter(|_| !self.settings.back_off_ns.is_empty())
            }
            other => other,
        };
        match delay_ns {
            None => self.acks.requeue(sequence),
            Some(delay_ns) => {
                // It waits for an acknowledgement that does not come; so long that it is due after the delay.
                let wait_ns = match self.settings.nak_backoff {
                    true => self.ack_wait_ns(deliveries),
                    false => self.settings.ack_wait_ns,
                };
                let since_ns = now_ns.saturating_sub(wait_ns).saturating_add(delay_ns);
                self.acks.unqueue(sequence);
                self.acks.touch(sequence, since_ns);
                let due_ns = since_ns.saturating_add(self.ack_wait_ns(deliveries));
                // What is due at once still comes behind what is new.
                let due_ns = due_ns.max(now_ns + AGAIN_NS_MIN);
                self.ack_due_ns = self.ack_due_ns.min(due_ns);
            }
        }
    }

    /// Gives a message up; true if it is settled only when its dead letter is stored.
    fn terminate(
        &mut self,
        context: &PassContext<'_>,
        numbers: &AckSubject,
        reason: &[u8],
        now_ns: i64,
        out: &mut Outbound,
    ) -> bool {
        let sequence = numbers.stream_sequence;
        self.activity.acknowledged_ns = now_ns;
        if self.letters.is_terminated(sequence) {
            return true;
        }
        let is_held = self.acks.is_pending(sequence) && context.host.wants_dead_letters();
        if is_held {
            let deliveries = u32::try_from(numbers.delivered_count).unwrap_or(u32::MAX);
            self.hold_terminated(sequence, numbers.consumer_sequence, deliveries, reason);
        } else if self.hold_acknowledgement(sequence, numbers.consumer_sequence) {
            return true;
        } else if self.settings.ack_policy == AckPolicy::Explicit {
            self.acks.acknowledge(sequence);
            self.released.push((sequence, sequence));
            if let Some(keys) = &mut self.keys {
                keys.settled(sequence, &mut self.acks);
            }
        } else {
            self.settle_all(sequence, numbers.consumer_sequence);
        }
        let event = Advisory::Terminated {
            consumer_sequence: numbers.consumer_sequence,
            stream_sequence: sequence,
            deliveries: numbers.delivered_count,
            reason,
        };
        self.tell(context, &event, out);
        is_held
    }

    /// The receiver of a push consumer has answered how far it is.
    pub fn hear_receiver(&mut self, subject: &[u8], header: &[u8]) {
        let Some(flow) = self.push.as_mut().and_then(|push| push.flow.as_mut()) else {
            return;
        };
        if !flow.answered(subject) || self.settings.ack_policy != AckPolicy::FlowControl {
            return;
        }
        let number = |name| {
            let text = std::str::from_utf8(stored_headers::value(header, name)?).ok()?;
            text.parse::<u64>().ok()
        };
        if let (Some(consumer), Some(stream)) = (number(LAST_CONSUMER), number(LAST_STREAM)) {
            if stream < self.acks.next_stream {
                self.settle_all(stream, consumer);
            }
        }
    }
}
