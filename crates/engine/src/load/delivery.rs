//! What a consumer of a stream sends: messages that say in their reply subjects which they are, and statuses in between.

use super::client::{Client, Delivered};
use super::exchange::leading_decimal;
use crate::common::error::EngineError;
use crate::wire::ack_subject;

/// What listens to deliveries, and says what is wrong with one.
pub trait DeliveryListener {
    fn on_message(&mut self, message: &Delivered<'_>, messages: u64) -> Result<(), String>;

    /// Messages that came so far.
    fn received(&self) -> u64;
}

/// Reads and checks the next messages; a wrong one ends the load with how far it came.
pub fn listen(
    client: &mut Client,
    listener: &mut impl DeliveryListener,
    messages: u64,
) -> Result<(), EngineError> {
    let mut failure = None;
    let read = client.read(
        |message| {
            if let Err(reason) = listener.on_message(&message, messages) {
                failure.get_or_insert(reason);
            }
        },
        |_| {},
    );
    let received = listener.received();
    read.map_err(|error| {
        EngineError::Load(format!(
            "{received} of {messages} messages arrived, then: {error}"
        ))
    })?;
    failure.map_or(Ok(()), |reason| {
        Err(EngineError::Load(format!(
            "after {received} of {messages} messages: {reason}"
        )))
    })
}

/// The position of a message in the stream, and among the deliveries of its consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamPosition {
    pub stream_sequence: u64,
    pub consumer_sequence: u64,
}

impl StreamPosition {
    /// Reads `…<stream sequence>.<consumer sequence>.<time>.<pending>`, how reply subjects of all forms end; `None` of a status.
    pub fn of(message: &Delivered<'_>) -> Option<Self> {
        let reply = message.reply?;
        if !reply.starts_with(ack_subject::ACK) {
            return None;
        }
        let mut tokens = reply.rsplit(|byte| *byte == b'.').skip(2);
        let consumer_sequence = leading_decimal(tokens.next()?)?;
        let stream_sequence = leading_decimal(tokens.next()?)?;
        Some(Self {
            stream_sequence,
            consumer_sequence,
        })
    }
}

/// Whether messages come in the order of the stream, none of them missing and none twice.
///
/// Invariant: `next_sequence` is above every sequence that was met.
pub struct Order {
    next_sequence: u64,
    /// Of the message before; none before the first.
    consumer_sequence: Option<u64>,
    /// Nobody else takes messages of this consumer.
    is_alone: bool,
}

impl Order {
    pub fn new(first_sequence: u64, is_alone: bool) -> Self {
        Self {
            next_sequence: first_sequence,
            consumer_sequence: None,
            is_alone,
        }
    }

    pub fn meet(&mut self, position: StreamPosition) -> Result<(), String> {
        let StreamPosition {
            stream_sequence,
            consumer_sequence,
        } = position;
        let fits = |value: u64, next: u64| {
            if self.is_alone {
                value == next
            } else {
                value >= next
            }
        };
        if !fits(stream_sequence, self.next_sequence) {
            return Err(format!(
                "message {stream_sequence} came where {} was due",
                self.next_sequence
            ));
        }
        if let Some(before) = self.consumer_sequence {
            if !fits(consumer_sequence, before + 1) {
                return Err(format!(
                    "delivery {consumer_sequence} came after delivery {before}"
                ));
            }
        }
        self.next_sequence = stream_sequence + 1;
        self.consumer_sequence = Some(consumer_sequence);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(reply: Option<&str>) -> Option<(u64, u64)> {
        let message = Delivered {
            subject: b"s",
            reply: reply.map(str::as_bytes),
            body: b"",
        };
        StreamPosition::of(&message)
            .map(|position| (position.stream_sequence, position.consumer_sequence))
    }

    fn position(stream_sequence: u64, consumer_sequence: u64) -> StreamPosition {
        StreamPosition {
            stream_sequence,
            consumer_sequence,
        }
    }

    #[test]
    fn both_forms_of_reply_subjects_are_understood_and_statuses_have_none() {
        assert_eq!(
            of(Some("$JS.ACK.S.c.1.17.9.1794767419443.5")),
            Some((17, 9))
        );
        assert_eq!(
            of(Some("$JS.ACK.hub.NUmM6cRx.S.c.1.17.9.1794767419443.5")),
            Some((17, 9))
        );
        assert_eq!(of(Some("$JS.FC.S.c.abc")), None);
        assert_eq!(of(None), None);
    }

    #[test]
    fn a_lone_reader_misses_nothing_and_gets_nothing_twice() {
        let mut order = Order::new(5, true);

        assert_eq!(order.meet(position(5, 1)), Ok(()));
        assert_eq!(order.meet(position(6, 2)), Ok(()));
        assert_eq!(
            order.meet(position(6, 3)),
            Err("message 6 came where 7 was due".to_owned())
        );
        assert!(order.meet(position(8, 3)).is_err());
        assert_eq!(
            order.meet(position(7, 4)),
            Err("delivery 4 came after delivery 2".to_owned())
        );
    }

    #[test]
    fn those_who_share_a_consumer_see_growing_sequences() {
        let mut order = Order::new(1, false);

        assert_eq!(order.meet(position(3, 3)), Ok(()));
        assert_eq!(order.meet(position(9, 9)), Ok(()));
        assert!(order.meet(position(8, 10)).is_err());
    }
}
