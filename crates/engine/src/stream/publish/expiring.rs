//! Messages whose time is over: they go when the clock comes by, and where the stream wants markers, one takes the place of a subject's last message.
//!
//! Invariant: nothing is looked for before `expiry_due_ns`, so whatever is stored with an earlier end brings that forward.

use std::sync::atomic::Ordering;

use super::admitted::Admitted;
use super::checks::{Rollup, View};
use super::delete_marker;
use super::ingest::Ingest;
use crate::storage::message::Expired;
use crate::storage::store::Store;
use crate::stream::stream::Stream;

/// The oldest message is read again this much later if the disk has refused it: a stream that nobody publishes to must not stop expiring.
const UNREAD_WAIT_NS: i64 = 1_000_000_000;

impl Stream {
    /// Removes what has expired, if something may have.
    pub(in crate::stream) fn expire_due(&self, now_ns: i64) {
        if now_ns < self.expiry_due_ns.load(Ordering::Relaxed) {
            return;
        }
        // Each message stored from now on sets it again.
        self.expiry_due_ns.store(i64::MAX, Ordering::Relaxed);
        let markers = self.settings().delete_marker_ttl_ns > 0;
        let expired = self.store.expire(now_ns, markers).unwrap_or_default();
        for sequence in &expired.spared {
            self.mark_expired(*sequence, now_ns);
        }
        self.look_for_expiry(now_ns);
        if expired != Expired::default() {
            self.scheduler.schedule();
        }
    }

    /// The last message of a subject has expired: a marker takes its place, unless it was one itself.
    fn mark_expired(&self, sequence: u64, now_ns: i64) {
        // What cannot be read is tried again at the next tick.
        let Ok(Some(message)) = self.store.messages().read(sequence) else {
            return;
        };
        if delete_marker::is_one(message.headers()) {
            // A failure is in the store's status.
            let _ = self.store.remove(sequence, false);
        } else {
            let mut ingest = self.ingest.lock();
            mark_expired(
                &mut ingest,
                &self.store,
                message.subject(),
                sequence,
                now_ns,
            );
        }
    }

    /// Finds out when a message expires next.
    pub(in crate::stream) fn look_for_expiry(&self, now_ns: i64) {
        match self.store.messages().next_expiry_ns() {
            Ok(Some(due_ns)) => self.expire_by(due_ns),
            Ok(None) => {}
            Err(_) => self.expire_by(now_ns.saturating_add(UNREAD_WAIT_NS)),
        }
    }

    fn expire_by(&self, due_ns: i64) {
        self.expiry_due_ns.fetch_min(due_ns, Ordering::Relaxed);
    }
}

/// Replaces a subject's last message, which has expired, by a marker.
fn mark_expired(ingest: &mut Ingest, store: &Store, subject: &[u8], sequence: u64, now_ns: i64) {
    ingest.sort_pending();
    if ingest.view(store).last_sequence_of(subject) != sequence {
        // Another message has come, or the marker waits already.
        return;
    }
    let ttl_ns = ingest.settings().delete_marker_ttl_ns;
    let admitted = Admitted {
        headers: delete_marker::headers(ttl_ns).into(),
        expires_ns: Some(now_ns.saturating_add(ttl_ns)),
        rollup: Some(Rollup::Subject),
        ..Admitted::of(subject, now_ns)
    };
    ingest.store(store, admitted, b"");
}
