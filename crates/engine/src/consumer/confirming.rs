//! Answers acknowledgements that have a reply subject.
//!
//! A reply goes from hand to hand: an acknowledgement leaves it among the side effects; they release the message, and only then is the
//! reply put where the writer of the state finds it; when the state is on disk and what was released is out of the stream, it is sent.
//! Invariant: a client that has the confirmation finds its message gone from a stream that keeps it for nobody else.

use std::sync::Arc;

use super::consumer::Consumer;
use crate::routing::sender::Outgoing;

/// Replies of one consumer to acknowledgements that are on disk.
pub(super) type Confirmed<'a> = (&'a Arc<Consumer>, Vec<Box<[u8]>>);

impl Consumer {
    /// What these acknowledgements have released is on its way out of the stream: they are confirmed with the state that is
    /// written next.
    pub(super) fn expect_confirmations(&self, replies: Vec<Box<[u8]>>) {
        if !replies.is_empty() {
            self.with_core(|core, _, _| core.deliveries().expect_confirmations(replies));
        }
    }

    /// Confirms where no state is written: at once if nobody has to wait for that, else by a job.
    pub(super) fn confirm_without_journal(&self) {
        // First: what others release from now on may still be in the stream.
        let replies = self.take_confirmations();
        if self.context.host.try_commit_released() {
            return self.confirm(&replies);
        }
        self.expect_confirmations(replies);
        let job = self.confirming_job.get_or_init(|| {
            let own = self.own.clone();
            self.context.threads.committing(move || {
                if let Some(consumer) = own.upgrade() {
                    confirm_released(&[(&consumer, consumer.take_confirmations())]);
                }
            })
        });
        job.schedule();
    }

    fn take_confirmations(&self) -> Vec<Box<[u8]>> {
        self.with_core(|core, _, _| core.deliveries().take_confirmations())
    }

    fn confirm(&self, replies: &[Box<[u8]>]) {
        self.context.senders.with(|sender| {
            for reply in replies {
                let outgoing = Outgoing {
                    subject: reply,
                    reply: None,
                    header: b"",
                    payload: b"",
                };
                sender.send(&self.context.account, &outgoing);
            }
        });
    }
}

/// Confirms acknowledgements of consumers of one stream, once what they have released is out of it. Waits for the disk.
pub(super) fn confirm_released(confirmed: &[Confirmed<'_>]) {
    let Some((first, _)) = confirmed.first() else {
        return;
    };
    first.context.host.commit_released();
    for (consumer, replies) in confirmed {
        consumer.confirm(replies);
    }
}
