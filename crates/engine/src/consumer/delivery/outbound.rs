//! What a consumer has decided to send, before it is sent: so that nothing is sent under its lock.
//!
//! Invariant: items are sent in the order in which they were added.

use std::ops::Range;
use std::sync::Arc;

use crate::routing::account::Account;
use crate::routing::sender::{Outgoing, Sender};
use crate::routing::tree::Routes;

/// A message or a status.
struct OutboundItem {
    /// Who gets it; those who listen to its subject if `None`.
    routes: Option<Arc<Routes>>,
    /// The message of the stream, or 0.
    sequence: u64,
    subject: Range<usize>,
    reply: Range<usize>,
    header: Range<usize>,
    payload: Range<usize>,
}

/// Messages of the stream that reached nobody, in the order in which they were sent.
#[derive(Default)]
pub struct Undelivered {
    pub sequences: Vec<u64>,
    /// So many of them were sent after every message that reached somebody.
    last_in_a_row: usize,
}

impl Undelivered {
    pub fn note(&mut self, sequence: u64, was_delivered: bool) {
        if was_delivered {
            self.last_in_a_row = 0;
        } else {
            self.sequences.push(sequence);
            self.last_in_a_row += 1;
        }
    }

    /// Those that were sent after every message that reached somebody.
    pub fn last_in_a_row(&self) -> &[u64] {
        &self.sequences[self.sequences.len() - self.last_in_a_row..]
    }

    pub fn is_empty(&self) -> bool {
        self.sequences.is_empty()
    }

    pub fn clear(&mut self) {
        self.sequences.clear();
        self.last_in_a_row = 0;
    }
}

#[derive(Default)]
pub struct Outbound {
    bytes: Vec<u8>,
    items: Vec<OutboundItem>,
}

/// Room that is kept between two uses.
const KEPT_BYTES_MAX: usize = 1024 * 1024;

impl Outbound {
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn byte_count(&self) -> usize {
        self.bytes.len()
    }

    /// Adds a message of the stream.
    pub fn message(
        &mut self,
        routes: &Arc<Routes>,
        sequence: u64,
        subject: &[u8],
        reply: &[u8],
        header: &[u8],
        payload: &[u8],
    ) {
        let subject = self.put(&[subject]);
        let reply = self.put(&[reply]);
        let header = self.put(&[header]);
        let payload = self.put(&[payload]);
        self.items.push(OutboundItem {
            routes: Some(Arc::clone(routes)),
            sequence,
            subject,
            reply,
            header,
            payload,
        });
    }

    /// Adds a status: a header and nothing else.
    pub fn status(
        &mut self,
        routes: Option<&Arc<Routes>>,
        subject: &[u8],
        reply: &[u8],
        header: &[u8],
    ) {
        let subject = self.put(&[subject]);
        let reply = self.put(&[reply]);
        let header = self.put(&[header]);
        self.items.push(OutboundItem {
            routes: routes.map(Arc::clone),
            sequence: 0,
            subject,
            reply,
            header,
            payload: 0..0,
        });
    }

    /// Adds a message from the server, such as an advisory.
    pub fn plain(&mut self, subject: &[u8], payload: &[u8]) {
        let subject = self.put(&[subject]);
        let payload = self.put(&[payload]);
        self.items.push(OutboundItem {
            routes: None,
            sequence: 0,
            subject,
            reply: 0..0,
            header: 0..0,
            payload,
        });
    }

    fn put(&mut self, parts: &[&[u8]]) -> Range<usize> {
        let start = self.bytes.len();
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        start..self.bytes.len()
    }

    /// Sends everything; `undelivered` gets the messages of the stream that reached nobody.
    pub fn send(
        &mut self,
        account: &Arc<Account>,
        sender: &mut Sender,
        undelivered: &mut Undelivered,
    ) {
        for item in &self.items {
            let reply = &self.bytes[item.reply.clone()];
            let outgoing = Outgoing {
                subject: &self.bytes[item.subject.clone()],
                reply: (!reply.is_empty()).then_some(reply),
                header: &self.bytes[item.header.clone()],
                payload: &self.bytes[item.payload.clone()],
            };
            let receivers = match &item.routes {
                Some(routes) => sender.send_to(account, routes, &outgoing),
                None => sender.send(account, &outgoing),
            };
            if item.sequence > 0 {
                undelivered.note(item.sequence, receivers > 0);
            }
        }
        self.items.clear();
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES_MAX);
    }
}
