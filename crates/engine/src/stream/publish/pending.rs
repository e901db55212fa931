//! What was accepted and not answered yet: messages that wait for their commit, and answers that wait for their turn.
//!
//! Answers leave in the order in which messages came. Texts (subjects, replies, answers) lie one after the other in one
//! buffer, in the order of the entries. Invariant: entries are in the order of their tickets, and stored ones in the
//! order of their sequences.

use std::collections::VecDeque;

use ahash::AHashMap;

use crate::common::subject;
use crate::storage::message::Ticket;
use crate::storage::receipts::CompletedReceipts;

/// What an entry is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum About {
    /// A message to store; an answer of its own, or the plain one.
    Stored { sequence: u64 },
    /// Only an answer.
    #[default]
    Answer,
    /// An answer that says that everything before it was stored, and is a refusal if it was not.
    Final,
}

#[derive(Debug, Clone, Copy)]
struct PendingEntry {
    ticket: Ticket,
    about: About,
    /// Its own sequence, or that of the last message before it.
    sequence: u64,
    /// All stored messages before this one since the stream was opened, and what they count for.
    messages_before: u64,
    bytes_before: u64,
    /// The previous message on the same subject, if it is needed.
    previous_sequence: u64,
    subject_len: u32,
    reply_len: u32,
    answer_header_len: u32,
    answer_len: u32,
    kept_headers_len: u32,
    kept_len: u32,
    time_ns: i64,
}

impl PendingEntry {
    fn text_len(&self) -> usize {
        (self.subject_len + self.reply_len + self.answer_len + self.kept_len) as usize
    }
}

/// What an entry says, as it is added and as it comes out again.
#[derive(Debug, Clone, Copy, Default)]
pub struct PendingItem<'a> {
    pub about: About,
    pub previous_sequence: u64,
    pub time_ns: i64,
    pub subject: &'a [u8],
    pub reply: &'a [u8],
    /// Headers and body; empty is the plain answer of a stored message.
    pub answer_header: &'a [u8],
    pub answer: &'a [u8],
    /// The message itself, if it is needed when it is committed.
    pub kept_headers: &'a [u8],
    pub kept_payload: &'a [u8],
}

#[derive(Default)]
pub struct PendingPublishes {
    entries: VecDeque<PendingEntry>,
    texts: Vec<u8>,
    /// Where the text of the first entry begins.
    texts_start: usize,
    last_sequence: u64,
    messages: u64,
    bytes: u64,
    /// Sequences of waiting messages by subject; built on demand, and kept until nothing waits.
    by_subject: Option<AHashMap<Box<[u8]>, VecDeque<u64>>>,
}

/// Entries whose time has come, with their texts.
#[derive(Default)]
pub struct Drained {
    entries: Vec<(PendingEntry, Option<usize>)>,
    texts: Vec<u8>,
    pub receipts: CompletedReceipts,
}

impl Drained {
    pub fn clear(&mut self) {
        self.entries.clear();
        self.texts.clear();
        self.receipts.clear();
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.receipts.is_empty()
    }

    /// Calls `visit` with each, and with where to find why it was refused, if it was.
    pub fn for_each(&self, mut visit: impl FnMut(&PendingItem<'_>, Option<usize>)) {
        let mut rest = self.texts.as_slice();
        for (entry, refusal) in &self.entries {
            let (subject, behind) = rest.split_at(entry.subject_len as usize);
            let (reply, behind) = behind.split_at(entry.reply_len as usize);
            let (whole, behind) = behind.split_at(entry.answer_len as usize);
            let (answer_header, answer) = whole.split_at(entry.answer_header_len as usize);
            let (kept, behind) = behind.split_at(entry.kept_len as usize);
            let (kept_headers, kept_payload) = kept.split_at(entry.kept_headers_len as usize);
            rest = behind;
            let item = PendingItem {
                about: entry.about,
                previous_sequence: entry.previous_sequence,
                time_ns: entry.time_ns,
                subject,
                reply,
                answer_header,
                answer,
                kept_headers,
                kept_payload,
            };
            visit(&item, *refusal);
        }
    }
}

impl PendingPublishes {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds an entry. `counted_bytes` is what a message counts for in the size of the stream.
    pub fn push(&mut self, ticket: Ticket, counted_bytes: u64, item: &PendingItem<'_>) {
        let (messages_before, bytes_before) = (self.messages, self.bytes);
        if let About::Stored { sequence } = item.about {
            self.last_sequence = sequence;
            self.messages += 1;
            self.bytes += counted_bytes;
            if let Some(by_subject) = &mut self.by_subject {
                match by_subject.get_mut(item.subject) {
                    Some(sequences) => sequences.push_back(sequence),
                    None => {
                        by_subject.insert(item.subject.into(), VecDeque::from([sequence]));
                    }
                }
            }
        }
        self.texts.extend_from_slice(item.subject);
        self.texts.extend_from_slice(item.reply);
        self.texts.extend_from_slice(item.answer_header);
        self.texts.extend_from_slice(item.answer);
        self.texts.extend_from_slice(item.kept_headers);
        self.texts.extend_from_slice(item.kept_payload);
        self.entries.push_back(PendingEntry {
            ticket,
            about: item.about,
            sequence: self.last_sequence,
            messages_before,
            bytes_before,
            previous_sequence: item.previous_sequence,
            subject_len: item.subject.len() as u32,
            reply_len: item.reply.len() as u32,
            answer_header_len: item.answer_header.len() as u32,
            answer_len: (item.answer_header.len() + item.answer.len()) as u32,
            kept_headers_len: item.kept_headers.len() as u32,
            kept_len: (item.kept_headers.len() + item.kept_payload.len()) as u32,
            time_ns: item.time_ns,
        });
    }

    /// Moves all entries up to a ticket to `drained`. With `refusal` their messages were refused; returns the first sequence that was.
    pub fn drain(
        &mut self,
        through: Ticket,
        refusal: Option<usize>,
        drained: &mut Drained,
    ) -> Option<u64> {
        let count = self
            .entries
            .partition_point(|entry| entry.ticket <= through);
        let text_start = self.texts_start;
        let mut first_refused = None;
        for entry in self.entries.drain(..count) {
            let text = self.texts_start..self.texts_start + entry.text_len();
            self.texts_start = text.end;
            if let About::Stored { sequence } = entry.about {
                if refusal.is_some() && first_refused.is_none() {
                    first_refused = Some(sequence);
                }
                if let Some(by_subject) = &mut self.by_subject {
                    let subject = &self.texts[text][..entry.subject_len as usize];
                    leave(by_subject, subject);
                }
            }
            drained.entries.push((entry, refusal));
        }
        drained
            .texts
            .extend_from_slice(&self.texts[text_start..self.texts_start]);
        if self.entries.is_empty() {
            self.by_subject = None;
            self.texts.clear();
            self.texts_start = 0;
        } else if self.texts_start > self.texts.len() / 2 {
            self.texts.drain(..self.texts_start);
            self.texts_start = 0;
        }
        first_refused
    }

    /// Waiting messages after this sequence, and what they count for.
    pub fn counts_behind(&self, sequence: u64) -> (u64, u64) {
        // Mostly all wait: what is committed leaves soon.
        let all = self
            .entries
            .front()
            .filter(|entry| entry.sequence > sequence);
        let first = all.or_else(|| {
            let first = self
                .entries
                .partition_point(|entry| entry.sequence <= sequence);
            self.entries.get(first)
        });
        match first {
            Some(first) => (
                self.messages - first.messages_before,
                self.bytes - first.bytes_before,
            ),
            None => (0, 0),
        }
    }

    /// Whether the message of this sequence waits.
    pub fn contains(&self, sequence: u64) -> bool {
        self.counts_behind(sequence.saturating_sub(1)) != self.counts_behind(sequence)
    }

    /// From now on, and as long as anything waits, messages can be found by their subjects.
    pub fn sort(&mut self) {
        if self.by_subject.is_none() && !self.entries.is_empty() {
            self.by_subject = Some(self.sort_by_subject());
        }
    }

    /// Waiting messages of one subject after a sequence; `sort` comes first.
    pub fn sequences_of(&self, subject: &[u8], behind: u64) -> impl Iterator<Item = u64> + '_ {
        debug_assert!(self.by_subject.is_some() || self.entries.is_empty());
        let by_subject = self.by_subject.as_ref();
        let sequences = by_subject.and_then(|by_subject| by_subject.get(subject));
        sequences
            .into_iter()
            .flatten()
            .copied()
            .filter(move |sequence| *sequence > behind)
    }

    fn sort_by_subject(&self) -> AHashMap<Box<[u8]>, VecDeque<u64>> {
        let mut by_subject: AHashMap<Box<[u8]>, VecDeque<u64>> = AHashMap::new();
        self.for_each_stored(|subject, sequence| {
            by_subject
                .entry(subject.into())
                .or_default()
                .push_back(sequence);
        });
        by_subject
    }

    /// The last waiting message whose subject matches, 0 if there is none; `sort` comes first.
    pub fn last_match(&self, filter: &[u8]) -> u64 {
        if subject::is_literal(filter) {
            return self.sequences_of(filter, 0).last().unwrap_or(0);
        }
        let mut last = 0;
        self.for_each_stored(|subject, sequence| {
            if subject::matches(filter, subject) {
                last = sequence;
            }
        });
        last
    }

    fn for_each_stored(&self, mut visit: impl FnMut(&[u8], u64)) {
        let mut start = self.texts_start;
        for entry in &self.entries {
            if let About::Stored { sequence } = entry.about {
                visit(&self.texts[start..][..entry.subject_len as usize], sequence);
            }
            start += entry.text_len();
        }
    }
}

fn leave(by_subject: &mut AHashMap<Box<[u8]>, VecDeque<u64>>, subject: &[u8]) {
    if let Some(sequences) = by_subject.get_mut(subject) {
        sequences.pop_front();
        if sequences.is_empty() {
            by_subject.remove(subject);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(pending: &mut PendingPublishes, ticket: u64, sequence: u64, subject: &[u8]) {
        let item = PendingItem {
            about: About::Stored { sequence },
            subject,
            reply: b"reply",
            ..PendingItem::default()
        };
        pending.push(Ticket(ticket), 10, &item);
    }

    fn answer(pending: &mut PendingPublishes, ticket: u64, text: &[u8]) {
        let item = PendingItem {
            reply: b"reply",
            answer_header: b"H",
            answer: text,
            ..PendingItem::default()
        };
        pending.push(Ticket(ticket), 0, &item);
    }

    fn drained(
        pending: &mut PendingPublishes,
        through: u64,
        refusal: Option<usize>,
    ) -> Vec<String> {
        let mut drained = Drained::default();
        pending.drain(Ticket(through), refusal, &mut drained);
        let mut all = Vec::new();
        drained.for_each(|due, refusal| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            all.push(match due.about {
                About::Stored { sequence } => {
                    format!("{sequence} {} {:?}", text(due.subject), refusal)
                }
                About::Answer | About::Final => {
                    format!("{} {}", text(due.answer_header), text(due.answer))
                }
            });
        });
        all
    }

    #[test]
    fn answers_leave_in_the_order_in_which_messages_came() {
        let mut pending = PendingPublishes::default();
        answer(&mut pending, 0, b"first");
        store(&mut pending, 1, 7, b"a");
        answer(&mut pending, 1, b"second");
        store(&mut pending, 2, 8, b"b");
        store(&mut pending, 3, 9, b"a");

        assert_eq!(drained(&mut pending, 0, None), ["H first"]);
        assert_eq!(drained(&mut pending, 1, None), ["7 a None", "H second"]);
        assert_eq!(drained(&mut pending, 2, Some(4)), ["8 b Some(4)"]);
        assert_eq!(drained(&mut pending, 9, None), ["9 a None"]);
        assert!(pending.is_empty());
    }

    #[test]
    fn waiting_messages_are_counted_and_found_by_subject() {
        let mut pending = PendingPublishes::default();
        for (ticket, subject) in [b"a.x", b"a.y", b"a.x"].into_iter().enumerate() {
            store(&mut pending, ticket as u64 + 1, ticket as u64 + 11, subject);
        }

        pending.sort();
        assert_eq!(pending.counts_behind(10), (3, 30));
        assert_eq!(pending.counts_behind(11), (2, 20));
        assert_eq!(pending.counts_behind(13), (0, 0));
        assert_eq!(
            pending.sequences_of(b"a.x", 0).collect::<Vec<_>>(),
            [11, 13]
        );
        assert_eq!(pending.sequences_of(b"a.x", 11).collect::<Vec<_>>(), [13]);
        assert_eq!(pending.last_match(b"a.*"), 13);
        assert_eq!(pending.last_match(b"b.*"), 0);
        store(&mut pending, 4, 14, b"a.y");
        drained(&mut pending, 2, None);
        assert_eq!(pending.last_match(b"a.y"), 14);
        assert_eq!(pending.sequences_of(b"a.y", 0).collect::<Vec<_>>(), [14]);
    }
}
