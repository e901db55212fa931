//! One link to another server, in one account.
//!
//! The *hub* decides what may pass and closes a link that breaks its rules; the *spoke* keeps to the hub's rules. The side that connects is the spoke, unless it
//! declares itself the hub.
//!
//! Invariant: while the link is registered in its account, every subscription there that the other side may see has been
//! announced to it, except those whose change is still being announced.

use std::sync::{Arc, Weak};

use parking_lot::{Mutex, RwLock};

use super::interest::{split_key, ToldInterest};
use crate::common::permissions::{PermissionLists, Permissions, RuleLists};
use crate::routing::account::Account;
use crate::routing::clients::connection::Connection;
use crate::routing::shared::Shared;
use crate::routing::subscription::{Receiver, Subscription};
use crate::transport::outbox::Flushed;
use crate::wire::ack_subject;

/// Subjects of this kind find loops: a server that receives its own again is in one.
pub const LOOP_PREFIX: &[u8] = b"$LDS.";

/// Answers to requests of other accounts.
const SERVICE_REPLY_PREFIX: &[u8] = b"_R_.";

/// What belongs to the JetStream of one server: the API, in all its dialects, and the subjects of buckets. Another server is reached by its domain.
pub const JETSTREAM_DENIED: [&str; 12] = [
    "$JS.API.>",
    "$KV.>",
    "$OBJ.>",
    "$JS.ENABLED",
    "$JS.INFO",
    "$JS.STREAM.>",
    "$JS.TEMPLATE.>",
    "$JS.MSGSETS",
    "$JS.MSGSET.>",
    "$JS.OBSERVABLES",
    "$JS.OBSERVABLE.>",
    "$JS.RN.>",
];

/// The API as it is known within an account.
const API_PREFIX: &[u8] = b"$JS.API.";

/// What subjects of buckets begin with.
const BUCKET_PREFIXES: [&[u8]; 2] = [b"$KV.", b"$OBJ."];

/// What the other side has said about itself, and what it is to this one.
#[derive(Debug, Clone, Default)]
pub struct LinkTraits {
    /// This side is the spoke.
    pub is_spoke: bool,
    /// This side has connected.
    pub is_solicited: bool,
    /// Interest of servers behind other links is not announced.
    pub is_isolated: bool,
    pub server_id: String,
    pub server_name: String,
    /// Servers of one cluster are one to this side; a server alone is its own.
    pub cluster: String,
    pub domain: String,
    pub remote_account: String,
    /// Where this side has connected to; empty if it has not.
    pub url: String,
    pub compression: &'static str,
    /// It understands messages that are traced.
    pub has_tracing: bool,
}

/// What may pass a link.
pub struct LinkRules {
    /// As a client of the other side: `publish` is what may go out, `subscribe` what may come in.
    passing: Permissions,
    /// Everything may come in but subjects that begin with `$`, about which the lists are asked: the usual case, decided
    /// without going through them.
    admits_plain: bool,
}

impl LinkRules {
    pub fn new(outgoing: &RuleLists, incoming: &RuleLists) -> Self {
        let denied = &incoming.deny;
        Self {
            admits_plain: incoming.allow.is_none() && denied.iter().all(|one| one.starts_with('$')),
            passing: Permissions::new(&PermissionLists {
                publish: outgoing.clone(),
                subscribe: incoming.clone(),
                responses: None,
            }),
        }
    }
}

pub struct LeafLink {
    pub connection: Arc<Connection>,
    pub traits: LinkTraits,
    rules: RwLock<Arc<LinkRules>>,
    told: Mutex<ToldInterest>,
    shared: Weak<Shared>,
    /// What the other side reaches the JetStream of this one by: `$JS.<domain>.API.`; empty without a domain.
    own_api: Box<[u8]>,
}

/// What the other side of a link wants: the receiver of a subscription.
pub struct LeafReceiver {
    pub link: Arc<LeafLink>,
    /// Members of the queue group behind the link.
    pub weight: u32,
}

/// A message that has come through a link.
#[derive(Clone, Copy)]
pub struct LinkedPublish<'a> {
    pub link: &'a Arc<LeafLink>,
    /// The queue groups that are to have it, with blanks between them.
    pub queues: &'a [u8],
    /// The whole reply as it came.
    pub reply: Option<&'a [u8]>,
    /// Its subject was mapped, so that the other side could not name the groups.
    pub is_mapped: bool,
}

impl LinkedPublish<'_> {
    pub fn is_for(&self, group: &[u8]) -> bool {
        if self.queues.is_empty() {
            return self.is_mapped;
        }
        let mut names = self.queues.split(|byte| *byte == b' ');
        names.any(|name| name == group)
    }
}

impl LeafLink {
    pub fn new(
        shared: &Arc<Shared>,
        connection: &Arc<Connection>,
        traits: LinkTraits,
        rules: LinkRules,
    ) -> Arc<Self> {
        Arc::new(Self {
            connection: Arc::clone(connection),
            traits,
            rules: RwLock::new(Arc::new(rules)),
            told: Mutex::default(),
            shared: Arc::downgrade(shared),
            own_api: match &shared.options().domain {
                Some(domain) if !domain.is_empty() => format!("$JS.{domain}.API.").into_bytes(),
                _ => Vec::new(),
            }
            .into(),
        })
    }

    /// Appends what a subject is here by which the other side reaches the JetStream of this one; false if it is not such a subject.
    #[inline]
    pub fn put_own_subject(&self, subject: &[u8], out: &mut Vec<u8>) -> bool {
        if self.own_api.is_empty() {
            return false;
        }
        let Some(tail) = subject.strip_prefix(&*self.own_api) else {
            return false;
        };
        if !BUCKET_PREFIXES
            .iter()
            .any(|prefix| tail.starts_with(prefix))
        {
            out.extend_from_slice(API_PREFIX);
        }
        out.extend_from_slice(tail);
        true
    }

    /// Whether a message may go to the other side. What answers a request may always.
    pub fn may_send(&self, subject: &[u8]) -> bool {
        is_answer(subject) || self.rules.read().passing.allows_publish(subject)
    }

    /// Whether this side, as the spoke, may receive what the hub sends.
    pub fn may_hear(&self, subject: &[u8]) -> bool {
        let rules = self.rules.read();
        let is_plain = subject.first().is_some_and(|first| *first != b'$');
        (rules.admits_plain && is_plain) || rules.passing.covers_subscribe(subject)
    }

    /// Whether servers behind this link are the same to this side as those behind the other.
    pub fn is_of_same_cluster(&self, other: &Self) -> bool {
        !self.traits.cluster.is_empty() && self.traits.cluster == other.traits.cluster
    }

    /// How many a subscription counts for in what is announced to the other side; 0 if it is not announced.
    fn weight_of(&self, subscription: &Subscription) -> u32 {
        if subscription.has_ended() {
            return 0;
        }
        let is_loop_subject = subscription.subject.starts_with(LOOP_PREFIX);
        let weight = match &subscription.receiver {
            Receiver::Leaf(receiver) => {
                let from = &receiver.link;
                let is_own = from.connection.id == self.connection.id;
                // A spoke passes on what its own leaf nodes want, not what another hub does.
                let is_hubs = self.traits.is_spoke && from.traits.is_spoke && !is_loop_subject;
                if is_own || is_hubs || self.traits.is_isolated || self.is_of_same_cluster(from) {
                    return 0;
                }
                receiver.weight
            }
            _ => 1,
        };
        let subject = &subscription.subject;
        let is_allowed = is_loop_subject
            || subject.starts_with(SERVICE_REPLY_PREFIX)
            || self.rules.read().passing.overlaps_subscribe(subject);
        weight * u32::from(is_allowed)
    }

    /// Announces to the other side everything that is wanted in the account.
    pub fn announce_all(&self, account: &Account) {
        let mut keys: Vec<Vec<u8>> = account
            .subscriptions()
            .iter()
            .map(|one| ToldInterest::key(&one.subject, one.queue.as_deref()))
            .collect();
        keys.sort_unstable();
        keys.dedup();
        let mut told = self.told.lock();
        let mut lines = Vec::new();
        for key in keys {
            self.add_lines(&mut told, account, &key, &mut lines);
        }
        if let Some(own) = account.loop_subject() {
            told.update(own, 1, &mut lines);
        }
        if !self.own_api.is_empty() {
            for bucket in BUCKET_PREFIXES {
                let key = [&self.own_api, bucket, b">"].concat();
                told.update(&key, 1, &mut lines);
            }
        }
        self.send(lines);
    }

    /// Announces to the other side what has changed about a subject, or a queue group on it.
    pub fn announce(&self, account: &Account, subject: &[u8], queue: Option<&[u8]>) {
        let mut told = self.told.lock();
        let mut lines = Vec::new();
        let key = ToldInterest::key(subject, queue);
        self.add_lines(&mut told, account, &key, &mut lines);
        // Under the lock: lines about one subject must leave in the order in which they were made.
        self.send(lines);
    }

    fn add_lines(
        &self,
        told: &mut ToldInterest,
        account: &Account,
        key: &[u8],
        lines: &mut Vec<u8>,
    ) {
        let (subject, queue) = split_key(key);
        let weight = account.weight(subject, queue, &|one| self.weight_of(one));
        told.update(key, weight, lines);
    }

    /// Other rules are in force: what was announced is checked again.
    pub fn set_rules(&self, rules: LinkRules, account: &Account) {
        *self.rules.write() = Arc::new(rules);
        let keys = self.told.lock().keys();
        // Those without a subscription are announced again by `announce_all`.
        for key in &keys {
            let (subject, queue) = split_key(key);
            self.announce(account, subject, queue);
        }
        self.announce_all(account);
    }

    /// Makes the internal readers of the account reconnect.
    pub fn restart_readers(&self, account: &Account) {
        if let Some(shared) = self.shared.upgrade() {
            shared.restart_internal_readers(&account.name);
        }
    }

    /// Queues lines for the worker that owns the connection.
    pub fn send(&self, lines: Vec<u8>) {
        if lines.is_empty() {
            return;
        }
        let flushed = match self.connection.outbox.queue_for_owner(lines) {
            Flushed::Settled => Flushed::HandOver,
            other => other,
        };
        if let Some(shared) = self.shared.upgrade() {
            shared.follow_up(&self.connection, flushed);
        }
    }
}

/// Whether a message answers a request of another account, or acknowledges a delivery: these pass every link.
pub fn is_answer(subject: &[u8]) -> bool {
    subject.starts_with(SERVICE_REPLY_PREFIX) || subject.starts_with(ack_subject::ACK)
}
