//! Finding who gets the next message: the subscriber of a push consumer, or the pull request whose turn it is.
//!
//! Invariant: whoever is chosen listens, has time left, and may have a message by the rules of its group.

use super::outbound::Outbound;
use super::status;
use crate::consumer::advisory::Advisory;
use crate::consumer::core::{Core, PassContext, Pin};
use crate::consumer::pull::waiting;
use crate::consumer::settings::PriorityPolicy;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryTarget {
    Push,
    /// The request at this place in the line.
    Pull(usize),
}

/// Letters of a pin.
const PIN_LETTERS: usize = 22;

impl Core {
    /// Who gets the next message; requests that cannot have one any more are ended on the way.
    pub(in crate::consumer) fn choose(
        &mut self,
        context: &PassContext<'_>,
        now_ns: i64,
        out: &mut Outbound,
    ) -> Option<DeliveryTarget> {
        if let Some(push) = &mut self.push {
            let is_ready = push.look(context.account, &self.settings)
                && push.rate_due_ns <= now_ns
                && !push
                    .flow
                    .as_ref()
                    .is_some_and(crate::consumer::delivery::push::FlowControl::is_full);
            return is_ready.then_some(DeliveryTarget::Push);
        }
        self.choose_request(context, now_ns, out)
    }

    fn choose_request(
        &mut self,
        context: &PassContext<'_>,
        now_ns: i64,
        out: &mut Outbound,
    ) -> Option<DeliveryTarget> {
        let policy = self.settings.priority_policy;
        let mut at = 0;
        loop {
            let request = self.waiting.get_mut(at)?;
            if request
                .expires_ns
                .is_some_and(|expires_ns| expires_ns <= now_ns)
            {
                self.header.clear();
                let (messages, bytes) = request.left();
                status::request_timeout(&mut self.header, messages, bytes);
                waiting::reply(out, request, &self.header);
                self.waiting.remove(at);
                continue;
            }
            request.interest.refresh(context.account);
            if !request.interest.is_heard() {
                self.waiting.remove(at);
                continue;
            }
            match policy {
                PriorityPolicy::None | PriorityPolicy::Prioritized => {
                    return Some(DeliveryTarget::Pull(at))
                }
                PriorityPolicy::Overflow => {
                    let ack_pending = self.acks.pending_count() as u64;
                    let again = u64::from(self.acks.queued_count() > 0);
                    let bound = |least: u64, there: u64| least > 0 && there >= least;
                    let is_free = request.min_pending == 0 && request.min_ack_pending == 0;
                    if is_free
                        || bound(request.min_pending, self.count.value() + again)
                        || bound(request.min_ack_pending, ack_pending)
                    {
                        return Some(DeliveryTarget::Pull(at));
                    }
                    at += 1;
                }
                PriorityPolicy::PinnedClient => {
                    let is_pinned = self.pin.as_ref().map(|pin| pin.id == request.id);
                    match (is_pinned, request.id.is_empty()) {
                        (Some(true), _) => return Some(DeliveryTarget::Pull(at)),
                        (None, true) => return Some(DeliveryTarget::Pull(at)),
                        (Some(false), true) => at += 1,
                        (_, false) => {
                            self.header.clear();
                            let (messages, bytes) = request.left();
                            status::wrong_pin(&mut self.header, messages, bytes);
                            waiting::reply(out, request, &self.header);
                            self.waiting.remove(at);
                        }
                    }
                }
            }
        }
    }

    /// Whoever is chosen gets everything from now on, if nobody else does and the request is of a group.
    pub(in crate::consumer) fn pin(
        &mut self,
        context: &PassContext<'_>,
        target: DeliveryTarget,
        now_ns: i64,
        out: &mut Outbound,
    ) {
        let DeliveryTarget::Pull(at) = target else {
            return;
        };
        let is_free =
            self.settings.priority_policy == PriorityPolicy::PinnedClient && self.pin.is_none();
        let Some(request) = self.waiting.get_mut(at) else {
            return;
        };
        if !is_free || !request.names_group {
            return;
        }
        let id = self.random.text(PIN_LETTERS);
        request.id.clone_from(&id);
        let groups = &self.settings.priority_groups;
        let group = groups.first().cloned().unwrap_or_default();
        let event = Advisory::Pinned {
            group: &group,
            pinned_id: &id,
        };
        self.tell(context, &event, out);
        self.pin = Some(Pin {
            id,
            since_ns: now_ns,
            due_ns: now_ns.saturating_add(self.settings.priority_timeout_ns),
        });
    }
}
