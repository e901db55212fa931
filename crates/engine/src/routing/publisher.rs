//! Who publishes a message, as far as routing cares, and what comes with it.

use std::sync::Arc;

use super::account::Account;
use super::leaf::{LeafReceiver, LinkedPublish};
use super::message_trace::MessageTrace;
use crate::common::permissions::Permissions;
use crate::storage::receipts::IssueReceipt;

/// Who publishes, as far as routing cares.
#[derive(Clone, Copy)]
pub struct Publisher<'a> {
    /// 0 for the server itself.
    pub connection_id: u64,
    /// Where the worker finds the connection, to slow it down if a receiver is behind.
    pub slot: Option<usize>,
    pub account: &'a Arc<Account>,
    /// What it may publish and subscribe; `None` is everything. What the server sends on its behalf is held against it.
    pub permissions: Option<&'a Arc<Permissions>>,
    pub echo: bool,
    pub no_responders: bool,
    /// Its messages are dropped for receivers that are about to be cut off.
    pub drops_for_slow: bool,
    /// What happens to the message is noted there.
    pub trace: Option<&'a MessageTrace>,
    /// The message has come from another account by an import. It does not go on to a third one by an import of a stream.
    pub is_imported: bool,
    pub now_ms: u64,
    /// Each receiver that stores the message completes a receipt of these.
    pub receipts: Option<&'a dyn IssueReceipt>,
    /// The message has come through a link.
    pub linked: Option<LinkedPublish<'a>>,
    /// Where a consumer delivers the message, if its receivers were found by that and not by its own subject.
    pub deliver_subject: Option<&'a [u8]>,
}

impl Publisher<'_> {
    /// Whether a message of this publisher may go to a server behind a link: not back to where it came from.
    pub(super) fn may_send_to(&self, receiver: &LeafReceiver) -> bool {
        let is_new = |from: LinkedPublish<'_>| {
            let is_own = Arc::ptr_eq(from.link, &receiver.link);
            !is_own && !from.link.is_of_same_cluster(&receiver.link)
        };
        self.linked.is_none_or(is_new)
    }
}
