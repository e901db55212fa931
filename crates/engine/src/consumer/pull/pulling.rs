//! Taking pull requests in: what is refused at once, and what waits.
//!
//! Invariant: a request is answered with a status, or waits, or its consumer is gone.

use super::request;
use super::request::PullRequest;
use super::waiting::PullWait;
use crate::config::options::API_LEVEL;
use crate::consumer::core::{Core, PassContext};
use crate::consumer::delivery::interest::Interest;
use crate::consumer::delivery::outbound::Outbound;
use crate::consumer::delivery::status;
use crate::consumer::settings::PriorityPolicy;
use crate::wire::stored_headers;

const REQUIRED_API_LEVEL: &[u8] = b"Nats-Required-Api-Level";

const PRIORITY_MAX: i64 = 9;

/// A request as it came.
pub struct Asked<'a> {
    pub reply: &'a [u8],
    pub header: &'a [u8],
    pub body: &'a [u8],
    pub connection_id: u64,
}

impl Core {
    /// Takes a request in; what is wrong with it is said at once.
    pub fn pull(
        &mut self,
        context: &PassContext<'_>,
        asked: &Asked<'_>,
        now_ns: i64,
        out: &mut Outbound,
    ) {
        let mut block = std::mem::take(&mut self.header);
        block.clear();
        let refused = self.admit(context, asked, now_ns, &mut block, out);
        if refused {
            out.status(None, asked.reply, b"", &block);
        }
        self.header = block;
    }

    /// True if the request is refused with the status in `block`.
    fn admit(
        &mut self,
        context: &PassContext<'_>,
        asked: &Asked<'_>,
        now_ns: i64,
        block: &mut Vec<u8>,
        out: &mut Outbound,
    ) -> bool {
        if self.push.is_some() {
            status::push_based(block);
            return true;
        }
        if !is_level_served(asked.header) {
            status::api_level_required(block);
            return true;
        }
        let request = match request::read(asked.body) {
            Ok(request) => request,
            Err(bad) => {
                status::bad_request(block, &bad.reason);
                return true;
            }
        };
        self.note_activity(now_ns);
        if self.exceeds(&request, block) || self.breaks_group_rules(&request, now_ns, block) {
            return true;
        }
        if self.waiting.len() >= self.settings.max_waiting {
            self.waiting.expire(now_ns, context.account, out, block);
            block.clear();
        }
        if request.no_wait && self.has_nothing_for(&request, context, now_ns, block) {
            return true;
        }
        if self.waiting.len() >= self.settings.max_waiting {
            if request.idle_heartbeat_ns <= 0 {
                status::waiting_exceeded(block);
                return true;
            }
            return false;
        }
        let heartbeat_ns = request.idle_heartbeat_ns.max(0);
        self.waiting.push(PullWait {
            interest: Interest::new(context.account, asked.reply),
            batch: request.batch,
            bytes: (request.max_bytes > 0).then_some(request.max_bytes),
            expires_ns: (request.expires_ns != 0)
                .then(|| now_ns.saturating_add(request.expires_ns)),
            no_wait: request.no_wait,
            heartbeat_ns,
            heartbeat_due_ns: now_ns.saturating_add(heartbeat_ns),
            delivered: 0,
            min_pending: request.min_pending.max(0) as u64,
            min_ack_pending: request.min_ack_pending.max(0) as u64,
            id: request.id.into_owned(),
            names_group: request.is_object,
            priority: match self.settings.priority_policy {
                PriorityPolicy::Prioritized if !request.is_object => u8::MAX,
                PriorityPolicy::Prioritized => request.priority as u8,
                _ => 0,
            },
            connection_id: asked.connection_id,
        });
        false
    }

    fn exceeds(&self, request: &PullRequest<'_>, block: &mut Vec<u8>) -> bool {
        let settings = &self.settings;
        let is_over = |asked: i64, most: i64| most > 0 && asked > most;
        if is_over(request.batch, settings.max_batch) {
            status::batch_exceeded(block, settings.max_batch);
            return true;
        }
        if is_over(request.expires_ns, settings.max_expires_ns) {
            status::expires_exceeded(block, settings.max_expires_ns);
            return true;
        }
        if is_over(request.max_bytes, settings.max_bytes) {
            status::bytes_exceeded(block, settings.max_bytes);
            return true;
        }
        false
    }

    fn breaks_group_rules(
        &mut self,
        request: &PullRequest<'_>,
        now_ns: i64,
        block: &mut Vec<u8>,
    ) -> bool {
        let policy = self.settings.priority_policy;
        if !request.is_object {
            return false;
        }
        let mut refuse = |reason: &str| {
            status::bad_request(block, reason);
            true
        };
        let bounds = [request.min_pending, request.min_ack_pending];
        if policy != PriorityPolicy::Overflow && bounds != [0; 2] {
            return refuse(status::reason::NOT_OVERFLOW);
        }
        if policy != PriorityPolicy::PinnedClient && !request.id.is_empty() {
            return refuse(status::reason::NOT_PINNED_CLIENT);
        }
        if !(0..=PRIORITY_MAX).contains(&request.priority) {
            return refuse(status::reason::PRIORITY_OUT_OF_RANGE);
        }
        if policy != PriorityPolicy::None {
            if request.group.is_empty() {
                return refuse(status::reason::GROUP_MISSING);
            }
            if !self
                .settings
                .priority_groups
                .iter()
                .any(|group| **group == *request.group)
            {
                return refuse(status::reason::GROUP_INVALID);
            }
        }
        if let Some(pin) = self.pin.as_mut().filter(|_| !request.id.is_empty()) {
            if pin.id != *request.id {
                status::pin_mismatch(block);
                return true;
            }
            pin.due_ns = now_ns.saturating_add(self.settings.priority_timeout_ns);
        }
        false
    }

    fn has_nothing_for(
        &mut self,
        request: &PullRequest<'_>,
        context: &PassContext<'_>,
        now_ns: i64,
        block: &mut Vec<u8>,
    ) -> bool {
        self.recount(context.store, now_ns, true);
        let there = match self.is_paused(now_ns) {
            true => 0,
            false => self.count.value() + self.acks.queued_count() as u64,
        };
        if there == 0 && request.expires_ns == 0 {
            status::no_messages(block);
            return true;
        }
        if there > 0 && there < self.waiting.wanted() {
            status::requests_pending(block);
            return true;
        }
        false
    }
}

fn is_level_served(header: &[u8]) -> bool {
    if header.is_empty() {
        return true;
    }
    stored_headers::value(header, REQUIRED_API_LEVEL).is_none_or(|text| {
        let level = std::str::from_utf8(text)
            .ok()
            .and_then(|text| text.parse::<i64>().ok());
        text.is_empty() || level.is_some_and(|level| level <= i64::from(API_LEVEL))
    })
}
