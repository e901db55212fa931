//! Messages that come from the server itself: routed like any other, on the calling thread, with a router of its own.
//!
//! Many may be gathered before `flush` hands them over, so that each receiver is written to once. Invariant: nothing waits in here longer than
//! until `flush`, and never more than `GATHERED_BYTES_MAX`.

use std::sync::Arc;

use parking_lot::Mutex;

use super::account::Account;
use super::router::{Publisher, Router};
use super::shared::Shared;
use super::staging::{Followup, Staging};
use super::tree::Routes;
use crate::common::permissions::Permissions;
use crate::common::random::Random;
use crate::storage::receipts::IssueReceipt;
use crate::wire::Publish;

/// Bodies that are gathered at most before they are handed over.
const GATHERED_BYTES_MAX: usize = 1024 * 1024;

/// Senders that wait to be used again at most; each keeps some buffers.
const SENDERS_KEPT_MAX: usize = 8;

/// A message from the server.
pub struct Outgoing<'a> {
    pub subject: &'a [u8],
    pub reply: Option<&'a [u8]>,
    pub header: &'a [u8],
    pub payload: &'a [u8],
}

pub struct Sender {
    shared: Arc<Shared>,
    router: Router,
    staging: Staging,
    followups: Vec<Followup>,
    /// The bodies as if they had been read from a socket: body, CR LF, and so on.
    buffer: Vec<u8>,
    /// As of the last `flush`, or of when this sender was last taken from the pool.
    now_ms: u64,
}

impl Sender {
    pub fn new(shared: Arc<Shared>) -> Self {
        let random = Random::seeded(shared.clock.now_micros() ^ 0x5851_f42d_4c95_7f2d);
        Self {
            router: Router::new(Arc::clone(&shared), random),
            shared,
            staging: Staging::new(usize::MAX),
            followups: Vec::new(),
            buffer: Vec::new(),
            now_ms: 0,
        }
    }

    /// Routes one message and says to how many it goes; it is on its way after the next `flush`.
    pub fn send(&mut self, account: &Arc<Account>, outgoing: &Outgoing<'_>) -> u32 {
        self.route(account, None, outgoing, None, None)
    }

    /// The same on behalf of a client, which gains no more by it than by sending the message itself.
    pub fn send_for(
        &mut self,
        account: &Arc<Account>,
        permissions: Option<&Arc<Permissions>>,
        outgoing: &Outgoing<'_>,
    ) -> u32 {
        self.route(account, None, outgoing, None, permissions)
    }

    /// The same; each receiver that stores the message completes one of these receipts.
    pub fn send_with_receipts(
        &mut self,
        account: &Arc<Account>,
        outgoing: &Outgoing<'_>,
        receipts: &dyn IssueReceipt,
    ) -> u32 {
        self.route(account, None, outgoing, Some(receipts), None)
    }

    fn route(
        &mut self,
        account: &Arc<Account>,
        routes: Option<&Routes>,
        outgoing: &Outgoing<'_>,
        receipts: Option<&dyn IssueReceipt>,
        permissions: Option<&Arc<Permissions>>,
    ) -> u32 {
        let start = self.buffer.len();
        self.buffer.extend_from_slice(outgoing.header);
        self.buffer.extend_from_slice(outgoing.payload);
        let end = self.buffer.len();
        self.buffer.extend_from_slice(b"\r\n");
        let mut digits = [itoa::Buffer::new(), itoa::Buffer::new()];
        let [header_digits, total_digits] = &mut digits;
        let publish = Publish {
            subject: outgoing.subject,
            reply: outgoing.reply,
            header_size_text: header_digits.format(outgoing.header.len()).as_bytes(),
            total_size_text: total_digits.format(end - start).as_bytes(),
            header_len: outgoing.header.len(),
            body: &self.buffer[start..end],
        };
        let publisher = Publisher {
            connection_id: 0,
            slot: None,
            account,
            permissions,
            echo: true,
            no_responders: false,
            drops_for_slow: false,
            trace: None,
            now_ms: self.now_ms,
            is_imported: false,
            receipts,
            linked: None,
            deliver_subject: routes.and_then(|routes| routes.linked_subject.as_deref()),
        };
        let (router, staging) = (&mut self.router, &mut self.staging);
        let deliveries = match routes {
            Some(routes) => router.publish_to(routes, &publisher, &publish, &self.buffer, staging),
            None => router.publish_once(&publisher, &publish, &self.buffer, staging),
        };
        if self.buffer.len() >= GATHERED_BYTES_MAX {
            self.flush();
        }
        deliveries
    }

    /// The same to receivers that were found before, whatever the subject.
    pub fn send_to(
        &mut self,
        account: &Arc<Account>,
        routes: &Routes,
        outgoing: &Outgoing<'_>,
    ) -> u32 {
        self.route(account, Some(routes), outgoing, None, None)
    }

    /// Routes one message and hands it over.
    pub fn send_now(&mut self, account: &Arc<Account>, outgoing: &Outgoing<'_>) {
        self.now_ms = self.shared.clock.now_ms();
        self.route(account, None, outgoing, None, None);
        self.flush();
    }

    /// Hands everything over.
    pub fn flush(&mut self) {
        let now_ms = self.shared.clock.now_ms();
        self.now_ms = now_ms;
        self.shared
            .events
            .push_requests(self.staging.take_requests());
        self.staging
            .flush(&self.buffer, now_ms, &mut self.followups);
        for followup in self.followups.drain(..) {
            self.shared
                .follow_up(&followup.connection, followup.flushed);
        }
        self.staging.settle_sinks();
        self.buffer.clear();
        self.buffer.shrink_to(GATHERED_BYTES_MAX);
    }
}

/// A pool of senders, each borrowed for a moment.
pub struct Senders {
    shared: Arc<Shared>,
    idle: Mutex<Vec<Sender>>,
}

impl Senders {
    pub fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            idle: Mutex::default(),
        }
    }

    /// Runs `work` with a sender, and hands over what it sent.
    pub fn with<T>(&self, work: impl FnOnce(&mut Sender) -> T) -> T {
        let idle = self.idle.lock().pop();
        let mut sender = idle.unwrap_or_else(|| Sender::new(Arc::clone(&self.shared)));
        sender.now_ms = self.shared.clock.now_ms();
        let result = work(&mut sender);
        sender.flush();
        let mut idle = self.idle.lock();
        if idle.len() < SENDERS_KEPT_MAX {
            idle.push(sender);
        }
        result
    }
}
