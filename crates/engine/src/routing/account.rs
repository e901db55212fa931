//! An account: a subject space of its own, shut off from every other.
//!
//! Invariant: `generation` grows after every change of the tree, so routes found at one generation are right as long as it stands.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;
use serde::Serialize;

use super::imports::service_import::IMPORTS_IN_A_ROW_MAX;
use super::imports::{replies, Replies, ServiceImport, StreamImport};
use super::leaf::link::LOOP_PREFIX;
use super::leaf::LeafLink;
use super::mappings::{Mapped, Mappings};
use super::sink::Watcher;
use super::subscription::{Receiver, Restrictions, Subscription};
use super::tree::{Routes, SubscriptionTree};
use crate::common::clock;
use crate::common::random::Random;
use crate::common::subject;

/// The account of everybody who names none.
pub const GLOBAL_ACCOUNT: &str = "$G";

/// Letters of the name in a loop subject.
const LOOP_NAME_LENGTH: usize = 22;

/// Who wants to know when subscriptions to a subject come and go. In order, so that a subscription below a few fixed tokens asks only those that begin
/// with them: consumers subscribe to much, and each of them may watch.
type Watchers = BTreeMap<Box<[u8]>, Vec<Arc<dyn Watcher>>>;

pub struct Account {
    pub name: String,
    /// Dense number, by which workers keep one route cache per account.
    pub index: usize,
    tree: RwLock<SubscriptionTree>,
    generation: AtomicU64,
    connections: AtomicUsize,
    walks: AtomicU64,
    fanout_total: AtomicU64,
    fanout_max: AtomicUsize,
    watchers: RwLock<Watchers>,
    /// Subjects that are watched, so that a subscription that nobody waits for costs nothing more.
    watcher_count: AtomicUsize,
    mappings: RwLock<Arc<Mappings>>,
    /// Whether there are any, so that a publish without costs nothing more.
    has_mappings: AtomicBool,
    imports: RwLock<Imports>,
    /// Whether subscriptions need shadows in other accounts.
    has_stream_imports: AtomicBool,
    /// Made with the first import of a service of this account.
    replies: OnceLock<Arc<Replies>>,
    /// Links to other servers.
    links: RwLock<Vec<Arc<LeafLink>>>,
    /// Whether there are any, so that a subscription without costs nothing more.
    has_links: AtomicBool,
    /// What this account is known by on its links. Made with the first of them.
    loop_subject: OnceLock<Box<[u8]>>,
}

/// What the account sees of others.
#[derive(Default)]
struct Imports {
    streams: Vec<StreamImport>,
    /// The subscriptions that take requests for services of others.
    services: Vec<Arc<Subscription>>,
}

/// How an account's subjects were looked up. Found routes are cached, so a walk of the tree is rare and may be counted.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Lookups {
    pub inserts: u64,
    pub removes: u64,
    pub walks: u64,
    pub fanout_total: u64,
    pub fanout_max: usize,
}

impl Account {
    pub fn new(name: &str, index: usize) -> Self {
        Self {
            name: name.to_owned(),
            index,
            tree: RwLock::default(),
            generation: AtomicU64::new(0),
            connections: AtomicUsize::new(0),
            walks: AtomicU64::new(0),
            fanout_total: AtomicU64::new(0),
            fanout_max: AtomicUsize::new(0),
            watchers: RwLock::default(),
            watcher_count: AtomicUsize::new(0),
            mappings: RwLock::default(),
            has_mappings: AtomicBool::new(false),
            imports: RwLock::default(),
            has_stream_imports: AtomicBool::new(false),
            replies: OnceLock::new(),
            links: RwLock::default(),
            has_links: AtomicBool::new(false),
            loop_subject: OnceLock::new(),
        }
    }

    /// Adds a link, and announces to the other side what is wanted here.
    pub fn add_link(&self, link: &Arc<LeafLink>) {
        self.loop_subject.get_or_init(|| {
            // Not by the generator of a worker: two servers that start together may draw the same, and would take each other for themselves.
            let seed = getrandom::u64().unwrap_or_else(|_| clock::system_ns() as u64);
            let name = Random::seeded(seed).text(LOOP_NAME_LENGTH);
            [LOOP_PREFIX, name.as_bytes()].concat().into()
        });
        self.links.write().push(Arc::clone(link));
        self.has_links.store(true, Ordering::Release);
        // Subscriptions from now on are announced by `subscribe`.
        link.announce_all(self);
    }

    pub fn remove_link(&self, link: &Arc<LeafLink>) {
        let mut links = self.links.write();
        links.retain(|other| !Arc::ptr_eq(other, link));
        self.has_links.store(!links.is_empty(), Ordering::Release);
    }

    /// Links that other servers have made.
    pub fn leaf_count(&self) -> usize {
        let links = self.links.read();
        links
            .iter()
            .filter(|link| !link.traits.is_solicited)
            .count()
    }

    /// The subject that comes back on a link only if there is a loop; none without a link.
    pub fn loop_subject(&self) -> Option<&[u8]> {
        self.loop_subject.get().map(|subject| &**subject)
    }

    /// What the subscriptions to exactly this subject and queue group weigh together.
    pub fn weight(
        &self,
        subject: &[u8],
        queue: Option<&[u8]>,
        weight_of: &dyn Fn(&Subscription) -> u32,
    ) -> u32 {
        self.tree.read().weight(subject, queue, weight_of)
    }

    /// Routes that were found before no longer hold, though no subscription has changed.
    pub fn outdate_routes(&self) {
        self.generation.fetch_add(1, Ordering::Release);
    }

    fn tell_links(&self, subscription: &Subscription) {
        if self.has_links.load(Ordering::Acquire) {
            for link in self.links.read().iter() {
                link.announce(self, &subscription.subject, subscription.queue.as_deref());
            }
        }
    }

    /// Puts other imports in force. Requests that are under way are answered all the same.
    pub fn set_imports(&self, streams: Vec<StreamImport>, services: Vec<ServiceImport>) {
        let taking = |import: ServiceImport| {
            import.exporter.await_replies();
            let subject = import.map.from_pattern();
            let receiver = Receiver::Import(Arc::new(import));
            let restrictions = Restrictions::default();
            Arc::new(Subscription::new(
                receiver,
                &subject,
                None,
                b"",
                restrictions,
            ))
        };
        let services: Vec<_> = services.into_iter().map(taking).collect();
        let mut imports = self.imports.write();
        let mut old_services = std::mem::take(&mut imports.services);
        self.has_stream_imports
            .store(!streams.is_empty(), Ordering::Release);
        imports.streams = streams;
        for subscription in self.subscriptions() {
            renew_shadows(&imports.streams, &subscription, &subscription);
        }
        imports.services.clone_from(&services);
        drop(imports);
        for service in services {
            let is_old = |old: &Arc<Subscription>| old.subject == service.subject;
            match old_services.iter().position(is_old) {
                Some(at) => {
                    let is_replaced = self.replace(&old_services.swap_remove(at), service);
                    debug_assert!(is_replaced, "only this ends imports");
                }
                None => self.subscribe(service),
            }
        }
        for old in old_services {
            self.unsubscribe(&old);
        }
    }

    /// The account that a request goes to by imports of services, and its subject there; none if no import takes it.
    pub fn request_destination(&self, subject: &[u8]) -> Option<(Arc<Self>, Vec<u8>)> {
        let mut found: Option<(Arc<Self>, Vec<u8>)> = None;
        for _ in 0..IMPORTS_IN_A_ROW_MAX {
            let next = match &found {
                None => self.next_destination(subject),
                Some((account, subject)) => account.next_destination(subject),
            };
            match next {
                Some(next) => found = Some(next),
                None => return found,
            }
        }
        None
    }

    fn next_destination(&self, subject: &[u8]) -> Option<(Arc<Self>, Vec<u8>)> {
        self.imports.read().services.iter().find_map(|service| {
            let Receiver::Import(import) = &service.receiver else {
                return None;
            };
            let mut there = Vec::new();
            let is_taken = import.map.forward(subject, &mut there);
            is_taken.then(|| (Arc::clone(&import.exporter), there))
        })
    }

    /// Whether what is published there arrives here under the same subject.
    pub fn hears(&self, exporter: &Arc<Self>, subject: &[u8]) -> bool {
        let imports = self.imports.read();
        imports
            .streams
            .iter()
            .any(|import| Arc::ptr_eq(import.exporter(), exporter) && import.keeps(subject))
    }

    /// Takes answers to requests that other accounts send here.
    pub(super) fn await_replies(&self) -> &Arc<Replies> {
        self.replies.get_or_init(|| {
            let replies = Arc::<Replies>::default();
            let pattern = replies.pattern();
            let restrictions = Restrictions::default();
            let subscription =
                Subscription::new(Receiver::Replies, &pattern, None, b"", restrictions);
            let subscription = Arc::new(subscription);
            self.tree.write().insert(Arc::clone(&subscription));
            self.generation.fetch_add(1, Ordering::Release);
            self.tell_links(&subscription);
            replies
        })
    }

    /// Where answers to imported requests are awaited; nowhere before the first import.
    pub fn replies(&self) -> Option<&Arc<Replies>> {
        self.replies.get()
    }

    /// Puts other mappings in force.
    pub fn set_mappings(&self, mappings: Mappings) {
        let is_mapped = !mappings.is_empty();
        *self.mappings.write() = Arc::new(mappings);
        self.has_mappings.store(is_mapped, Ordering::Release);
    }

    #[inline]
    pub fn has_mappings(&self) -> bool {
        self.has_mappings.load(Ordering::Relaxed)
    }

    /// Appends what a subject that a client publishes to becomes, if it becomes another.
    pub fn map(&self, published: &[u8], random: &mut Random, out: &mut Vec<u8>) -> Mapped {
        if !self.has_mappings() {
            return Mapped::Unchanged;
        }
        let mappings = Arc::clone(&self.mappings.read());
        mappings.apply(published, random, out)
    }

    /// Counts one more client; false, and not counted, when there are as many as allowed.
    pub fn enter(&self, connections_max: Option<usize>) -> bool {
        let before = self.connections.fetch_add(1, Ordering::Relaxed);
        let fits = connections_max.is_none_or(|max| before < max);
        if !fits {
            self.leave();
        }
        fits
    }

    /// Counts one client less if there are more than allowed; true when that was so and the client must go.
    pub fn leave_if_over(&self, connections_max: Option<usize>) -> bool {
        let Some(max) = connections_max else {
            return false;
        };
        let less = |count: usize| (count > max).then(|| count - 1);
        self.connections
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .is_ok()
    }

    pub fn leave(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    pub fn connection_count(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub fn subscribe(&self, subscription: Arc<Subscription>) {
        let of = Arc::clone(&subscription);
        self.tree.write().insert(subscription);
        self.generation.fetch_add(1, Ordering::Release);
        self.tell_watchers(&of);
        self.tell_links(&of);
        if self.has_stream_imports.load(Ordering::Acquire) {
            let imports = self.imports.read();
            // Imports that changed meanwhile have seen it in the tree.
            renew_shadows(&imports.streams, &of, &of);
        }
    }

    /// Ends a subscription and takes it out of the tree. Calling it twice is harmless.
    pub fn unsubscribe(&self, subscription: &Arc<Subscription>) {
        subscription.end();
        let removed = self.tree.write().remove(subscription);
        if removed {
            self.generation.fetch_add(1, Ordering::Release);
            self.tell_watchers(subscription);
            self.tell_links(subscription);
        }
        drop_shadows(subscription);
    }

    /// Replaces a subscription with another one to the same subject and queue group. A message that arrives during the swap goes to one of the two:
    /// a publisher that found the old one may still deliver to it, so it is not ended. False, without any change, if the old one has already ended.
    pub fn replace(&self, old: &Arc<Subscription>, new: Arc<Subscription>) -> bool {
        debug_assert!(old.subject == new.subject && old.queue == new.queue);
        let of = Arc::clone(&new);
        let mut tree = self.tree.write();
        if !tree.remove(old) {
            return false;
        }
        tree.insert(new);
        drop(tree);
        self.generation.fetch_add(1, Ordering::Release);
        self.tell_watchers(&of);
        if self.has_stream_imports.load(Ordering::Acquire) {
            renew_shadows(&self.imports.read().streams, old, &of);
        } else {
            drop_shadows(old);
        }
        true
    }

    /// Notifies `watcher` when subscriptions to a concrete subject come and go.
    pub fn watch(&self, subject: &[u8], watcher: Arc<dyn Watcher>) {
        let mut watchers = self.watchers.write();
        watchers.entry(subject.into()).or_default().push(watcher);
        self.watcher_count.store(watchers.len(), Ordering::Release);
    }

    pub fn unwatch(&self, subject: &[u8], watcher: &Arc<dyn Watcher>) {
        let mut watchers = self.watchers.write();
        if let Some(of_subject) = watchers.get_mut(subject) {
            of_subject.retain(|other| !Arc::ptr_eq(other, watcher));
            if of_subject.is_empty() {
                watchers.remove(subject);
            }
        }
        self.watcher_count.store(watchers.len(), Ordering::Release);
    }

    fn tell_watchers(&self, subscription: &Subscription) {
        if self.watcher_count.load(Ordering::Acquire) == 0 {
            return;
        }
        let filter = &subscription.subject[..];
        let beginning = subject::literal_beginning(filter);
        let watchers = self.watchers.read();
        let from = (Bound::Included(beginning), Bound::Unbounded);
        for (subject, of_subject) in watchers.range::<[u8], _>(from) {
            if !subject.starts_with(beginning) {
                break;
            }
            if subject::matches(filter, subject) {
                of_subject.iter().for_each(|watcher| watcher.notice());
            }
        }
    }

    /// The receivers of a subject and the generation they are right for.
    pub fn find(&self, subject: &[u8]) -> (Routes, u64) {
        let (routes, generation, _) = self.find_deciding(subject);
        (routes, generation)
    }

    /// The same with those who asked for the subject and may not see it, for a message that is traced.
    pub fn find_asking(&self, subject: &[u8]) -> Routes {
        let mut routes = self.tree.read().find_asking(subject);
        if subject.starts_with(replies::PREFIX) {
            self.find_reply(&mut routes, subject);
        }
        routes
    }

    /// The same, and how many of the subject's tokens decide it.
    pub fn find_deciding(&self, subject: &[u8]) -> (Routes, u64, usize) {
        // Read before the walk: a change in between makes the result look old, never young.
        let generation = self.generation();
        let (mut routes, mut deciding) = self.tree.read().find_deciding(subject);
        if subject.starts_with(replies::PREFIX) {
            // Each answer has a receiver of its own, which all of the subject decides about.
            deciding = subject::token_count(subject);
            self.find_reply(&mut routes, subject);
        }
        let fanout = routes.plain.len() + routes.groups.len();
        self.walks.fetch_add(1, Ordering::Relaxed);
        self.fanout_total
            .fetch_add(fanout as u64, Ordering::Relaxed);
        self.fanout_max.fetch_max(fanout, Ordering::Relaxed);
        (routes, generation, deciding)
    }

    /// Replaces the subscription for all answers by the receiver of this answer.
    fn find_reply(&self, routes: &mut Routes, subject: &[u8]) {
        let awaits = |one: &Arc<Subscription>| matches!(one.receiver, Receiver::Replies);
        let before = routes.plain.len();
        routes.plain.retain(|one| !awaits(one));
        if routes.plain.len() < before {
            let found = self.replies().and_then(|replies| replies.find(subject));
            routes.plain.extend(found);
        }
    }

    pub fn subscription_count(&self) -> usize {
        self.tree.read().count()
    }

    /// Every subscription, in no order.
    pub fn subscriptions(&self) -> Vec<Arc<Subscription>> {
        self.tree.read().all()
    }

    /// Every subscription that might get a message on this subject; of a queue group, all members.
    pub fn receivers(&self, subject: &[u8]) -> Vec<Arc<Subscription>> {
        let routes = self.tree.read().find(subject);
        let members = routes.groups.into_iter().flat_map(|group| group.members);
        routes.plain.into_iter().chain(members).collect()
    }

    pub fn lookups(&self) -> Lookups {
        let tree = self.tree.read();
        Lookups {
            inserts: tree.inserted(),
            removes: tree.inserted() - tree.count() as u64,
            walks: self.walks.load(Ordering::Relaxed),
            fanout_total: self.fanout_total.load(Ordering::Relaxed),
            fanout_max: self.fanout_max.load(Ordering::Relaxed),
        }
    }
}

/// Puts what stands for a subscription into the accounts it may get messages from, in the place of what stands there for another one, or for itself from before.
fn renew_shadows(streams: &[StreamImport], old: &Subscription, new: &Arc<Subscription>) {
    let mut before = old.take_shadows();
    // What stands for others already, and what passes requests on, gets nothing from a third account.
    let is_final = matches!(
        new.receiver,
        Receiver::Shadow(_) | Receiver::Import(_) | Receiver::Replies | Receiver::Reply(_)
    );
    for import in streams.iter().filter(|_| !is_final) {
        let Some(shadow) = import.shadow(new) else {
            continue;
        };
        let exporter = import.exporter();
        let at = before.iter().position(|(of, other)| {
            let is_alike = other.subject == shadow.subject && other.queue == shadow.queue;
            Arc::ptr_eq(of, exporter) && is_alike
        });
        let is_there = match at {
            Some(at) => exporter.replace(&before.swap_remove(at).1, Arc::clone(&shadow)),
            None => {
                exporter.subscribe(Arc::clone(&shadow));
                true
            }
        };
        if is_there {
            new.add_shadow(exporter, shadow);
        }
    }
    for (exporter, shadow) in before {
        exporter.unsubscribe(&shadow);
    }
}

fn drop_shadows(subscription: &Subscription) {
    for (exporter, shadow) in subscription.take_shadows() {
        exporter.unsubscribe(&shadow);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::router::Publisher;
    use crate::routing::sink::Sink;
    use crate::routing::staging::Staging;
    use crate::routing::subscription::{Receiver, Restrictions};
    use crate::wire::Publish;

    #[derive(Default)]
    struct Counter(AtomicUsize);

    impl Watcher for Counter {
        fn notice(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    struct Nobody;

    impl Sink for Nobody {
        fn accept(&self, _: &Publisher<'_>, _: &Publish<'_>, _: &mut Staging) -> bool {
            true
        }

        fn finish_read(&self) {}
    }

    fn subscription(subject: &str) -> Arc<Subscription> {
        let receiver = Receiver::Sink(Arc::new(Nobody));
        let restrictions = Restrictions::default();
        Arc::new(Subscription::new(
            receiver,
            subject.as_bytes(),
            None,
            b"",
            restrictions,
        ))
    }

    #[test]
    fn a_replaced_subscription_gives_its_place_away_unless_it_has_ended() {
        let account = Account::new("A", 0);
        let (first, second, third) = (subscription("a"), subscription("a"), subscription("a"));
        account.subscribe(Arc::clone(&first));

        assert!(account.replace(&first, Arc::clone(&second)));

        let there = account.find(b"a").0;
        assert!(matches!(&there.plain[..], [one] if Arc::ptr_eq(one, &second)));
        assert!(!first.has_ended(), "who found it before may still use it");
        account.unsubscribe(&second);
        assert!(!account.replace(&second, third));
        assert!(account.find(b"a").0.plain.is_empty());
    }

    #[test]
    fn whoever_watches_a_subject_hears_of_the_subscriptions_that_match_it_until_it_stops() {
        let account = Account::new("A", 0);
        let counters: Vec<Arc<Counter>> = (0..3).map(|_| Arc::default()).collect();
        for (counter, subject) in counters.iter().zip(["d.a", "d.b", "d.b"]) {
            account.watch(subject.as_bytes(), Arc::clone(counter) as Arc<dyn Watcher>);
        }
        let heard = || -> Vec<usize> {
            let counts = counters.iter();
            counts
                .map(|counter| counter.0.swap(0, Ordering::Relaxed))
                .collect()
        };

        for (subject, notices) in [
            ("d.a", [1, 0, 0]),
            ("d.b", [0, 1, 1]),
            ("d.*", [1, 1, 1]),
            (">", [1, 1, 1]),
            ("*.b", [0, 1, 1]),
            ("d", [0, 0, 0]),
            ("d.a.>", [0, 0, 0]),
            ("$JS.ACK.*", [0, 0, 0]),
        ] {
            let subscription = subscription(subject);
            account.subscribe(Arc::clone(&subscription));
            assert_eq!(heard(), notices, "{subject}");
            account.unsubscribe(&subscription);
            assert_eq!(heard(), notices, "{subject}");
        }
        let second: Arc<dyn Watcher> = counters[1].clone();
        account.unwatch(b"d.b", &second);
        account.subscribe(subscription("d.b"));
        assert_eq!(heard(), [0, 0, 1]);
    }
}
