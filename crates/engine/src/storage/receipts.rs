//! Receipts for messages given to a stream, for parts of the server that must learn the outcome: the sender of a dead
//! letter, the acknowledgement of a publish that was republished.
//!
//! Nobody waits: the sender of a message is called when the message is durable and can be read, or when it is certain
//! that it never will be. Invariants: each receipt is completed once, also if the stream is deleted first; no lock of
//! the stream is held then.

use std::collections::VecDeque;
use std::sync::Arc;

use super::message::Ticket;

/// Learns what became of one message.
pub trait Receipt: Send + Sync {
    /// The message can be read and would survive a power cut, or it was not stored, and why.
    fn complete(&self, outcome: Result<(), &str>);
}

/// Makes receipts for a message, one for each receiver that stores it.
pub trait IssueReceipt {
    fn issue(&self) -> Arc<dyn Receipt>;
}

/// Completed receipts, each with the number of the refusal that concerns it.
pub type CompletedReceipts = Vec<(Arc<dyn Receipt>, Option<usize>)>;

/// Receipts of messages that wait for their commit, in the order of their tickets. The caller of `push` limits their
/// number.
#[derive(Default)]
pub struct Receipts {
    waiting: VecDeque<(Ticket, Arc<dyn Receipt>)>,
}

impl Receipts {
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn push(&mut self, ticket: Ticket, receipt: Arc<dyn Receipt>) {
        self.waiting.push_back((ticket, receipt));
    }

    /// Moves all up to a ticket to `completed`.
    pub fn drain(
        &mut self,
        through: Ticket,
        refusal: Option<usize>,
        completed: &mut CompletedReceipts,
    ) {
        let count = self.waiting.partition_point(|(at, _)| *at <= through);
        let receipts = self.waiting.drain(..count);
        completed.extend(receipts.map(|(_, receipt)| (receipt, refusal)));
    }
}

impl Drop for Receipts {
    fn drop(&mut self) {
        for (_, receipt) in self.waiting.drain(..) {
            receipt.complete(Err("the stream was closed"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;

    #[derive(Default)]
    struct Heard(Mutex<Vec<Result<(), String>>>);

    impl Receipt for Heard {
        fn complete(&self, outcome: Result<(), &str>) {
            self.0.lock().push(outcome.map_err(str::to_owned));
        }
    }

    #[test]
    fn receipts_leave_in_the_order_of_their_tickets() {
        let mut receipts = Receipts::default();
        for ticket in [1, 1, 2, 4] {
            receipts.push(Ticket(ticket), Arc::new(Heard::default()));
        }
        let mut completed = Vec::new();

        receipts.drain(Ticket(1), None, &mut completed);
        receipts.drain(Ticket(3), Some(7), &mut completed);

        let refusals: Vec<_> = completed.iter().map(|(_, refusal)| *refusal).collect();
        assert_eq!(refusals, [None, None, Some(7)]);
    }

    #[test]
    fn whoever_waits_for_a_stream_that_is_gone_hears_of_it() {
        let heard = Arc::new(Heard::default());
        let mut receipts = Receipts::default();
        receipts.push(Ticket(1), Arc::clone(&heard) as Arc<dyn Receipt>);

        drop(receipts);

        assert_eq!(*heard.0.lock(), [Err("the stream was closed".to_owned())]);
    }
}
