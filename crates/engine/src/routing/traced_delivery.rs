//! Deliveries of a message that is traced: as others, and each is noted.
//!
//! Invariant: a dry run (`only`) reaches nobody but servers that go on with the trace.

use std::sync::Arc;

use super::envelope::{Digits, Envelope};
use super::imports::Shadow;
use super::leaf::LeafLink;
use super::message_trace;
use super::message_trace::request::TRACE_HOP;
use super::message_trace::MessageTrace;
use super::router::{Dispatch, Publisher};
use super::staging::Staging;
use super::subscription::{Receiver, Subscription};
use crate::wire::trusted_headers::{TRACE_DESTINATION, TRACE_DISABLED};
use crate::wire::Publish;

impl Dispatch<'_> {
    /// Notes what becomes of the message at this receiver. What is only traced counts as delivered to a client and goes nowhere.
    #[cold]
    pub fn deliver_traced(
        &self,
        trace: &MessageTrace,
        subscription: &Arc<Subscription>,
        staging: &mut Staging,
    ) -> bool {
        let subject = self.publish.subject;
        let receiver = match &subscription.receiver {
            Receiver::Connection(receiver) => receiver,
            Receiver::Shadow(shadow) => {
                return self.deliver_exported(trace, subscription, shadow, staging)
            }
            // What becomes of it is noted when it is sent on.
            Receiver::Import(_) | Receiver::Replies | Receiver::Reply(_) => {
                return self.deliver_untraced(subscription, staging);
            }
            Receiver::Sink(sink) if sink.stores() => {
                return self.deliver_untraced(subscription, staging);
            }
            // What becomes of it is noted when all links are known.
            Receiver::Leaf(_) => return self.deliver_untraced(subscription, staging),
            Receiver::Service(_) | Receiver::Sink(_) => {
                trace.request(&self.shared.options().system_account, subject);
                return !trace.only && self.deliver_untraced(subscription, staging);
            }
        };
        let own = receiver.id == self.publisher.connection_id;
        let error = if own && !self.publisher.echo {
            message_trace::NO_ECHO
        } else if !subscription.may_see(subject) {
            message_trace::SUBSCRIPTION_DENIES
        } else if subscription.has_ended() {
            message_trace::SUBSCRIPTION_CLOSED
        } else if trace.only || self.deliver_untraced(subscription, staging) {
            ""
        } else if self.publisher.drops_for_slow && receiver.outbox.is_nearly_full() {
            message_trace::RECEIVER_SLOW
        } else {
            message_trace::SUBSCRIPTION_CLOSED
        };
        trace.deliver(receiver, subscription, error);
        error.is_empty()
    }

    /// Notes that the message goes to another account, and what becomes of it there if that account allows it.
    fn deliver_exported(
        &self,
        trace: &MessageTrace,
        subscription: &Arc<Subscription>,
        shadow: &Shadow,
        staging: &mut Staging,
    ) -> bool {
        if self.publisher.is_imported {
            return false;
        }
        let Some(account) = shadow.account.upgrade() else {
            return false;
        };
        let mut subject = Vec::new();
        if !shadow.map.forward(self.publish.subject, &mut subject) {
            subject.extend_from_slice(self.publish.subject);
        }
        trace.export_stream(&account.name, &subject);
        if !shadow.allow_trace {
            return trace.only
                || match shadow.original.is_linked() {
                    true => self.deliver_disabled(subscription, staging),
                    false => self.deliver_untraced(subscription, staging),
                };
        }
        let publisher = Publisher {
            account: &account,
            permissions: None,
            ..*self.publisher
        };
        let publish = Publish {
            subject: &subject,
            ..*self.publish
        };
        let dispatch = Dispatch {
            shared: self.shared,
            publisher: &publisher,
            publish: &publish,
            buffer: self.buffer,
        };
        let original = &shadow.original;
        if let Receiver::Leaf(linked) = &original.receiver {
            let is_possible = !original.has_ended() && publisher.may_send_to(linked);
            if is_possible {
                let queues = queues_of(original);
                dispatch.forward(trace, &linked.link, &queues, staging);
            }
            return is_possible;
        }
        dispatch.deliver_traced(trace, original, staging)
    }

    /// Delivers to a server behind another account, which must not go on with the trace.
    fn deliver_disabled(&self, subscription: &Arc<Subscription>, staging: &mut Staging) -> bool {
        let mut envelope = Envelope::new(self.publish);
        envelope.set(TRACE_DESTINATION, TRACE_DISABLED);
        let body = envelope.into_body(self.publish.payload());
        let mut digits = Digits::default();
        let publish = body.publish(self.publish.subject, self.publish.reply, &mut digits);
        let dispatch = Dispatch {
            publish: &publish,
            buffer: &body.bytes,
            ..*self
        };
        staging.copying(|staging| dispatch.deliver_untraced(subscription, staging))
    }

    /// Sends a message that is traced on to the links that were noted.
    #[cold]
    pub fn forward_to_links(&self, trace: &MessageTrace, staging: &mut Staging) {
        let mut targets = std::mem::take(&mut staging.leaf_targets);
        targets.drain(|link, queues| self.forward(trace, link, queues, staging));
        staging.leaf_targets = targets;
    }

    /// Sends a message that is traced through one link, dry run or not: the server there goes on with the trace.
    fn forward(&self, trace: &MessageTrace, link: &LeafLink, queues: &[u8], staging: &mut Staging) {
        let Publish { subject, reply, .. } = *self.publish;
        let hop = trace.next_hop();
        let mut envelope = Envelope::new(self.publish);
        envelope.set(TRACE_HOP.as_bytes(), hop.as_bytes());
        let (is_sent, error) = if !link.may_send(subject) {
            (false, message_trace::PUBLISH_DENIED)
        } else if link.traits.has_tracing {
            (true, "")
        } else if trace.only {
            (false, message_trace::DRY_RUN_UNSUPPORTED)
        } else {
            (true, message_trace::UNSUPPORTED)
        };
        trace.forward(link, hop, error);
        if is_sent {
            let body = envelope.into_body(self.publish.payload());
            let mut digits = Digits::default();
            let publish = body.publish(subject, reply, &mut digits);
            staging.copying(|staging| staging.deliver_to_link(link, &publish, queues, &body.bytes));
        }
    }
}

/// The queue group of a subscription, as a line of the leaf protocol names groups.
pub(super) fn queues_of(subscription: &Subscription) -> Vec<u8> {
    let queue = subscription.queue.as_deref();
    queue.map_or(Vec::new(), |queue| [queue, b" "].concat())
}
