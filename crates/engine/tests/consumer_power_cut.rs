//! A whole server on a disk that loses its power: what a consumer has confirmed stays so, and what was not acknowledged
//! is redelivered.
//!
//! Clients pull from consumers of every kind and acknowledge with and without a reply, refuse, terminate, or say
//! nothing, while the disk is cut off repeatedly. Every cut gives a disk of its own, with any part of what was not
//! synced; a second server opens it, and everything it delivers is compared with what the clients know. Then that disk
//! is cut, too. `JETLAKE_POWER_CUTS` is the number of cuts, 6 by default; `JETLAKE_SEED` repeats a run's choices.

#[path = "support/consumer_clients.rs"]
mod consumer_clients;
#[path = "support/consumer_server.rs"]
#[allow(dead_code, reason = "each test uses its part of it")]
mod consumer_server;
#[path = "support/random.rs"]
#[allow(dead_code, reason = "each test uses its part of it")]
mod random;
#[path = "support/stream_server.rs"]
#[allow(dead_code, reason = "each test uses its part of it")]
mod stream_server;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use consumer_clients::{
    config_of, publish, wait_for_rounds, Known, Model, Policy, Shared, Worker, ACK, CONSUMERS,
    GATHER_WAIT_MAX, NAK, PULL_PATIENCE, STREAMS,
};
use consumer_server::{Client, ConsumerServer, Delivery};
use jetlake_engine::storage::disk::simulated::{SimulatedDisk, Survival};
use random::Random;
use serde_json::json;

/// How long a message waits for its acknowledgement: short, so that what was left alone comes again within a run.
const ACK_WAIT_NS: u64 = 100_000_000;

/// In this time everything that waits for the clock is written, on a busy machine as well.
const WRITTEN: Duration = Duration::from_secs(1);

const PASSING: &str = "passing";

#[test]
fn what_was_confirmed_survives_every_power_cut() {
    let cuts: u64 = std::env::var("JETLAKE_POWER_CUTS").map_or(6, |text| text.parse().unwrap());
    let seed: u64 = std::env::var("JETLAKE_SEED").map_or(7, |text| text.parse().unwrap());
    let disk = SimulatedDisk::default();
    let server = ConsumerServer::start(&disk);
    for (name, retention) in STREAMS {
        let subject = format!("{name}.>");
        server
            .streams
            .create_as(&json!({"name": name, "subjects": [subject], "retention": retention}));
    }
    for (stream, name, policy) in CONSUMERS {
        server.create(stream, name, &config_of(name, policy, ACK_WAIT_NS));
    }
    let shared = Shared::default();
    let stop = Arc::new(AtomicBool::new(false));
    let mut threads = Vec::new();
    {
        let (client, shared, stop) = (server.connect(), Arc::clone(&shared), Arc::clone(&stop));
        threads.push(thread::spawn(move || publish(client, &shared, &stop)));
    }
    for (number, (stream, name, policy)) in CONSUMERS.into_iter().enumerate() {
        let worker = Worker {
            client: server.connect(),
            stream,
            name,
            policy,
            random: Random::seeded(seed + number as u64),
        };
        let (shared, stop) = (Arc::clone(&shared), Arc::clone(&stop));
        threads.push(thread::spawn(move || worker.run(&shared, &stop)));
    }

    let mut random = Random::seeded(seed);
    let mut client = server.connect();
    let mut passing: Option<Passing> = None;
    let mut redelivered = 0;
    for number in 0..cuts {
        thread::sleep(Duration::from_millis(random.between(5, 75) as u64));
        if passing.take().is_some() {
            Passing::delete(&server, &mut client);
        }
        if number % 3 != 2 {
            passing = Some(Passing::create(&server, &mut client, &shared));
        }
        // First what was promised, then the cut, then what may have been done until then.
        let promised = shared.lock().unwrap().clone();
        let survival = match number % 4 {
            0 => Survival::Nothing,
            1 => Survival::Random {
                seed: random.next(),
            },
            2 => Survival::Everything,
            _ => Survival::Torn {
                whole: random.below(disk.pending_count().max(1)),
                bytes: random.below(4_000),
            },
        };
        let after = disk.after_power_cut(survival);
        let possible = wait_for_rounds(&shared);
        let cut = Cut {
            label: format!("cut {number} (seed {seed}, {survival:?})"),
            promised,
            possible,
            passing: passing.clone(),
        };
        redelivered += cut.check(&after);
    }
    stop.store(true, Ordering::Release);
    for thread in threads {
        thread.join().unwrap();
    }
    let model = shared.lock().unwrap();
    let confirmed: usize = model
        .known
        .values()
        .map(|known| known.confirmed.len())
        .sum();
    let stored: usize = model.stored.values().map(BTreeSet::len).sum();
    println!("{cuts} cuts: {stored} stored, {confirmed} confirmed, {redelivered} delivered after cuts, none wrong");
    assert!(confirmed > 100, "{confirmed}");
}

/// Where nobody waits for the disk, a cut may take messages whose acknowledgements it leaves: those that come in their place are delivered all the same.
#[test]
fn a_consumer_that_is_ahead_of_its_stream_misses_nothing_that_comes() {
    let disk = SimulatedDisk::default();
    let server = ConsumerServer::start(&disk);
    let config = json!({"name": "A", "subjects": ["A.>"], "persist_mode": "async"});
    server.streams.create_as(&config);
    for name in ["one", "none"] {
        let policy = if name == "one" { "explicit" } else { "none" };
        server.create("A", name, &json!({"ack_policy": policy}));
    }
    let mut client = server.connect();
    for _ in 0..20 {
        client.publish("A.a", "message");
    }
    for delivery in client.pull("A", "one", 20, GATHER_WAIT_MAX) {
        client.acknowledge(&delivery, ACK);
    }
    assert_eq!(client.pull("A", "none", 20, GATHER_WAIT_MAX).len(), 20);
    thread::sleep(WRITTEN);

    // The messages are lost, and what the consumers have written is not.
    let cut = disk.after_power_cut(Survival::Nothing);
    for (path, bytes) in disk.files() {
        if path
            .components()
            .any(|part| part.as_os_str() == "consumers")
        {
            cut.tamper(&path, |content| *content = bytes);
        }
    }
    let after = ConsumerServer::start(&cut);
    let last = after
        .streams
        .find("A")
        .store()
        .messages()
        .counts()
        .last_sequence;
    assert!(last < 20, "{last}");
    let mut client = after.connect();
    let wanted: BTreeSet<u64> = (0..3).map(|_| client.publish("A.a", "new")).collect();
    assert_eq!(after.names("A"), ["none", "one"]);
    for name in ["none", "one"] {
        let pulled = client.pull("A", name, 40, WRITTEN);
        let came: BTreeSet<u64> = pulled.iter().map(|delivery| delivery.sequence).collect();
        let state = after.state("A", name);
        assert!(
            wanted.is_subset(&came),
            "{name}: {wanted:?}, not {came:?}: {state}"
        );
    }
}

#[test]
fn what_was_given_up_is_not_delivered_again_and_not_lost() {
    let disk = SimulatedDisk::default();
    let server = ConsumerServer::start(&disk);
    let config = json!({"name": "W", "subjects": ["W.>"], "retention": "workqueue"});
    server.streams.create_as(&config);
    let config =
        json!({"ack_policy": "explicit", "ack_wait": 60_000_000_000_i64, "max_deliver": 2});
    server.create("W", "queue", &config);
    let mut client = server.connect();
    for _ in 0..3 {
        client.publish("W.a", "message");
    }
    for _ in 0..2 {
        let pulled = client.pull("W", "queue", 1, GATHER_WAIT_MAX);
        client.acknowledge(&pulled[0], NAK);
    }
    // The first is given up when the next one is looked for.
    for sequence in [2, 3] {
        let pulled = client.pull("W", "queue", 1, GATHER_WAIT_MAX);
        assert_eq!(pulled[0].sequence, sequence);
        client.acknowledge(&pulled[0], ACK);
    }

    let after = ConsumerServer::start(&disk.after_power_cut(Survival::Nothing));

    let is_there = |sequence| after.streams.payload("W", sequence).is_some();
    // What is removed is gone with the next commit.
    let goes = |sequence| {
        let deadline = Instant::now() + GATHER_WAIT_MAX;
        while is_there(sequence) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        !is_there(sequence)
    };
    assert!(goes(2) && goes(3) && is_there(1));
    let mut client = after.connect();
    assert_eq!(client.pull("W", "queue", 1, WRITTEN), []);
    let late = Delivery {
        ack_subject: "$JS.ACK.W.queue.2.1.2.0.0".to_owned(),
        payload: String::new(),
        count: 2,
        sequence: 1,
    };
    client.acknowledge(&late, ACK);
    assert!(goes(1), "an acknowledgement that comes late still counts");
}

#[test]
fn a_definition_that_was_changed_is_found_changed() {
    let disk = SimulatedDisk::default();
    let server = ConsumerServer::start(&disk);
    server.streams.create("S", "s.>");
    server.create(
        "S",
        "C",
        &json!({"ack_policy": "explicit", "max_deliver": 3}),
    );

    server.update(
        "S",
        "C",
        &json!({"ack_policy": "explicit", "max_deliver": 5}),
    );

    let after = ConsumerServer::start(&disk.after_power_cut(Survival::Nothing));
    let stream = after.streams.find("S");
    let consumer = stream.consumers().find("C").expect("it is there");
    assert_eq!(consumer.settings().max_deliver, Some(5));
}

/// A consumer that comes and goes while the others work, always under the same name: it begins with what is new, and not where one before it was.
#[derive(Clone)]
struct Passing {
    /// What was stored after it was there.
    wanted: BTreeSet<u64>,
    last_before: u64,
}

impl Passing {
    fn create(server: &ConsumerServer, client: &mut Client, shared: &Shared) -> Self {
        let last_before = client.publish("L.before", "before");
        let config =
            json!({"ack_policy": "explicit", "ack_wait": ACK_WAIT_NS, "deliver_policy": "new"});
        server.create("L", PASSING, &config);
        let mut wanted = BTreeSet::new();
        for _ in 0..3 {
            wanted.insert(client.publish("L.passing", "passing"));
        }
        let mut model = shared.lock().unwrap();
        let stored = model.stored.entry("L".to_owned()).or_default();
        stored.extend(&wanted);
        stored.insert(last_before);
        Self {
            wanted,
            last_before,
        }
    }

    /// Deletes it while changes of its state wait to be written.
    fn delete(server: &ConsumerServer, client: &mut Client) {
        for delivery in client.pull("L", PASSING, 3, PULL_PATIENCE) {
            client.tell(&delivery, ACK);
        }
        server.delete("L", PASSING);
    }
}

/// What must be so after a cut.
struct Cut {
    label: String,
    /// Known before the cut.
    promised: Model,
    /// Known when everything that was under way had ended.
    possible: Model,
    passing: Option<Passing>,
}

impl Cut {
    /// Opens the disk with another server, and compares; returns how many messages that delivered.
    fn check(mut self, disk: &SimulatedDisk) -> usize {
        let server = ConsumerServer::start(disk);
        self.check_names(&server);
        self.check_floors(&server);
        self.check_messages(&server);
        let delivered = thread::scope(|scope| {
            let drains: Vec<_> = CONSUMERS
                .into_iter()
                .map(|(stream, name, policy)| {
                    let (cut, server) = (&self, &server);
                    scope.spawn(move || cut.check_deliveries(server, stream, name, policy))
                })
                .collect();
            let count: Vec<_> = drains
                .into_iter()
                .map(|drain| drain.join().unwrap())
                .collect();
            count
        });
        self.check_passing(&server);

        // Once more: what the second server has confirmed survives as well, and nothing of before is forgotten.
        let after = ConsumerServer::start(&disk.after_power_cut(Survival::Nothing));
        for ((stream, name, policy), delivered) in CONSUMERS.into_iter().zip(&delivered) {
            if policy == Policy::None {
                continue;
            }
            let settled = self
                .promised
                .of(stream, name)
                .confirmed
                .iter()
                .chain(delivered);
            for sequence in settled {
                let is_needed = after.needs(stream, name, &format!("{stream}.a"), *sequence);
                assert!(!is_needed, "{}, second: {name}: {sequence}", self.label);
            }
        }
        delivered.iter().map(BTreeSet::len).sum()
    }

    fn check_names(&self, server: &ConsumerServer) {
        for (stream, _) in STREAMS {
            let of_stream = CONSUMERS.iter().filter(|(other, ..)| *other == stream);
            let mut names: Vec<String> = of_stream.map(|(_, name, _)| (*name).to_owned()).collect();
            if self.passing.is_some() && stream == "L" {
                names.push(PASSING.to_owned());
            }
            names.sort();
            assert_eq!(server.names(stream), names, "{}", self.label);
        }
    }

    /// The floor is not below what was confirmed without a gap.
    fn check_floors(&mut self, server: &ConsumerServer) {
        for (stream, name, _) in CONSUMERS {
            let confirmed = &self.promised.of(stream, name).confirmed;
            let contiguous = (1..).take_while(|sequence| confirmed.contains(sequence));
            let least = contiguous.last().unwrap_or(0);
            let state = server.state(stream, name);
            let floor = state["floor"]["stream_sequence"].as_u64().expect("it says");
            assert!(floor >= least, "{}: {name}: {floor} < {least}", self.label);
        }
    }

    /// What is kept only until it is taken is gone when that was confirmed, and there when nobody said so.
    fn check_messages(&mut self, server: &ConsumerServer) {
        for (stream, _) in STREAMS {
            let stored = self
                .promised
                .stored
                .get(stream)
                .cloned()
                .unwrap_or_default();
            let takers = || CONSUMERS.into_iter().filter(|(other, ..)| *other == stream);
            for sequence in stored {
                let is_there = server.streams.payload(stream, sequence).is_some();
                let is_taken = stream != "L"
                    && takers().all(|(_, name, _)| {
                        self.promised.of(stream, name).confirmed.contains(&sequence)
                    });
                let may_be_taken = stream != "L"
                    && takers().all(|(_, name, _)| {
                        self.possible.of(stream, name).sent.contains(&sequence)
                    });
                let label = &self.label;
                assert!(!is_taken || !is_there, "{label}: {stream} keeps {sequence}");
                assert!(
                    may_be_taken || is_there,
                    "{label}: {stream} lost {sequence}"
                );
            }
        }
    }

    /// Takes everything that a consumer still has, acknowledges it, and returns it.
    fn check_deliveries(
        &self,
        server: &ConsumerServer,
        stream: &str,
        name: &str,
        policy: Policy,
    ) -> BTreeSet<u64> {
        let key = (stream.to_owned(), name.to_owned());
        let empty = Known::default();
        let promised = self.promised.known.get(&key).unwrap_or(&empty);
        let possible = self.possible.known.get(&key).unwrap_or(&empty);
        let settled = match policy {
            Policy::None => &possible.received,
            _ => &possible.sent,
        };
        let stored = self
            .promised
            .stored
            .get(stream)
            .cloned()
            .unwrap_or_default();
        let missing: BTreeSet<u64> = stored.difference(settled).copied().collect();
        let drained = self.drain(server, stream, name, policy, &missing);
        for (sequence, count) in &drained {
            let label = format!("{}: {name}: {sequence}", self.label);
            assert!(!promised.confirmed.contains(sequence), "{label}: again");
            if policy == Policy::None {
                assert_eq!(*count, 1, "{label}: nothing is counted");
                continue;
            }
            let least = promised.counted.get(sequence).map_or(1, |count| count + 1);
            assert!(*count >= least, "{label}: delivery {count}, not {least}");
        }
        drained.into_keys().collect()
    }

    /// Pulls until nothing is missing and nothing comes any more; returns how often each had been delivered when it came first.
    fn drain(
        &self,
        server: &ConsumerServer,
        stream: &str,
        name: &str,
        policy: Policy,
        wanted: &BTreeSet<u64>,
    ) -> BTreeMap<u64, u64> {
        let mut client = server.connect();
        let mut drained = BTreeMap::new();
        let deadline = Instant::now() + GATHER_WAIT_MAX;
        // Everything that waits for an acknowledgement comes first then, so that acknowledging all up to one leaves nothing out.
        thread::sleep(Duration::from_nanos(ACK_WAIT_NS * 3 / 2));
        let mut timeout = PULL_PATIENCE;
        loop {
            let pulled = client.pull(stream, name, 200, timeout);
            for delivery in &pulled {
                drained.entry(delivery.sequence).or_insert(delivery.count);
            }
            match (policy, pulled.last()) {
                (Policy::None, _) | (_, None) => {}
                (Policy::Explicit, Some(last)) => {
                    for delivery in &pulled {
                        client.tell(delivery, ACK);
                    }
                    client.acknowledge(last, ACK);
                }
                (Policy::All, Some(_)) => {
                    let highest = pulled.iter().max_by_key(|delivery| delivery.sequence);
                    client.acknowledge(highest.expect("there is one"), ACK);
                }
            }
            let mut missing = wanted
                .iter()
                .filter(|sequence| !drained.contains_key(sequence));
            let first_missing = missing.next();
            let was_patient = timeout > PULL_PATIENCE;
            if pulled.is_empty() && first_missing.is_none() && was_patient {
                return drained;
            }
            // Longer than a message waits for its acknowledgement, so that nothing that waits is left when nothing comes.
            timeout = match pulled.is_empty() {
                true => Duration::from_nanos(2 * ACK_WAIT_NS),
                false => PULL_PATIENCE,
            };
            assert!(
                Instant::now() < deadline,
                "{}: {name}: {first_missing:?} of {} does not come: {}",
                self.label,
                wanted.len(),
                server.state(stream, name)
            );
        }
    }

    /// A consumer that was created just before the cut has everything that came after it, and nothing that came before.
    fn check_passing(&self, server: &ConsumerServer) {
        let Some(passing) = &self.passing else {
            return;
        };
        let drained = self.drain(server, "L", PASSING, Policy::Explicit, &passing.wanted);
        let first = drained.keys().next().copied();
        let is_new = first.is_some_and(|first| first > passing.last_before);
        assert!(is_new, "{}: {first:?}", self.label);
    }
}
