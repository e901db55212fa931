//! A server to connect to: its addresses, and how the attempts went.
//!
//! One thread of `connection/leaf_dialer.rs` serves one remote. Invariant: at most one connection of a remote is under way or open; when it ends, the time
//! of the next attempt is set.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::{Condvar, Mutex};
use rustls::ClientConfig;
use serde::Serialize;

use crate::common::error::EngineError;
use crate::common::random::Random;
use crate::common::user_key::UserKey;
use crate::config::leaf::{LeafOptions, LeafRemoteOptions, LeafUrl};
use crate::config::remote_tls::RemoteTlsOptions;
use crate::routing::monitoring::statistics::unix_ns;
use crate::transport::tls::client;

/// Addresses that the other side may name besides those of the configuration.
const DISCOVERED_MAX: usize = 64;

/// The pause before a connection that failed is tried again, if the configuration does not say.
const RECONNECT_MS_DEFAULT: u64 = 1_000;

/// By how much of it the pause is longer at most, so that many leaf nodes do not come back at the same moment.
const RECONNECT_JITTER_PART: usize = 2;

pub struct LeafRemote {
    pub options: LeafRemoteOptions,
    pub key: Option<UserKey>,
    /// As a client of it; for a remote without a configuration of TLS, if the other side demands it.
    pub tls: Option<Arc<ClientConfig>>,
    reconnect_ms: u64,
    state: Mutex<RemoteState>,
    changed: Condvar,
}

struct RemoteState {
    urls: Vec<LeafUrl>,
    next_url: usize,
    phase: RemotePhase,
    attempts: u64,
    last_error: String,
    changed: SystemTime,
    retry_at: Instant,
    is_stopped: bool,
    random: Random,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RemotePhase {
    /// Nothing is under way.
    Waiting,
    Connecting,
    /// The id of the connection.
    Linked(u64),
}

/// A remote as monitoring shows it.
#[derive(Debug, Serialize)]
pub struct RemoteReport {
    pub account: String,
    pub urls: Vec<String>,
    pub is_connected: bool,
    pub link_id: u64,
    pub attempts: u64,
    pub last_error: String,
    pub changed_unix_ns: u64,
    pub retry_in_ms: u64,
}

impl LeafRemote {
    pub fn new(options: &LeafRemoteOptions, leaf: &LeafOptions) -> Result<Arc<Self>, EngineError> {
        let refused = |reason: String| {
            let urls: Vec<_> = options.urls.iter().map(url_text).collect();
            EngineError::Options(format!("the leaf remote {}: {reason}", urls.join(", ")))
        };
        if options.urls.is_empty() {
            return Err(refused("it has no url".to_owned()));
        }
        let tls = match &options.tls {
            Some(tls) => Some(client::client_config(tls).map_err(refused)?),
            None if leaf.system_ca_pem.is_empty() => None,
            None => {
                let system = RemoteTlsOptions {
                    ca_pem: leaf.system_ca_pem.clone(),
                    ..RemoteTlsOptions::default()
                };
                client::client_config(&system).ok()
            }
        };
        let mut urls = options.urls.clone();
        let mut random = Random::seeded(getrandom::u64().unwrap_or(1));
        if !options.no_randomize {
            shuffle(&mut urls, &mut random);
        }
        Ok(Arc::new(Self {
            key: UserKey::read(&options.seed).map_err(refused)?,
            tls,
            reconnect_ms: match leaf.reconnect_ms {
                0 => RECONNECT_MS_DEFAULT,
                reconnect_ms => reconnect_ms,
            },
            options: options.clone(),
            state: Mutex::new(RemoteState {
                urls,
                next_url: 0,
                phase: RemotePhase::Waiting,
                attempts: 0,
                last_error: String::new(),
                changed: SystemTime::now(),
                retry_at: Instant::now(),
                is_stopped: false,
                random,
            }),
            changed: Condvar::new(),
        }))
    }

    /// Waits until it is time to try a connection, and says where; `None` when the remote is no longer wanted.
    pub fn next_attempt(&self) -> Option<LeafUrl> {
        let mut state = self.state.lock();
        loop {
            if state.is_stopped {
                return None;
            }
            if state.phase != RemotePhase::Waiting {
                self.changed.wait(&mut state);
                continue;
            }
            if Instant::now() >= state.retry_at {
                break;
            }
            let until = state.retry_at;
            self.changed.wait_until(&mut state, until);
        }
        state.phase = RemotePhase::Connecting;
        state.attempts += 1;
        let position = state.next_url % state.urls.len();
        state.next_url = position + 1;
        Some(state.urls[position].clone())
    }

    /// The link is about to be open; false if it may not be, because the remote is no longer wanted.
    pub fn connected(&self, link_id: u64) -> bool {
        let mut state = self.state.lock();
        if state.is_stopped {
            return false;
        }
        state.phase = RemotePhase::Linked(link_id);
        state.last_error.clear();
        state.changed = SystemTime::now();
        true
    }

    /// The attempt has failed, or the link has ended; the next attempt begins after the usual pause, or after this one if that is longer.
    pub fn ended(&self, reason: &str, pause: Option<Duration>) {
        let mut state = self.state.lock();
        if state.phase == RemotePhase::Waiting {
            return;
        }
        let jitter_ms_max = self.reconnect_ms as usize / RECONNECT_JITTER_PART;
        let jitter_ms = state.random.below(jitter_ms_max + 1) as u64;
        let usual_ms = self.reconnect_ms.saturating_add(jitter_ms);
        let pause = pause
            .unwrap_or_default()
            .max(Duration::from_millis(usual_ms));
        state.phase = RemotePhase::Waiting;
        state.retry_at = Instant::now() + pause;
        if !reason.is_empty() {
            reason.clone_into(&mut state.last_error);
        }
        state.changed = SystemTime::now();
        self.changed.notify_all();
    }

    /// Ends the thread that serves it. Returns the connection that it has, to be closed; one whose handshake is under way ends instead of becoming a link.
    pub fn stop(&self) -> Option<u64> {
        let mut state = self.state.lock();
        state.is_stopped = true;
        self.changed.notify_all();
        match state.phase {
            RemotePhase::Linked(id) => Some(id),
            _ => None,
        }
    }

    pub fn is_stopped(&self) -> bool {
        self.state.lock().is_stopped
    }

    /// The other side names where it can be reached as well; those of the configuration stay.
    pub fn discover(&self, addresses: &[String]) {
        if self.options.ignore_discovered_servers {
            return;
        }
        let mut state = self.state.lock();
        // In the order in which they are tried, which may not be that of the configuration.
        let mut urls = state.urls[..self.options.urls.len()].to_vec();
        let model = self.options.urls[0].clone();
        for address in addresses.iter().take(DISCOVERED_MAX) {
            let Some((host, port)) = address.rsplit_once(':') else {
                continue;
            };
            let Ok(port) = port.parse() else { continue };
            let host = host.to_owned();
            if !urls.iter().any(|url| url.host == host && url.port == port) {
                urls.push(LeafUrl {
                    host,
                    port,
                    ..model.clone()
                });
            }
        }
        state.urls = urls;
    }

    pub fn report(&self) -> RemoteReport {
        let state = self.state.lock();
        let retry = state.retry_at.saturating_duration_since(Instant::now());
        let link_id = match state.phase {
            RemotePhase::Linked(id) => id,
            _ => 0,
        };
        RemoteReport {
            account: self.options.account.clone(),
            urls: state.urls.iter().map(url_text).collect(),
            is_connected: link_id > 0,
            link_id,
            attempts: state.attempts,
            last_error: state.last_error.clone(),
            changed_unix_ns: unix_ns(state.changed),
            retry_in_ms: match state.phase {
                RemotePhase::Waiting => retry.as_millis() as u64,
                _ => 0,
            },
        }
    }
}

/// An address without what it says about users.
pub fn url_text(url: &LeafUrl) -> String {
    let scheme = match (url.websocket, url.tls) {
        (true, true) => "wss",
        (true, false) => "ws",
        (false, true) => "tls",
        (false, false) => "nats-leaf",
    };
    format!("{scheme}://{}:{}{}", url.host, url.port, url.path)
}

fn shuffle(urls: &mut [LeafUrl], random: &mut Random) {
    for position in (1..urls.len()).rev() {
        urls.swap(position, random.below(position + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(hosts: &[&str]) -> Arc<LeafRemote> {
        let options = LeafRemoteOptions {
            urls: hosts
                .iter()
                .map(|host| LeafUrl {
                    host: (*host).to_owned(),
                    port: 7422,
                    ..LeafUrl::default()
                })
                .collect(),
            no_randomize: true,
            ..LeafRemoteOptions::default()
        };
        let leaf = LeafOptions {
            reconnect_ms: 1,
            ..LeafOptions::default()
        };
        LeafRemote::new(&options, &leaf).unwrap()
    }

    #[test]
    fn addresses_are_tried_in_turn_until_one_answers() {
        let remote = remote(&["a", "b"]);
        let first = remote.next_attempt().unwrap();
        remote.ended("refused", None);
        let second = remote.next_attempt().unwrap();
        assert!(remote.connected(7));

        assert_eq!((first.host.as_str(), second.host.as_str()), ("a", "b"));
        let report = remote.report();
        assert!(report.is_connected && report.attempts == 2 && report.link_id == 7);
        assert_eq!(report.last_error, "");
        assert_eq!(remote.stop(), Some(7));
        assert!(remote.next_attempt().is_none());
    }

    #[test]
    fn what_the_other_side_names_is_tried_as_well() {
        let remote = remote(&["a"]);

        remote.discover(&["b:1".to_owned(), "a:7422".to_owned(), "nonsense".to_owned()]);

        let urls = remote.report().urls;
        assert_eq!(urls, ["nats-leaf://a:7422", "nats-leaf://b:1"]);
    }

    #[test]
    fn addresses_that_are_no_longer_named_make_room_for_others() {
        let remote = remote(&["a"]);
        remote.discover(&["b:1".to_owned()]);

        remote.discover(&["c:2".to_owned()]);

        let urls = remote.report().urls;
        assert_eq!(urls, ["nats-leaf://a:7422", "nats-leaf://c:2"]);
    }

    #[test]
    fn addresses_of_the_configuration_stay_in_the_order_in_which_they_are_tried() {
        let remote = remote(&["a", "b"]);
        remote.state.lock().urls.swap(0, 1);

        for address in ["c:1", "d:1"] {
            remote.discover(&[address.to_owned()]);
        }

        let urls = remote.report().urls;
        let tried = [
            "nats-leaf://b:7422",
            "nats-leaf://a:7422",
            "nats-leaf://d:1",
        ];
        assert_eq!(urls, tried);
    }

    #[test]
    fn a_remote_that_was_removed_during_its_handshake_gets_no_link() {
        let remote = remote(&["a"]);
        remote.next_attempt().unwrap();

        assert_eq!(remote.stop(), None);

        assert!(!remote.connected(7));
        assert!(!remote.report().is_connected);
    }

    #[test]
    fn a_remote_without_an_address_is_refused() {
        let refused = LeafRemote::new(&LeafRemoteOptions::default(), &LeafOptions::default());

        assert!(refused.err().unwrap().to_string().contains("no url"));
    }
}
