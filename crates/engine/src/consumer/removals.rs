//! What it means for a consumer that many messages have left the stream.
//!
//! Invariant: a message that is gone is not pending for long, and is never waited for.

use super::consumer::Consumer;
use super::delivery::outbound::Outbound;
use crate::storage::store::slices::SLICE_MESSAGES;

impl Consumer {
    /// If much is pending, settles what is gone in slices: others may use the core between two slices. Reports it in
    /// advisories if `tells`.
    pub(super) fn drop_missing(&self, tells: bool) {
        let mut behind = 0;
        let mut out = Outbound::default();
        loop {
            let slice = self.with_core(|core, _, _| {
                let is_much = core.acks().pending_count() > SLICE_MESSAGES;
                let pending = &core.acks().pending;
                is_much.then(|| pending.sequences_behind(behind, SLICE_MESSAGES))
            });
            let slice = slice.unwrap_or_default();
            let Some(last) = slice.last() else {
                return self.send_out(&mut out);
            };
            behind = *last;
            let missing = self.context.store.messages().missing(&slice);
            self.with_core(|core, context, _| {
                for sequence in missing {
                    match tells {
                        true => core.pending_deleted(context, sequence, &mut out),
                        false => core.deliveries().settle_pending(sequence),
                    }
                }
            });
        }
    }
}
