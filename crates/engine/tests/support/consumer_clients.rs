//! Clients that pull from consumers of every kind and acknowledge in every way, and what they know from that.
//!
//! Invariant: an acknowledgement is in `sent` before it leaves, and in `confirmed` only after it, or a later one, was answered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{json, Value};

use crate::consumer_server::{Client, Delivery};
use crate::random::Random;

pub const ACK: &str = "+ACK";
pub const NAK: &str = "-NAK";
const TERM: &str = "+TERM";

const BATCH: usize = 16;
pub const PULL_PATIENCE: Duration = Duration::from_millis(20);

/// How long anything may take that is to come; ample, on a busy machine.
pub const GATHER_WAIT_MAX: Duration = Duration::from_secs(30);

/// The publisher waits while some consumer is this many messages behind.
const BEHIND_MAX: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    Explicit,
    All,
    None,
}

/// Second words of subjects, by which one consumer shares its messages out: one of each is under way at a time.
const KEYS: u64 = 20;

/// Streams by their first letter: limits, work queue, interest. Their subjects begin with it.
pub const STREAMS: [(&str, &str); 3] = [("L", "limits"), ("W", "workqueue"), ("I", "interest")];

pub const CONSUMERS: [(&str, &str, Policy); 7] = [
    ("L", "explicit", Policy::Explicit),
    ("L", "all", Policy::All),
    ("L", "none", Policy::None),
    ("L", "keyed", Policy::Explicit),
    ("W", "queue", Policy::Explicit),
    ("I", "one", Policy::Explicit),
    ("I", "other", Policy::All),
];

/// What the clients know of one consumer.
#[derive(Debug, Clone, Default)]
pub struct Known {
    pub received: BTreeSet<u64>,
    /// An acknowledgement was sent; it may have taken effect.
    pub sent: BTreeSet<u64>,
    /// It was confirmed, or sent before one that was.
    pub confirmed: BTreeSet<u64>,
    /// How often each was delivered, and what of that was known before something was confirmed.
    pub seen: BTreeMap<u64, u64>,
    pub counted: BTreeMap<u64, u64>,
    /// Pulls that have ended.
    pub rounds: u64,
}

#[derive(Debug, Clone, Default)]
pub struct Model {
    pub known: BTreeMap<(String, String), Known>,
    /// Sequences of acknowledged messages by stream.
    pub stored: BTreeMap<String, BTreeSet<u64>>,
}

impl Model {
    pub fn of(&mut self, stream: &str, name: &str) -> &mut Known {
        let key = (stream.to_owned(), name.to_owned());
        self.known.entry(key).or_default()
    }
}

pub type Shared = Arc<Mutex<Model>>;

/// The configuration of one of the consumers.
pub fn config_of(name: &str, policy: Policy, ack_wait_ns: u64) -> Value {
    let policy = match policy {
        Policy::Explicit => "explicit",
        Policy::All => "all",
        Policy::None => "none",
    };
    let metadata = match name {
        "keyed" => json!({"jetlake.key": "subject.2"}),
        _ => json!({}),
    };
    json!({"ack_policy": policy, "ack_wait": ack_wait_ns, "metadata": metadata})
}

/// Waits until every pull that was under way has ended, so that everything that was delivered before is known; returns what is known then.
pub fn wait_for_rounds(shared: &Shared) -> Model {
    let begun = shared.lock().unwrap().clone();
    let deadline = Instant::now() + GATHER_WAIT_MAX;
    loop {
        let now = shared.lock().unwrap().clone();
        let is_over = begun
            .known
            .iter()
            .all(|(key, known)| now.known[key].rounds >= known.rounds + 2);
        if is_over && now.known.len() == CONSUMERS.len() {
            return now;
        }
        assert!(Instant::now() < deadline, "a client has stopped");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Publishes to all streams, not too far ahead of the consumers.
pub fn publish(mut client: Client, shared: &Shared, stop: &AtomicBool) {
    let mut round = 0;
    while !stop.load(Ordering::Acquire) {
        round += 1;
        for (stream, _) in STREAMS {
            let subject = format!("{stream}.{}", round % KEYS);
            let sequence = client.publish(&subject, "message");
            let mut model = shared.lock().unwrap();
            let stored = model.stored.entry(stream.to_owned()).or_default();
            stored.insert(sequence);
        }
        let is_ahead = || {
            let model = shared.lock().unwrap();
            let mut known = model.known.iter();
            known.any(|((stream, _), known)| {
                model.stored[stream].len() > known.received.len() + BEHIND_MAX
            })
        };
        while is_ahead() && !stop.load(Ordering::Acquire) {
            thread::sleep(Duration::from_millis(2));
        }
    }
}

/// A client of one consumer.
pub struct Worker {
    pub client: Client,
    pub stream: &'static str,
    pub name: &'static str,
    pub policy: Policy,
    pub random: Random,
}

impl Worker {
    pub fn run(mut self, shared: &Shared, stop: &AtomicBool) {
        while !stop.load(Ordering::Acquire) {
            let pulled = self
                .client
                .pull(self.stream, self.name, BATCH, PULL_PATIENCE);
            {
                let mut model = shared.lock().unwrap();
                let known = model.of(self.stream, self.name);
                known.rounds += 1;
                for delivery in &pulled {
                    let sequence = delivery.sequence;
                    let is_known = known.confirmed.contains(&sequence);
                    assert!(!is_known, "{}: {sequence} was confirmed", self.name);
                    known.received.insert(sequence);
                    let seen = known.seen.entry(sequence).or_default();
                    assert!(*seen < delivery.count, "{}: {delivery:?}", self.name);
                    *seen = delivery.count;
                }
            }
            match self.policy {
                Policy::Explicit => self.acknowledge_some(shared, &pulled),
                Policy::All => self.acknowledge_up_to(shared, &pulled),
                Policy::None => {}
            }
        }
    }

    fn acknowledge_some(&mut self, shared: &Shared, pulled: &[Delivery]) {
        let mut settled = Vec::new();
        let mut last_asked = None;
        for delivery in pulled {
            let (body, asks) = match self.random.below(100) {
                0..40 => (ACK, true),
                40..65 => (ACK, false),
                65..75 => (NAK, false),
                75..80 => (NAK, true),
                80..84 => (TERM, true),
                84..88 => (TERM, false),
                _ => continue,
            };
            if body != NAK {
                settled.push(delivery.sequence);
                let mut model = shared.lock().unwrap();
                let known = model.of(self.stream, self.name);
                known.sent.insert(delivery.sequence);
            }
            if asks {
                let token = self.client.ask_confirmation(delivery, body);
                last_asked = Some((token, settled.len()));
            } else {
                self.client.tell(delivery, body);
            }
        }
        if let Some((token, count)) = last_asked {
            self.wait(token);
            self.note_confirmed(shared, &settled[..count]);
        }
    }

    fn acknowledge_up_to(&mut self, shared: &Shared, pulled: &[Delivery]) {
        let highest = pulled.iter().max_by_key(|delivery| delivery.sequence);
        let Some(delivery) = highest.filter(|_| self.random.percent(70)) else {
            return;
        };
        let settled: Vec<u64> = {
            let mut model = shared.lock().unwrap();
            let known = model.of(self.stream, self.name);
            let first = known.confirmed.last().map_or(1, |last| last + 1);
            let settled: Vec<u64> = (first..=delivery.sequence).collect();
            known.sent.extend(&settled);
            settled
        };
        if self.random.percent(60) {
            let token = self.client.ask_confirmation(delivery, ACK);
            self.wait(token);
            self.note_confirmed(shared, &settled);
        } else {
            self.client.tell(delivery, ACK);
        }
    }

    fn wait(&mut self, token: u64) {
        let is_confirmed = self.client.is_confirmed(token, GATHER_WAIT_MAX);
        assert!(is_confirmed, "{}: not confirmed", self.name);
    }

    /// Something was confirmed: with it everything that the consumer heard before, and how often it had delivered what.
    fn note_confirmed(&self, shared: &Shared, settled: &[u64]) {
        let mut model = shared.lock().unwrap();
        let known = model.of(self.stream, self.name);
        known.confirmed.extend(settled);
        known.counted.clone_from(&known.seen);
    }
}
