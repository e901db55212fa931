//! What passes an open link: messages, and what the other side wants.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use super::{Context, LONG_PAUSE};
use crate::common::subject;
use crate::connection::session::tracing::{self, Tracing};
use crate::connection::session::{Next, Session};
use crate::routing::clients::closed_reason::ClosedReason;
use crate::routing::leaf::interest::ToldInterest;
use crate::routing::leaf::link::{is_answer, LOOP_PREFIX};
use crate::routing::leaf::{LeafLink, LeafReceiver, LinkedPublish};
use crate::routing::mappings::Mapped;
use crate::routing::message_trace::{request, MessageTrace};
use crate::routing::router::Publisher;
use crate::routing::subscription::{Receiver, Restrictions, Subscription};
use crate::wire::ack_subject;
use crate::wire::leaf_parser::{LeafMessage, LeafSubject};
use crate::wire::Publish;

impl Session {
    /// Returns the link; a peer that sends anything else before CONNECT is disconnected.
    fn open_link(&mut self, context: &mut Context<'_>) -> Result<Arc<LeafLink>, Next> {
        let link = self.leaf.as_ref().and_then(|leaf| leaf.link.as_ref());
        match link {
            Some(link) => Ok(Arc::clone(link)),
            None => Err(self.refuse_link(
                "Authorization Violation",
                ClosedReason::ProtocolViolation,
                None,
                context,
            )),
        }
    }

    /// The other side knows what may pass, and does otherwise: the link ends.
    fn violate_rules(&mut self, what: &str, subject: &[u8], context: &mut Context<'_>) -> Next {
        let subject = subject::quoted(subject);
        let text = format!("Permissions Violation for {what} to {subject}");
        let reason = ClosedReason::ProtocolViolation;
        self.refuse_link(&text, reason, Some(LONG_PAUSE), context)
    }

    /// Routes a message that has come through the link.
    pub(super) fn route_linked(
        &mut self,
        message: &LeafMessage<'_>,
        buffer: &[u8],
        context: &mut Context<'_>,
    ) -> Result<(), Next> {
        let Some(link) = self.leaf.as_ref().and_then(|leaf| leaf.link.as_ref()) else {
            return self.open_link(context).map(|_| ());
        };
        let is_spoke = link.traits.is_spoke;
        let publish = &message.publish;
        if !self.may_come_in(publish.subject, context.now_ms) {
            if is_spoke {
                // The hub has said what may pass; what it sends all the same is not for this side.
                return Ok(());
            }
            return Err(self.violate_rules("Publish", publish.subject, context));
        }
        if publish.header_len > 0 && request::is_mentioned(publish.header()) {
            let (subject, bytes) = (publish.subject, publish.body.len());
            match self.begin_trace(publish.header(), subject, bytes, context) {
                Tracing::Unasked => {}
                Tracing::Dropped => return Ok(()),
                Tracing::Traced(trace) => {
                    self.publish_linked(message, Some(&trace), buffer, context);
                    tracing::send(*trace, context);
                    return Ok(());
                }
            }
        }
        self.publish_linked(message, None, buffer, context);
        Ok(())
    }

    /// Whether a message of the other side may come in: at the spoke by what the hub has said, at the hub by what its user may publish.
    #[inline]
    pub(in crate::connection::session) fn may_come_in(
        &mut self,
        subject: &[u8],
        now_ms: u64,
    ) -> bool {
        let link = self.leaf.as_ref().and_then(|leaf| leaf.link.as_ref());
        is_answer(subject)
            || match link.filter(|link| link.traits.is_spoke) {
                Some(link) => link.may_hear(subject),
                None => self.access.allows_publish(subject, now_ms),
            }
    }

    /// Routes a message that may come in.
    #[inline]
    fn publish_linked(
        &mut self,
        message: &LeafMessage<'_>,
        trace: Option<&MessageTrace>,
        buffer: &[u8],
        context: &mut Context<'_>,
    ) {
        let Some(link) = self.leaf.as_ref().and_then(|leaf| leaf.link.as_ref()) else {
            return;
        };
        let publish = &message.publish;
        let mut mapped_subject = Vec::new();
        let mapped = if link.put_own_subject(publish.subject, &mut mapped_subject) {
            Mapped::Changed
        } else if self.account.has_mappings() {
            let random = context.router.random();
            self.account
                .map(publish.subject, random, &mut mapped_subject)
        } else {
            Mapped::Unchanged
        };
        let routed = match mapped {
            Mapped::Unchanged => *publish,
            Mapped::Lost => return,
            Mapped::Changed => Publish {
                subject: &mapped_subject,
                ..*publish
            },
        };
        if let (Some(trace), Mapped::Changed) = (trace, &mapped) {
            trace.map(&mapped_subject);
        }
        let linked = LinkedPublish {
            link,
            queues: message.queues,
            reply: routed.reply,
            is_mapped: mapped == Mapped::Changed,
        };
        let publisher = Publisher {
            connection_id: self.connection.id,
            // A link is not slowed down for one receiver: what it carries is for many.
            slot: None,
            account: &self.account,
            permissions: self.access.permissions(),
            echo: false,
            no_responders: false,
            drops_for_slow: false,
            trace,
            now_ms: context.now_ms,
            is_imported: false,
            receipts: None,
            linked: Some(linked),
            deliver_subject: None,
        };
        match split_delivery(&routed) {
            None => context
                .router
                .publish(&publisher, &routed, buffer, context.staging),
            Some(delivery) => context.router.publish_delivery(
                &publisher,
                &delivery,
                routed.subject,
                buffer,
                context.staging,
            ),
        };
    }

    /// The other side wants something, or more of it.
    pub(super) fn add_interest(
        &mut self,
        wanted: &LeafSubject<'_>,
        context: &mut Context<'_>,
    ) -> Result<(), Next> {
        let link = self.open_link(context)?;
        let is_loop_subject = wanted.subject.starts_with(LOOP_PREFIX);
        if is_loop_subject && self.account.loop_subject() == Some(wanted.subject) {
            return Err(self.refuse_loop(context));
        }
        let is_literal = subject::is_literal(wanted.subject);
        if !is_loop_subject && is_literal && !link.may_send(wanted.subject) {
            if link.traits.is_spoke {
                return Ok(());
            }
            return Err(self.violate_rules("Subscription", wanted.subject, context));
        }
        if !subject::is_valid_subscription(wanted.subject) {
            self.say_error(context, "Invalid Subscription");
            return Ok(());
        }
        let subscriptions_max = context.shared.options().max_subscriptions;
        if subscriptions_max > 0 && self.subscriptions.len() >= subscriptions_max {
            self.say_error(context, "maximum subscriptions exceeded");
            return Ok(());
        }
        let key = ToldInterest::key(wanted.subject, wanted.queue);
        let before = self.subscriptions.get(&*key).cloned();
        if before.is_some() && wanted.queue.is_none() {
            return Ok(());
        }
        let receiver = LeafReceiver {
            link,
            weight: wanted.weight,
        };
        let subscription = Arc::new(Subscription::new(
            Receiver::Leaf(Arc::new(receiver)),
            wanted.subject,
            wanted.queue,
            &key,
            Restrictions::default(),
        ));
        self.subscriptions
            .insert(key.into(), Arc::clone(&subscription));
        self.account.subscribe(subscription);
        // The new one first, so that the group is never without a member.
        if let Some(before) = before {
            self.account.unsubscribe(&before);
        }
        self.count_leaf_subscriptions();
        Ok(())
    }

    /// The other side no longer wants something.
    pub(super) fn end_interest(
        &mut self,
        wanted: &LeafSubject<'_>,
        context: &mut Context<'_>,
    ) -> Result<(), Next> {
        self.open_link(context)?;
        let key = ToldInterest::key(wanted.subject, wanted.queue);
        if let Some(subscription) = self.subscriptions.remove(&*key) {
            self.account.unsubscribe(&subscription);
            self.count_leaf_subscriptions();
        }
        Ok(())
    }

    fn count_leaf_subscriptions(&self) {
        self.connection
            .subscription_count
            .store(self.subscriptions.len(), Ordering::Relaxed);
    }
}

/// Dots of an acknowledgement behind which there are only numbers: two names stand before, or four where there is a domain, and names may contain what separates the
/// acknowledgement from the subject that follows it.
const DOTS_BEFORE_NUMBERS: usize = 6;

/// A message that a consumer sends: its own subject follows the reply, and the subject on the wire is where it is
/// delivered to.
fn split_delivery<'a>(publish: &Publish<'a>) -> Option<Publish<'a>> {
    let reply = publish.reply?;
    if !reply.starts_with(ack_subject::ACK) {
        return None;
    }
    let numbers = memchr::memchr_iter(b'.', reply).nth(DOTS_BEFORE_NUMBERS - 1)?;
    let at = numbers + memchr::memchr(b'@', &reply[numbers..])?;
    let subject = &reply[at + 1..];
    (!subject.is_empty()).then_some(Publish {
        subject,
        reply: Some(&reply[..at]),
        ..*publish
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publish<'a>(reply: Option<&'a [u8]>) -> Publish<'a> {
        Publish {
            subject: b"_INBOX.1",
            reply,
            header_size_text: b"",
            total_size_text: b"0",
            header_len: 0,
            body: b"",
        }
    }

    #[test]
    fn the_subject_of_a_delivery_stands_behind_its_reply() {
        let delivery = split_delivery(&publish(Some(b"$JS.ACK.S.c.1.2.3.4.0@orders.eu"))).unwrap();

        assert_eq!(delivery.subject, b"orders.eu");
        assert_eq!(delivery.reply, Some(&b"$JS.ACK.S.c.1.2.3.4.0"[..]));
        for reply in [
            None,
            Some(&b"_INBOX.2@x"[..]),
            Some(b"$JS.ACK.S.c.1"),
            Some(b"$JS.ACK.S@"),
            Some(b"$JS.ACK.S.c.1.2.3.4.0@"),
        ] {
            assert!(split_delivery(&publish(reply)).is_none(), "{reply:?}");
        }
    }

    #[test]
    fn names_of_streams_and_consumers_may_contain_what_separates_the_subject() {
        for acknowledgement in [
            "$JS.ACK.S@1.c@2.1.2.3.4.0",
            "$JS.ACK.hub@x.hash.S@1.c@2.1.2.3.4.0",
            "$JS.ACK.S@1.c@2.1.2.3",
        ] {
            let reply = format!("{acknowledgement}@orders.eu@home");
            let delivery = split_delivery(&publish(Some(reply.as_bytes()))).unwrap();

            assert_eq!(delivery.subject, b"orders.eu@home", "{reply}");
            assert_eq!(delivery.reply, Some(acknowledgement.as_bytes()));
        }
    }
}
