//! Pull requests that wait for messages, in the order in which they are served.
//!
//! Each delivered message moves its request after the others of its class, so that they are served in turns. Invariant:
//! there are never more than the consumer allows; where requests have priorities, those of a better one stand before all
//! others.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::consumer::delivery::interest::Interest;
use crate::consumer::delivery::outbound::Outbound;
use crate::consumer::delivery::status;
use crate::routing::account::Account;
use crate::routing::tree::Routes;

/// A request that waits.
pub struct PullWait {
    pub interest: Interest,
    /// Messages it may still get.
    pub batch: i64,
    /// Bytes it may still get, if it named a limit.
    pub bytes: Option<i64>,
    pub expires_ns: Option<i64>,
    pub no_wait: bool,
    pub heartbeat_ns: i64,
    pub heartbeat_due_ns: i64,
    pub delivered: u64,
    pub min_pending: u64,
    pub min_ack_pending: u64,
    pub id: String,
    /// It was JSON, and so named its group where there are any.
    pub names_group: bool,
    pub priority: u8,
    /// Who asked, so that messages of one key stay with one receiver.
    pub connection_id: u64,
}

impl PullWait {
    /// The headers that say what is left of it.
    pub fn left(&self) -> (i64, i64) {
        (self.batch, self.bytes.unwrap_or(0))
    }
}

#[derive(Default)]
pub struct WaitingPulls {
    requests: VecDeque<PullWait>,
}

impl WaitingPulls {
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub fn get(&self, at: usize) -> Option<&PullWait> {
        self.requests.get(at)
    }

    pub fn get_mut(&mut self, at: usize) -> Option<&mut PullWait> {
        self.requests.get_mut(at)
    }

    /// Messages all requests together may still get.
    pub fn wanted(&self) -> u64 {
        self.requests.iter().fold(0, |sum: u64, request| {
            sum.saturating_add(request.batch.max(1) as u64)
        })
    }

    /// Adds a request after those of its class.
    pub fn push(&mut self, request: PullWait) {
        let behind = self
            .requests
            .iter()
            .rposition(|other| other.priority <= request.priority)
            .map_or(0, |at| at + 1);
        if behind == self.requests.len() {
            self.requests.push_back(request);
        } else {
            self.requests.insert(behind, request);
        }
    }

    pub fn remove(&mut self, at: usize) -> Option<PullWait> {
        self.requests.remove(at)
    }

    /// A request has got a message: it goes after the others of its class, or away if that was all it wanted.
    pub fn served(
        &mut self,
        at: usize,
        bytes: u64,
        now_ns: i64,
        out: &mut Outbound,
        header: &mut Vec<u8>,
    ) {
        let Some(request) = self.requests.get_mut(at) else {
            return;
        };
        request.delivered += 1;
        request.heartbeat_due_ns = now_ns.saturating_add(request.heartbeat_ns);
        request.batch = request.batch.saturating_sub(1);
        if let Some(left) = &mut request.bytes {
            *left -= bytes as i64;
        }
        let ended = request.batch <= 0 || request.bytes == Some(0);
        if !ended && self.requests.len() == 1 {
            return;
        }
        let Some(request) = self.requests.remove(at) else {
            return;
        };
        if !ended {
            return self.push(request);
        }
        if request.bytes.is_some_and(|left| left > 0) {
            header.clear();
            let (messages, bytes) = request.left();
            status::batch_completed(header, messages, bytes);
            reply(out, &request, header);
        }
    }

    /// Removes requests whose time is over or whom nobody listens to any more.
    pub fn expire(
        &mut self,
        now_ns: i64,
        account: &Account,
        out: &mut Outbound,
        header: &mut Vec<u8>,
    ) {
        self.requests.retain_mut(|request| {
            if request
                .expires_ns
                .is_some_and(|expires_ns| expires_ns <= now_ns)
            {
                header.clear();
                let (messages, bytes) = request.left();
                status::request_timeout(header, messages, bytes);
                reply(out, request, header);
                return false;
            }
            request.interest.refresh(account);
            request.interest.is_heard()
        });
    }

    /// Forgets requests whom nobody listens to any more.
    pub fn drop_without_interest(&mut self, account: &Account) {
        self.requests.retain_mut(|request| {
            request.interest.refresh(account);
            request.interest.is_heard()
        });
    }

    /// Ends requests that wait for nothing, though there is nothing they may have.
    pub fn end_unserved(&mut self, out: &mut Outbound, header: &mut Vec<u8>) {
        self.requests.retain(|request| {
            let ends = request.no_wait && request.expires_ns.is_none();
            if ends {
                header.clear();
                status::no_messages(header);
                reply(out, request, header);
            }
            !ends
        });
    }

    /// Ends requests that do not wait for more than was there: once they have got something, or at once if they do not say how long they would wait for it.
    pub fn end_impatient(&mut self, out: &mut Outbound, header: &mut Vec<u8>) {
        self.requests.retain(|request| {
            let ends = request.no_wait && (request.delivered > 0 || request.expires_ns.is_none());
            if ends {
                header.clear();
                status::no_messages(header);
                reply(out, request, header);
            }
            !ends
        });
    }

    /// Ends all requests with a status.
    pub fn end_all(&mut self, out: &mut Outbound, mut header: impl FnMut(&PullWait, &mut Vec<u8>)) {
        let mut block = Vec::new();
        for request in self.requests.drain(..) {
            block.clear();
            header(&request, &mut block);
            reply(out, &request, &block);
        }
    }

    /// Sends heartbeats that are due.
    pub fn heartbeat(&mut self, now_ns: i64, header: &[u8], out: &mut Outbound) {
        for request in &mut self.requests {
            if request.heartbeat_ns > 0 && request.heartbeat_due_ns <= now_ns {
                request.heartbeat_due_ns = now_ns.saturating_add(request.heartbeat_ns);
                reply(out, request, header);
            }
        }
    }

    /// When the clock has to look at them next.
    pub fn next_due_ns(&self) -> Option<i64> {
        self.requests
            .iter()
            .flat_map(|request| {
                let heartbeat = (request.heartbeat_ns > 0).then_some(request.heartbeat_due_ns);
                [request.expires_ns, heartbeat]
            })
            .flatten()
            .min()
    }
}

/// Sends a status to the one who asked.
pub fn reply(out: &mut Outbound, request: &PullWait, header: &[u8]) {
    let routes: &Arc<Routes> = request.interest.routes();
    out.status(Some(routes), &request.interest.subject, b"", header);
}
