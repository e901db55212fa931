//! Every delivery of a live engine against an oracle that knows only sets of concrete subjects.
//!
//! Each round makes a client with generated permissions, lets it subscribe and publish at random, and compares what it got, what reached
//! others, and what it was refused with what the oracle says. `JETLAKE_ORACLE_CASES` sets how many decisions are compared.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use jetlake_engine::common::events::Event;
use jetlake_engine::common::random::Random;
use jetlake_engine::config::options::Options;
use jetlake_engine::engine::Engine;
use jetlake_engine::routing::clients::mailbox::Verdict;
use jetlake_engine::wire::reply::{parse_reply, Reply};

const TOKENS: [&str; 3] = ["a", "b", "c"];
const DEPTH: usize = 4;
const SEED: u64 = 20_261_115;

/// The oracle: a pattern is the set of the concrete subjects it matches.
mod oracle {
    use super::{DEPTH, TOKENS};

    pub fn universe() -> Vec<String> {
        let mut all: Vec<String> = TOKENS.iter().map(ToString::to_string).collect();
        let mut layer = all.clone();
        for _ in 1..DEPTH {
            layer = layer
                .iter()
                .flat_map(|head| TOKENS.map(|token| format!("{head}.{token}")))
                .collect();
            all.extend(layer.clone());
        }
        all
    }

    pub fn matches(pattern: &str, subject: &str) -> bool {
        match (pattern.split_once('.'), subject.split_once('.')) {
            _ if pattern == ">" => true,
            (None, None) => pattern == "*" || pattern == subject,
            (Some((wanted, pattern)), Some((token, subject))) => {
                (wanted == "*" || wanted == token) && matches(pattern, subject)
            }
            _ => false,
        }
    }

    /// `outer` holds every subject of `inner`.
    pub fn holds(universe: &[String], outer: &str, inner: &str) -> bool {
        universe
            .iter()
            .all(|subject| !matches(inner, subject) || matches(outer, subject))
    }

    fn split(rule: &str) -> (&str, Option<&str>) {
        rule.split_once(' ')
            .map_or((rule, None), |(pattern, queue)| (pattern, Some(queue)))
    }

    pub fn may_subscribe(
        universe: &[String],
        lists: &super::Lists,
        subject: &str,
        queue: Option<&str>,
    ) -> bool {
        let holding = |rules: &[String]| -> Vec<Option<String>> {
            let rules = rules.iter().map(|rule| split(rule));
            rules
                .filter(|(pattern, _)| holds(universe, pattern, subject))
                .map(|(_, queue)| queue.map(str::to_owned))
                .collect()
        };
        let names = |rule: &Option<String>| {
            rule.as_ref()
                .is_some_and(|pattern| queue.is_some_and(|queue| matches(pattern, queue)))
        };
        let denied = holding(&lists.subscribe_deny)
            .iter()
            .any(|rule| rule.is_none() || names(rule));
        let allowed = lists.subscribe_allow.as_ref().is_none_or(|rules| {
            let rules = holding(rules);
            if queue.is_some() && rules.iter().any(Option::is_some) {
                rules.iter().any(names)
            } else {
                rules.iter().any(Option::is_none)
            }
        });
        allowed && !denied
    }

    pub fn may_see(lists: &super::Lists, queue: Option<&str>, subject: &str) -> bool {
        !lists.subscribe_deny.iter().any(|rule| {
            let (pattern, named) = split(rule);
            let concerns = named.is_none_or(|named| queue.is_some_and(|own| matches(named, own)));
            concerns && matches(pattern, subject)
        })
    }

    pub fn may_publish(lists: &super::Lists, subject: &str) -> bool {
        let covered = |rules: &[String]| rules.iter().any(|rule| matches(rule, subject));
        let allow = match &lists.publish_allow {
            None => !lists.responses,
            Some(rules) => covered(rules),
        };
        allow && !covered(&lists.publish_deny)
    }
}

#[derive(Debug)]
pub struct Lists {
    publish_allow: Option<Vec<String>>,
    publish_deny: Vec<String>,
    subscribe_allow: Option<Vec<String>>,
    subscribe_deny: Vec<String>,
    responses: bool,
}

impl Lists {
    fn generate(random: &mut Random) -> Self {
        Self {
            publish_allow: (random.below(3) > 0).then(|| patterns(random, 4, false)),
            publish_deny: patterns(random, 3, false),
            subscribe_allow: (random.below(3) > 0).then(|| patterns(random, 5, true)),
            subscribe_deny: patterns(random, 3, true),
            responses: random.below(3) == 0,
        }
    }

    fn verdict(&self) -> Vec<u8> {
        let responses = self
            .responses
            .then(|| serde_json::json!({"count_max": 1, "expires_ms": 600_000}));
        serde_json::to_vec(&serde_json::json!({
            "account": "A", "user": "restricted",
            "permissions": {
                "publish": {"allow": self.publish_allow, "deny": self.publish_deny},
                "subscribe": {"allow": self.subscribe_allow, "deny": self.subscribe_deny},
                "responses": responses,
            }
        }))
        .unwrap()
    }
}

fn pattern(random: &mut Random) -> String {
    let length = 1 + random.below(3);
    let mut tokens: Vec<&str> = (0..length)
        .map(|_| match random.below(4) {
            0 => "*",
            index => TOKENS[index - 1],
        })
        .collect();
    if random.below(4) == 0 {
        tokens[length - 1] = ">";
    }
    tokens.join(".")
}

fn patterns(random: &mut Random, count_max: usize, queues: bool) -> Vec<String> {
    (0..random.below(count_max + 1))
        .map(|_| {
            let subject = pattern(random);
            match random.below(4) {
                0 if queues => format!("{subject} {}", ["q1", "q2", "q*", "*"][random.below(4)]),
                _ => subject,
            }
        })
        .collect()
}

struct Client {
    socket: TcpStream,
    buffer: Vec<u8>,
}

/// What came until the next PONG.
#[derive(Default)]
struct Heard {
    /// sid, subject and reply of each message.
    messages: Vec<(String, String, Option<String>)>,
    errors: Vec<String>,
}

impl Client {
    fn connect(engine: &Engine, verdict: &[u8]) -> Self {
        let socket = TcpStream::connect(engine.address()).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        socket.set_nodelay(true).unwrap();
        let mut client = Self {
            socket,
            buffer: Vec::new(),
        };
        client.send("CONNECT {\"verbose\":false,\"pedantic\":false}\r\n");
        'asked: loop {
            for event in engine
                .shared()
                .events
                .next(64, Duration::from_millis(1_000))
            {
                if let Event::Authenticate(request) = event {
                    let verdict = Verdict::from_json(verdict).unwrap();
                    assert!(engine.decide(request.connection_id, verdict));
                    break 'asked;
                }
            }
        }
        assert!(client.hear().errors.is_empty());
        client
    }

    fn send(&mut self, text: &str) {
        self.socket.write_all(text.as_bytes()).unwrap();
    }

    /// Sends PING and reads until its PONG.
    fn hear(&mut self) -> Heard {
        self.send("PING\r\n");
        let mut heard = Heard::default();
        let mut chunk = [0; 65_536];
        loop {
            let mut used = 0;
            let mut done = false;
            while let Some((reply, consumed)) = parse_reply(&self.buffer[used..]).unwrap() {
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                match reply {
                    Reply::Message {
                        subject,
                        sid,
                        reply,
                        ..
                    } => heard
                        .messages
                        .push((text(sid), text(subject), reply.map(text))),
                    Reply::Error(error) => heard.errors.push(text(error)),
                    Reply::Pong => done = true,
                    _ => {}
                }
                used += consumed;
                if done {
                    break;
                }
            }
            self.buffer.drain(..used);
            if done {
                return heard;
            }
            let count = self.socket.read(&mut chunk).unwrap();
            assert!(count > 0, "the engine closed the connection");
            self.buffer.extend_from_slice(&chunk[..count]);
        }
    }
}

fn engine() -> Engine {
    let options = serde_json::json!({
        "host": "127.0.0.1", "port": 0, "server_name": "", "version": "2.15.1", "git_commit": "", "client_advertise": null,
        "max_connections": 1000, "max_subscriptions": 0, "max_subscription_tokens": 0, "max_control_line_bytes": 4096,
        "max_payload_bytes": 1_048_576, "max_pending_bytes": 67_108_864, "write_deadline_ms": 10_000,
        "ping_interval_ms": 120_000, "ping_max": 2, "auth_required": true, "auth_timeout_ms": 20_000,
        "handshake_timeout_ms": 30_000, "headers": true, "fast_producer_stall": true, "worker_threads": 2,
        "jetstream": false, "domain": null, "debug": false, "trace": false,
    });
    let options = Options::from_json(&serde_json::to_vec(&options).unwrap()).unwrap();
    let engine = Engine::new(options).unwrap();
    engine.start().unwrap();
    engine
}

#[test]
fn every_delivery_and_refusal_is_what_the_oracle_says() {
    let cases_wanted: u64 = std::env::var("JETLAKE_ORACLE_CASES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(100_000);
    let engine = engine();
    let universe = oracle::universe();
    let mut random = Random::seeded(SEED);
    let mut other = Client::connect(&engine, br#"{"account":"A","user":"other"}"#);
    let mut stranger = Client::connect(&engine, br#"{"account":"B","user":"stranger"}"#);
    other.send("SUB > all\r\n");
    stranger.send("SUB > all\r\n");
    let mut cases = 0;
    let mut deliveries = 0;
    while cases < cases_wanted {
        let lists = Lists::generate(&mut random);
        let mut client = Client::connect(&engine, &lists.verdict());

        // What it may subscribe to.
        let mut subscriptions = Vec::new();
        for sid in 0..6 {
            let subject = pattern(&mut random);
            let queue = [None, None, Some("q1"), Some("q2")][random.below(4)];
            client.send(&format!(
                "SUB {subject} {} {sid}\r\n",
                queue.unwrap_or_default()
            ));
            let refused = !client.hear().errors.is_empty();
            let may = oracle::may_subscribe(&universe, &lists, &subject, queue);
            assert_eq!(refused, !may, "SUB {subject} {queue:?} with {lists:?}");
            if may {
                subscriptions.push((sid.to_string(), subject, queue));
            }
            cases += 1;
        }

        // What reaches it.
        let published: Vec<&String> = (0..40)
            .map(|_| &universe[random.below(universe.len())])
            .collect();
        for (number, subject) in published.iter().enumerate() {
            let reply = if number % 4 == 0 {
                format!(" reply.{number}")
            } else {
                String::new()
            };
            other.send(&format!("PUB {subject}{reply} 0\r\n\r\n"));
        }
        let echoed = other.hear();
        assert_eq!(echoed.messages.len(), published.len());
        let heard = client.hear();
        compare_deliveries(&lists, &subscriptions, &published, &heard);
        cases += (published.len() * subscriptions.len().max(1)) as u64;
        deliveries += heard.messages.len();

        // What it may publish: its lists, and once to each reply subject it got.
        let granted: BTreeMap<String, bool> = heard
            .messages
            .iter()
            .filter_map(|(_, _, reply)| reply.clone())
            .map(|reply| (reply, true))
            .collect();
        let mut wishes: Vec<String> = (0..20)
            .map(|_| universe[random.below(universe.len())].clone())
            .collect();
        for number in [0, 4, 8] {
            wishes.extend([format!("reply.{number}"), format!("reply.{number}")]);
        }
        let mut left = granted;
        let mut expected = Vec::new();
        for subject in &wishes {
            client.send(&format!("PUB {subject} 0\r\n\r\n"));
            let by_list = oracle::may_publish(&lists, subject);
            let by_response = lists.responses && !by_list && left.remove(subject).is_some();
            if by_list || by_response {
                expected.push(subject.clone());
            }
        }
        let errors = client.hear().errors.len();
        let arrived: Vec<String> = other
            .hear()
            .messages
            .into_iter()
            .map(|(_, subject, _)| subject)
            .collect();
        assert_eq!(arrived, expected, "publishes with {lists:?}");
        assert_eq!(errors, wishes.len() - expected.len());
        cases += wishes.len() as u64;

        assert!(
            stranger.hear().messages.is_empty(),
            "another account heard something"
        );

        // The next client must not share its queue groups with one that is leaving.
        drop(client);
        while engine.shared().connection_count() > 2 {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
    println!("{cases} decisions compared, {deliveries} deliveries, 0 differences");
}

/// One message per plain subscription that matches and may see it, one per queue group that has such a member.
fn compare_deliveries(
    lists: &Lists,
    subscriptions: &[(String, String, Option<&str>)],
    published: &[&String],
    heard: &Heard,
) {
    let queue_of: BTreeMap<&str, Option<&str>> = subscriptions
        .iter()
        .map(|(sid, _, queue)| (sid.as_str(), *queue))
        .collect();
    let mut counted: BTreeMap<(String, &str), usize> = BTreeMap::new();
    for (sid, subject, _) in &heard.messages {
        let receiver =
            queue_of[sid.as_str()].map_or(format!("sid {sid}"), |queue| format!("queue {queue}"));
        *counted.entry((receiver, subject)).or_default() += 1;
    }
    let mut expected: BTreeMap<(String, &str), usize> = BTreeMap::new();
    for subject in published {
        let mut receivers: Vec<String> = subscriptions
            .iter()
            .filter(|(_, pattern, queue)| {
                oracle::matches(pattern, subject) && oracle::may_see(lists, *queue, subject)
            })
            .map(|(sid, _, queue)| {
                queue.map_or(format!("sid {sid}"), |queue| format!("queue {queue}"))
            })
            .collect();
        receivers.sort();
        receivers.dedup();
        for receiver in receivers {
            *expected.entry((receiver, subject.as_str())).or_default() += 1;
        }
    }
    assert_eq!(counted, expected, "{subscriptions:?} with {lists:?}");
}
