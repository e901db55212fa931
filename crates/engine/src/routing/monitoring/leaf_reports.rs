//! Links to other servers, and the remotes they are to lead to, as JSON for monitoring.

use serde::Serialize;

use super::statistics::{to_json, unix_ns};
use crate::routing::leaf::remote::RemoteReport;
use crate::routing::leaf::LeafLink;
use crate::routing::shared::Shared;
use crate::routing::subscription::Receiver;

/// An open link.
#[derive(Debug, Serialize)]
struct LinkReport {
    id: u64,
    name: String,
    remote_id: String,
    account: String,
    is_spoke: bool,
    is_isolated: bool,
    is_solicited: bool,
    ip: String,
    port: u16,
    round_trip_ns: u64,
    in_messages: u64,
    out_messages: u64,
    in_bytes: u64,
    out_bytes: u64,
    subscriptions: usize,
    compression: String,
    cluster: String,
    domain: String,
    remote_account: String,
    url: String,
    started_unix_ns: u64,
    pending_bytes: usize,
}

impl LinkReport {
    fn new(link: &LeafLink) -> Self {
        use std::sync::atomic::Ordering::Relaxed;
        let (connection, traits) = (&link.connection, link.traits.clone());
        let traffic = &connection.traffic;
        Self {
            id: connection.id,
            name: traits.server_name,
            remote_id: traits.server_id,
            account: connection.identity.lock().account.clone(),
            is_spoke: traits.is_spoke,
            is_isolated: traits.is_isolated,
            is_solicited: traits.is_solicited,
            ip: connection.remote_address.ip().to_string(),
            port: connection.remote_address.port(),
            round_trip_ns: connection.round_trip_micros.load(Relaxed) * 1_000,
            in_messages: traffic.in_messages.load(Relaxed),
            out_messages: traffic.out_messages.load(Relaxed),
            in_bytes: traffic.in_bytes.load(Relaxed),
            out_bytes: traffic.out_bytes.load(Relaxed),
            subscriptions: connection.subscription_count.load(Relaxed),
            compression: traits.compression.to_owned(),
            cluster: traits.cluster,
            domain: traits.domain,
            remote_account: traits.remote_account,
            url: traits.url,
            started_unix_ns: unix_ns(connection.started),
            pending_bytes: connection.outbox.pending_bytes(),
        }
    }
}

/// A remote, with what waits to be sent to it.
#[derive(Debug, Serialize)]
struct RemoteWithLink {
    #[serde(flatten)]
    remote: RemoteReport,
    pending_bytes: usize,
}

/// All open links, oldest first.
pub fn links(shared: &Shared) -> Vec<u8> {
    let links = shared.links.all();
    let reports: Vec<_> = links.iter().map(|link| LinkReport::new(link)).collect();
    to_json(&reports)
}

/// What the other side of a link wants, in order.
pub fn interest(shared: &Shared, connection_id: u64) -> Vec<String> {
    let Some(link) = shared.links.find(connection_id) else {
        return Vec::new();
    };
    let account = shared.account(&link.connection.identity.lock().account.clone());
    let mut subjects: Vec<String> = account
        .subscriptions()
        .iter()
        .filter(|one| {
            matches!(&one.receiver, Receiver::Leaf(receiver) if receiver.link.connection.id == connection_id)
        })
        .map(|one| String::from_utf8_lossy(&one.subject).into_owned())
        .collect();
    subjects.sort_unstable();
    subjects
}

/// All remotes of the configuration.
pub fn remotes(shared: &Shared) -> Vec<u8> {
    let remotes = shared.links.remotes();
    let reports: Vec<_> = remotes
        .iter()
        .map(|remote| {
            let remote = remote.report();
            let link = shared.links.find(remote.link_id);
            RemoteWithLink {
                remote,
                pending_bytes: link.map_or(0, |link| link.connection.outbox.pending_bytes()),
            }
        })
        .collect();
    to_json(&reports)
}
