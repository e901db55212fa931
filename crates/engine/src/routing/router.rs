//! From a publish to its receivers: the step that every message takes once.
//!
//! No allocation and no lock happens here on the common path: the routes come from the worker's cache, the deliveries go into its staging.

use std::sync::Arc;

use super::account::Account;
use super::cache::{FoundRoutes, RouteCache};
use super::clients::connection::Connection;
use super::clients::mailbox::WorkerCommand;
use super::imports::Shadow;
use super::operation_log;
pub use super::publisher::Publisher;
use super::shared::Shared;
use super::staging::Staging;
use super::subscription::{DeliveryAdmission, Receiver, Subscription};
use super::traced_delivery::queues_of;
use super::tree::{QueueGroup, Routes};
use crate::common::random::Random;
use crate::wire::{ack_subject, encoder, Publish};

/// The first tokens of an acknowledgement's subject name the consumer; the whole comes once.
const ACKNOWLEDGEMENT_TOKENS: usize = 4;

/// What a worker routes with. Belongs to one thread.
pub struct Router {
    shared: Arc<Shared>,
    /// One cache per account, by the account's index.
    caches: Vec<RouteCache>,
    random: Random,
}

impl Router {
    pub fn new(shared: Arc<Shared>, random: Random) -> Self {
        Self {
            shared,
            caches: Vec::new(),
            random,
        }
    }

    pub fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Delivers to those of the publisher's account and says to how many; what goes on to another one is left noted.
    pub(super) fn deliver_found(
        &mut self,
        publisher: &Publisher<'_>,
        publish: &Publish<'_>,
        buffer: &[u8],
        staging: &mut Staging,
    ) -> u32 {
        let routes = match publisher.trace {
            None => publisher.account.find(publish.subject).0,
            Some(_) => publisher.account.find_asking(publish.subject),
        };
        self.deliver_to(&routes, publisher, publish, buffer, staging)
    }

    /// The same to receivers that were found before.
    pub(super) fn deliver_to(
        &mut self,
        routes: &Routes,
        publisher: &Publisher<'_>,
        publish: &Publish<'_>,
        buffer: &[u8],
        staging: &mut Staging,
    ) -> u32 {
        let dispatch = Dispatch {
            shared: &self.shared,
            publisher,
            publish,
            buffer,
        };
        dispatch.deliver_to_all(routes, &mut self.random, staging)
    }

    #[inline]
    fn cache_of(&mut self, account: &Account) -> &mut RouteCache {
        if account.index >= self.caches.len() {
            self.caches
                .resize_with(account.index + 1, RouteCache::default);
        }
        &mut self.caches[account.index]
    }

    /// Delivers one message and says to how many. `buffer` is the read buffer that `publish` borrows from.
    #[inline]
    pub fn publish(
        &mut self,
        publisher: &Publisher<'_>,
        publish: &Publish<'_>,
        buffer: &[u8],
        staging: &mut Staging,
    ) -> u32 {
        self.cache_of(publisher.account);
        let cache = &mut self.caches[publisher.account.index];
        let found;
        let is_acknowledgement = publish.subject.starts_with(ack_subject::ACK)
            || publish.subject.starts_with(ack_subject::ACK_OF_2019);
        let routes = if publisher.trace.is_some() {
            found = FoundRoutes::Walked(publisher.account.find_asking(publish.subject));
            found.routes(cache)
        } else if is_acknowledgement {
            found =
                cache.find_by_prefix(publisher.account, publish.subject, ACKNOWLEDGEMENT_TOKENS);
            found.routes(cache)
        } else {
            cache.find(publisher.account, publish.subject)
        };
        let dispatch = Dispatch {
            shared: &self.shared,
            publisher,
            publish,
            buffer,
        };
        let mut deliveries = dispatch.deliver_to_all(routes, &mut self.random, staging);
        if staging.has_onward() {
            deliveries += self.send_onward(publisher, publish, buffer, staging, None);
        }
        if deliveries == 0 {
            Self::answer_nobody(publisher, publish, staging);
        }
        deliveries
    }

    /// A message reached nobody: its publisher is notified, if it asked to be.
    pub fn answer_nobody(publisher: &Publisher<'_>, publish: &Publish<'_>, staging: &mut Staging) {
        if let (true, Some(reply)) = (publisher.no_responders, publish.reply) {
            answer_no_responders(publisher, reply, publish.subject, staging);
        }
    }

    /// The same for a subject that is not likely to come again, such as that of an answer: it is remembered without its last token.
    pub fn publish_once(
        &mut self,
        publisher: &Publisher<'_>,
        publish: &Publish<'_>,
        buffer: &[u8],
        staging: &mut Staging,
    ) -> u32 {
        let cache = self.cache_of(publisher.account);
        let found = cache.find_by_parent(publisher.account, publish.subject);
        let dispatch = Dispatch {
            shared: &self.shared,
            publisher,
            publish,
            buffer,
        };
        let routes = found.routes(&self.caches[publisher.account.index]);
        let deliveries = dispatch.deliver_to_all(routes, &mut self.random, staging);
        if staging.has_onward() {
            return deliveries + self.send_onward(publisher, publish, buffer, staging, None);
        }
        deliveries
    }

    /// The same to receivers that were found before, whatever the subject.
    pub fn publish_to(
        &mut self,
        routes: &Routes,
        publisher: &Publisher<'_>,
        publish: &Publish<'_>,
        buffer: &[u8],
        staging: &mut Staging,
    ) -> u32 {
        let deliveries = self.deliver_to(routes, publisher, publish, buffer, staging);
        if staging.has_onward() {
            return deliveries + self.send_onward(publisher, publish, buffer, staging, None);
        }
        deliveries
    }

    /// Delivers what a consumer of another server sends: `subject` is where to, and the message has its own.
    pub fn publish_delivery(
        &mut self,
        publisher: &Publisher<'_>,
        publish: &Publish<'_>,
        subject: &[u8],
        buffer: &[u8],
        staging: &mut Staging,
    ) -> u32 {
        self.cache_of(publisher.account);
        let cache = &mut self.caches[publisher.account.index];
        let routes = cache.find(publisher.account, subject);
        let publisher = Publisher {
            deliver_subject: Some(subject),
            ..*publisher
        };
        let dispatch = Dispatch {
            shared: &self.shared,
            publisher: &publisher,
            publish,
            buffer,
        };
        let deliveries = dispatch.deliver_to_all(routes, &mut self.random, staging);
        if staging.has_onward() {
            let sent = as_sent(&publisher, publish);
            let publisher = Publisher {
                deliver_subject: None,
                ..publisher
            };
            return deliveries + self.send_onward(&publisher, &sent, buffer, staging, None);
        }
        deliveries
    }

    /// Drops routes that are outdated.
    pub fn forget_outdated(&mut self) {
        for (cache, account) in self.caches.iter_mut().zip(&self.shared.accounts()) {
            cache.forget_outdated(account);
        }
    }
}

/// One message on its way to its receivers.
pub(super) struct Dispatch<'a> {
    pub shared: &'a Shared,
    pub publisher: &'a Publisher<'a>,
    pub publish: &'a Publish<'a>,
    pub buffer: &'a [u8],
}

impl Dispatch<'_> {
    #[inline]
    fn deliver_to_all(&self, routes: &Routes, random: &mut Random, staging: &mut Staging) -> u32 {
        let mut deliveries = 0;
        for subscription in &routes.plain {
            deliveries += u32::from(self.deliver(subscription, staging));
        }
        for group in &routes.groups {
            let linked = self.publisher.linked;
            if linked.is_some_and(|linked| !linked.is_for(&group.name)) {
                continue;
            }
            let start = random.below(group.members.len());
            deliveries += u32::from(self.deliver_to_one(group, start, random, staging));
        }
        if !staging.leaf_targets.is_empty() {
            match self.publisher.trace {
                None => staging.deliver_to_links(
                    self.publish,
                    self.publisher.deliver_subject,
                    self.buffer,
                ),
                Some(trace) => self.forward_to_links(trace, staging),
            }
        }
        deliveries
    }

    /// One member of the group gets the message: a random one, or the next that takes it. Those of this server come first.
    fn deliver_to_one(
        &self,
        group: &QueueGroup,
        start: usize,
        random: &mut Random,
        staging: &mut Staging,
    ) -> bool {
        let (before, from_start) = group.members.split_at(start);
        let mut has_links = false;
        let is_delivered = from_start.iter().chain(before).any(|member| {
            has_links |= member.is_linked();
            !member.is_linked() && self.deliver(member, staging)
        });
        is_delivered || (has_links && self.deliver_to_one_link(group, random, staging))
    }

    /// No member of this server takes it: one behind a link does, each as likely as any other.
    #[cold]
    fn deliver_to_one_link(
        &self,
        group: &QueueGroup,
        random: &mut Random,
        staging: &mut Staging,
    ) -> bool {
        let weight_of = |member: &Arc<Subscription>| match &member.receiver {
            Receiver::Leaf(receiver) if !member.has_ended() => {
                let is_possible = self.publisher.may_send_to(receiver);
                u64::from(receiver.weight) * u64::from(is_possible)
            }
            _ => 0,
        };
        let total: u64 = group.members.iter().map(weight_of).sum();
        let mut chosen = random.below(total as usize) as u64;
        for member in &group.members {
            let weight = weight_of(member);
            if chosen < weight {
                return self.deliver(member, staging);
            }
            chosen -= weight;
        }
        false
    }

    #[inline]
    fn deliver(&self, subscription: &Arc<Subscription>, staging: &mut Staging) -> bool {
        if let Some(trace) = self.publisher.trace {
            return self.deliver_traced(trace, subscription, staging);
        }
        self.deliver_untraced(subscription, staging)
    }

    #[inline]
    pub fn deliver_untraced(
        &self,
        subscription: &Arc<Subscription>,
        staging: &mut Staging,
    ) -> bool {
        deliver(
            self.shared,
            self.publisher,
            subscription,
            self.publish,
            self.buffer,
            staging,
        )
    }
}

#[inline]
fn deliver(
    shared: &Shared,
    publisher: &Publisher<'_>,
    subscription: &Arc<Subscription>,
    publish: &Publish<'_>,
    buffer: &[u8],
    staging: &mut Staging,
) -> bool {
    let receiver = match &subscription.receiver {
        Receiver::Connection(receiver) => receiver,
        Receiver::Service(service) => {
            staging.request(*service, publisher, &as_sent(publisher, publish));
            return true;
        }
        Receiver::Sink(sink) => {
            let taken = !subscription.has_ended()
                && sink.accept(publisher, &as_sent(publisher, publish), staging);
            if taken {
                staging.note_sink(sink);
            }
            return taken;
        }
        Receiver::Leaf(linked) => {
            let is_possible = !subscription.has_ended() && publisher.may_send_to(linked);
            if is_possible {
                let queue = subscription.queue.as_deref();
                staging.leaf_targets.add(&linked.link, queue);
            }
            return is_possible;
        }
        _ => return deliver_elsewhere(shared, publisher, subscription, publish, buffer, staging),
    };
    if !publisher.echo && receiver.id == publisher.connection_id {
        return false;
    }
    let admission = subscription.admit();
    if admission == DeliveryAdmission::Ended {
        return false;
    }
    if publisher.drops_for_slow && receiver.outbox.is_nearly_full() {
        if admission == DeliveryAdmission::DeliverLast {
            end_subscription(shared, publisher, subscription, receiver);
        }
        return false;
    }
    staging.deliver(receiver, publisher.slot, publish, &subscription.sid, buffer);
    if let (Some(responses), Some(reply)) = (&subscription.restrictions.responses, publish.reply) {
        responses.grant(reply, publisher.now_ms);
    }
    if shared.events.is_tracing() {
        operation_log::delivery(shared, receiver, &subscription.sid, publish);
    }
    if admission == DeliveryAdmission::DeliverLast {
        end_subscription(shared, publisher, subscription, receiver);
    }
    true
}

/// A message as it was sent. Over a link, what a consumer sends has two subjects: clients and other servers get the one that follows the reply. Only for the
/// other one was it checked what the link may send, and so a stream, a service or an import gets that one.
fn as_sent<'a>(publisher: &Publisher<'a>, publish: &Publish<'a>) -> Publish<'a> {
    match (publisher.linked, publisher.deliver_subject) {
        (Some(linked), Some(subject)) => Publish {
            subject,
            reply: linked.reply,
            ..*publish
        },
        _ => *publish,
    }
}

/// Delivers to a receiver in another account, or notes that it is for one.
#[cold]
#[inline(never)]
fn deliver_elsewhere(
    shared: &Shared,
    publisher: &Publisher<'_>,
    subscription: &Arc<Subscription>,
    publish: &Publish<'_>,
    buffer: &[u8],
    staging: &mut Staging,
) -> bool {
    if subscription.has_ended() {
        return false;
    }
    match &subscription.receiver {
        Receiver::Shadow(_) if publisher.is_imported => false,
        Receiver::Shadow(shadow) => {
            deliver_to_original(shared, publisher, shadow, publish, buffer, staging)
        }
        Receiver::Import(_) | Receiver::Reply(_) => {
            staging.add_onward(subscription);
            // Who gets it is known when it has been sent on.
            false
        }
        _ => false,
    }
}

/// Delivers a message of another account under the subject it has in that of the receiver.
fn deliver_to_original(
    shared: &Shared,
    publisher: &Publisher<'_>,
    shadow: &Shadow,
    publish: &Publish<'_>,
    buffer: &[u8],
    staging: &mut Staging,
) -> bool {
    let (Some(account), mut subject) = (shadow.account.upgrade(), Vec::new()) else {
        return false;
    };
    let is_of_server = !matches!(
        shadow.original.receiver,
        Receiver::Connection(_) | Receiver::Leaf(_)
    );
    let (sent, deliver_subject) = match is_of_server {
        true => (as_sent(publisher, publish), None),
        false => (*publish, publisher.deliver_subject),
    };
    let publish = &sent;
    if shadow.map.forward(publish.subject, &mut subject) {
        if !shadow.original.may_see(&subject) {
            return false;
        }
    } else {
        // What a consumer sends keeps the subject it was stored under. A receiver with restrictions does not get it.
        if !shadow.original.restrictions.kept_back.is_empty() {
            return false;
        }
        subject.extend_from_slice(publish.subject);
    }
    let publisher = Publisher {
        account: &account,
        // What it may do in its own account says nothing about this one.
        permissions: None,
        deliver_subject,
        ..*publisher
    };
    let publish = Publish {
        subject: &subject,
        ..*publish
    };
    let original = &shadow.original;
    if let Receiver::Leaf(linked) = &original.receiver {
        // At once: other links of the message get it under its own subject.
        if original.has_ended() || !publisher.may_send_to(linked) {
            return false;
        }
        staging.deliver_to_link(&linked.link, &publish, &queues_of(original), buffer);
        return true;
    }
    deliver(shared, &publisher, original, &publish, buffer, staging)
}

/// A subscription has had its last delivery.
#[cold]
fn end_subscription(
    shared: &Shared,
    publisher: &Publisher<'_>,
    subscription: &Arc<Subscription>,
    receiver: &Connection,
) {
    publisher.account.unsubscribe(subscription);
    shared.send(
        receiver.worker,
        WorkerCommand::Ended {
            slot: receiver.slot,
            connection_id: receiver.id,
            subscription: Arc::clone(subscription),
        },
    );
}

/// Reports to a requester at once that nobody will answer, if it is subscribed to its reply subject itself.
fn answer_no_responders(
    publisher: &Publisher<'_>,
    reply: &[u8],
    subject: &[u8],
    staging: &mut Staging,
) {
    let (routes, _) = publisher.account.find(reply);
    let own = routes.plain.iter().find_map(|subscription| {
        let Receiver::Connection(connection) = &subscription.receiver else {
            return None;
        };
        let own = connection.id == publisher.connection_id && !subscription.has_ended();
        own.then_some((connection, subscription))
    });
    // It does not count as a delivery: nobody published it.
    if let Some((connection, subscription)) = own {
        encoder::no_responders(
            staging.entry(connection).line(),
            reply,
            &subscription.sid,
            subject,
        );
    }
}
