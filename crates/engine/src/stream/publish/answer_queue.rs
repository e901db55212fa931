//! Answers to publishers, in the order in which they published: that a message is stored, or why not, and what else is
//! said in between.
//!
//! Invariants: nothing is answered before the fate of everything that was taken before it is known; what waits is bounded by `BufferLimits`, refusals by twice as much, and what comes beyond
//! that is not answered.

use std::sync::Arc;

use super::acknowledgement::{Refusal, StoredPublish};
use super::pending::{About, Drained, PendingItem, PendingPublishes};
use crate::storage::message::{CommitProgress, Ticket};
use crate::storage::receipts::{Receipt, Receipts};
use crate::stream::settings::StreamSettings;
use crate::stream::staged_commit::uploading::Committing;

/// Messages that wait for their commit at most, unless the configuration says otherwise.
pub const BUFFERED_MESSAGES_MAX: usize = 100_000;

/// The same in bytes.
pub const BUFFERED_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// Refusals may wait beyond that limit, so that publishers get them; what comes beyond this is not answered.
const ANSWERS_MAX_FACTOR: usize = 2;

/// How much may wait for a commit.
#[derive(Debug, Clone, Copy)]
pub struct BufferLimits {
    pub messages_max: usize,
    pub bytes_max: u64,
}

impl Default for BufferLimits {
    fn default() -> Self {
        Self {
            messages_max: BUFFERED_MESSAGES_MAX,
            bytes_max: BUFFERED_BYTES_MAX,
        }
    }
}

pub struct AnswerQueue {
    limits: BufferLimits,
    pending: PendingPublishes,
    receipts: Receipts,
    /// Of what was staged last.
    last_ticket: Ticket,
    /// The fate of everything up to here is known.
    settled: Ticket,
    committing: Committing,
    /// The answer that is put into the queue next.
    text: Vec<u8>,
}

impl AnswerQueue {
    pub fn new(limits: BufferLimits) -> Self {
        Self {
            limits,
            pending: PendingPublishes::default(),
            receipts: Receipts::default(),
            last_ticket: Ticket::default(),
            settled: Ticket::default(),
            committing: Committing::default(),
            text: Vec::new(),
        }
    }

    pub fn limits(&self) -> &BufferLimits {
        &self.limits
    }

    /// Messages whose fate is not known yet.
    pub fn pending(&self) -> &PendingPublishes {
        &self.pending
    }

    pub fn pending_mut(&mut self) -> &mut PendingPublishes {
        &mut self.pending
    }

    pub fn is_full(&self, settings: &StreamSettings) -> bool {
        let (messages, bytes) = self.pending.counts_behind(0);
        // Publishers of the old dialects were held up instead of refused, and do not look: only bytes are bounded.
        let is_counted = settings.dialect.is_none();
        (is_counted && messages as usize >= self.limits.messages_max + self.committing.messages)
            || bytes >= self.limits.bytes_max.saturating_add(self.committing.bytes)
    }

    fn answers_max(&self) -> usize {
        self.limits.messages_max.saturating_mul(ANSWERS_MAX_FACTOR)
    }

    /// Whether one more may wait for a receipt: what was refused is not among the messages that are counted.
    pub fn has_receipt_room(&self) -> bool {
        self.receipts.len() < self.answers_max()
    }

    /// Completes a receipt when the fate of everything that was taken up to now is known.
    pub fn push_receipt(&mut self, receipt: Arc<dyn Receipt>) {
        self.receipts.push(self.last_ticket, receipt);
    }

    /// The messages of a commit of uploads may wait beyond the limits until they are stored.
    pub fn expect(&mut self, committing: Committing) {
        self.committing = committing;
    }

    /// Where the next answer is written; each of the methods below puts it into the queue.
    pub fn begin(&mut self) -> &mut Vec<u8> {
        self.text.clear();
        &mut self.text
    }

    /// Something was staged, and whatever is put into the queue from now on comes after it.
    pub fn note_staged(&mut self, ticket: Ticket) {
        debug_assert!(self.last_ticket < ticket, "tickets only grow");
        self.last_ticket = ticket;
    }

    /// The message that was staged last is answered with what was begun, or plainly if that is empty, when it is stored.
    pub fn push_stored(&mut self, settings: &StreamSettings, bytes: u64, item: PendingItem<'_>) {
        let item = PendingItem {
            reply: heard(settings, item.reply),
            answer: &self.text,
            ..item
        };
        self.pending.push(self.last_ticket, bytes, &item);
    }

    /// Sends what was begun as a message of its own, when everything that came before is answered.
    pub fn push_message(&mut self, subject: &[u8]) {
        self.push(About::Answer, b"", subject);
    }

    /// Answers with what was begun when everything that came before is stored, or says why it is not.
    pub fn push_final(&mut self, settings: &StreamSettings, reply: &[u8]) {
        self.push(About::Final, b"", heard(settings, reply));
    }

    /// Answers with what was begun when everything that came before is answered.
    pub fn push_answer(&mut self, settings: &StreamSettings, header: &[u8], reply: &[u8]) {
        self.push(About::Answer, header, heard(settings, reply));
    }

    pub fn refuse(
        &mut self,
        settings: &StreamSettings,
        refusal: &Refusal,
        header: &[u8],
        reply: &[u8],
    ) {
        let text = self.begin();
        refusal.encode_in(settings.dialect, &settings.name, text);
        self.push_answer(settings, header, reply);
    }

    pub fn answer_duplicate(&mut self, settings: &StreamSettings, sequence: u64, reply: &[u8]) {
        let stored = StoredPublish {
            stream: &settings.name,
            domain: settings.domain.as_deref(),
            sequence,
            duplicate: true,
            ..StoredPublish::default()
        };
        stored.encode_in(settings.dialect, self.begin());
        if self.pending.contains(sequence) {
            // It is as good as its original, whose commit may still fail.
            self.push_final(settings, reply);
        } else {
            self.push_answer(settings, b"", reply);
        }
    }

    fn push(&mut self, about: About, header: &[u8], reply: &[u8]) {
        if reply.is_empty() || self.pending.len() >= self.answers_max() {
            return;
        }
        let item = PendingItem {
            about,
            reply,
            answer_header: header,
            answer: &self.text,
            ..PendingItem::default()
        };
        self.pending.push(self.last_ticket, 0, &item);
    }

    /// Moves everything whose fate is known to `drained`; refusals are numbered as in `progress`. Returns the first message of each refusal that had one.
    pub fn drain(&mut self, progress: &CommitProgress, drained: &mut Drained) -> Vec<u64> {
        let mut first_refused = Vec::new();
        for (number, refused) in progress.refused.iter().enumerate() {
            self.drain_through(refused.after, None, drained);
            self.settled = self.settled.max(refused.through);
            let first = self.drain_through(refused.through, Some(number), drained);
            first_refused.extend(first);
        }
        self.settled = self.settled.max(progress.committed.ticket);
        if self.settled >= self.committing.ticket {
            self.committing = Committing::default();
        }
        // What is only an answer may come after the last message that was refused.
        self.drain_through(self.settled, None, drained);
        first_refused
    }

    fn drain_through(
        &mut self,
        through: Ticket,
        refusal: Option<usize>,
        drained: &mut Drained,
    ) -> Option<u64> {
        let first = self.pending.drain(through, refusal, drained);
        self.receipts.drain(through, refusal, &mut drained.receipts);
        first
    }
}

/// The reply subject, unless the stream answers nothing.
fn heard<'a>(settings: &StreamSettings, reply: &'a [u8]) -> &'a [u8] {
    if settings.no_acknowledgement {
        b""
    } else {
        reply
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::message::{Committed, Refused, StoreError};

    /// A queue with a message whose ticket is 1, and an answer after it.
    fn one_waiting(settings: &StreamSettings) -> AnswerQueue {
        let mut queue = AnswerQueue::new(BufferLimits::default());
        queue.begin();
        queue.note_staged(Ticket(1));
        let item = PendingItem {
            about: About::Stored { sequence: 7 },
            subject: b"a",
            reply: b"stored",
            ..PendingItem::default()
        };
        queue.push_stored(settings, 10, item);
        queue.begin().extend_from_slice(b"no");
        queue.push_answer(settings, b"", b"refused");
        queue
    }

    fn replies(drained: &Drained) -> Vec<Vec<u8>> {
        let mut replies = Vec::new();
        drained.for_each(|item, _| replies.push(item.reply.to_vec()));
        replies
    }

    #[test]
    fn an_answer_waits_for_what_was_staged_before_it() {
        let settings = StreamSettings::default();
        let mut queue = one_waiting(&settings);
        let mut drained = Drained::default();

        queue.drain(&CommitProgress::default(), &mut drained);
        assert!(drained.is_empty());
        let progress = CommitProgress {
            committed: Committed {
                ticket: Ticket(1),
                last_sequence: 7,
            },
            ..CommitProgress::default()
        };
        queue.drain(&progress, &mut drained);

        assert_eq!(replies(&drained), [b"stored".to_vec(), b"refused".to_vec()]);
    }

    #[test]
    fn a_duplicate_is_refused_with_its_original() {
        let settings = StreamSettings::default();
        let progress = |after, through| CommitProgress {
            refused: vec![Refused {
                after: Ticket(after),
                through: Ticket(through),
                error: StoreError::Full,
            }],
            ..CommitProgress::default()
        };
        let refused = |sequence| {
            let mut queue = one_waiting(&settings);
            queue.answer_duplicate(&settings, sequence, b"duplicate");
            let mut drained = Drained::default();
            queue.drain(&progress(0, 1), &mut drained);
            let mut is_refused = false;
            drained.for_each(|item, refusal| {
                if item.reply == b"duplicate" {
                    is_refused = item.about == About::Final && refusal.is_some();
                }
            });
            is_refused
        };

        assert!(refused(7), "its original waits");
        assert!(!refused(6), "its original was stored before");
    }

    #[test]
    fn the_first_message_of_a_refusal_is_told() {
        let settings = StreamSettings::default();
        let mut queue = one_waiting(&settings);
        let mut drained = Drained::default();
        let progress = CommitProgress {
            refused: vec![Refused {
                after: Ticket(0),
                through: Ticket(1),
                error: StoreError::Full,
            }],
            ..CommitProgress::default()
        };

        assert_eq!(queue.drain(&progress, &mut drained), [7]);

        assert_eq!(drained.len(), 2);
        assert!(queue.pending().is_empty());
    }

    #[test]
    fn a_stream_that_does_not_acknowledge_answers_nothing() {
        let settings = StreamSettings {
            no_acknowledgement: true,
            ..StreamSettings::default()
        };
        let queue = one_waiting(&settings);

        assert_eq!(queue.pending().len(), 1);
    }
}
