//! What a stream sends when the fate of messages is known: to their publishers, its followers and consumers, and the
//! holders of receipts.
//!
//! Invariants: publishers are answered in the order of their messages, except those whose republished copies are not
//! stored yet; no lock of the stream is held while something is sent, because what is sent may end in a stream again.

use std::sync::Arc;

use super::acknowledgement::StoredPublish;
use super::ingest::store_refusal;
use super::pending::{About, PendingItem};
use super::republish::{Copies, Republisher};
use crate::routing::sender::{Outgoing, Sender};
use crate::storage::message::{CommitProgress, Refused};
use crate::stream::settings::StreamSettings;
use crate::stream::stream::Stream;

impl Stream {
    /// Answers everything whose fate is known now.
    pub(in crate::stream) fn on_committed(&self, progress: &CommitProgress) {
        let mut drained = self.drained.lock();
        let (settings, roll_ups) = {
            let mut ingest = self.ingest.lock();
            let roll_ups = ingest
                .effects()
                .committed_roll_ups(progress.committed.last_sequence);
            ingest.drain_decided(&self.store, progress, &mut drained);
            self.say_usage(&ingest);
            (Arc::clone(ingest.settings()), roll_ups)
        };
        for roll_up in &roll_ups {
            self.consumers.rolled_up(roll_up);
        }
        self.followers.schedule();
        self.replicator.ask_if_waiting();
        let count = drained.len();
        if drained.is_empty() {
            drop(drained);
            return self.consumers.notice(count);
        }
        if settings.limits.age_ns_max.is_some() || settings.allow_time_to_live {
            self.look_for_expiry(self.now_ns());
        }
        // Taken out, so that no lock is held while something is sent.
        let mut due = std::mem::take(&mut *drained);
        drop(drained);
        self.senders.with(|sender| {
            let mut answer = Vec::new();
            let mut republisher = Republisher::new(&settings);
            let copies = Copies::new(&self.account, &self.senders);
            due.for_each(|due, refusal| {
                if let (Some(republisher), None) = (&mut republisher, refusal) {
                    republisher.publish(&self.account, due, sender, &copies);
                }
                answer.clear();
                let refused = refusal.map(|number| &progress.refused[number]);
                self.answer(&settings, due, refused, &mut answer, sender, &copies);
            });
        });
        for (receipt, refusal) in &due.receipts {
            let refused = refusal.map(|number| progress.refused[number].error.to_string());
            receipt.complete(refused.as_deref().map_or(Ok(()), Err));
        }
        due.clear();
        *self.drained.lock() = due;
        self.consumers.notice(count);
    }

    fn answer(
        &self,
        settings: &StreamSettings,
        due: &PendingItem<'_>,
        refused: Option<&Refused>,
        answer: &mut Vec<u8>,
        sender: &mut Sender,
        copies: &Copies<'_>,
    ) {
        if due.reply.is_empty() {
            return;
        }
        let payload = match (due.about, refused) {
            (About::Stored { .. } | About::Final, Some(refused)) => {
                let refusal = store_refusal(&refused.error);
                refusal.encode_in(settings.dialect, &settings.name, answer);
                answer.as_slice()
            }
            (About::Stored { sequence }, None) if due.answer.is_empty() => {
                let stored = StoredPublish {
                    stream: &settings.name,
                    domain: settings.domain.as_deref(),
                    sequence,
                    ..StoredPublish::default()
                };
                stored.encode_in(settings.dialect, answer);
                answer.as_slice()
            }
            _ => due.answer,
        };
        let outgoing = Outgoing {
            subject: due.reply,
            reply: None,
            header: due.answer_header,
            payload,
        };
        match copies.take_held() {
            Some(held) => held.send(&outgoing),
            None => {
                sender.send(&self.account, &outgoing);
            }
        }
    }
}
