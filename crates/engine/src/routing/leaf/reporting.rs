//! What others learn about links: the server that connects, the log, and the system account.

use super::link::LeafLink;
use crate::common::events::Level;
use crate::common::subject;
use crate::routing::clients::closed_reason::ClosedReason;
use crate::routing::clients::connection::Connection;
use crate::routing::monitoring::closed::ClosedConnection;
use crate::routing::monitoring::system_events;
use crate::routing::shared::Shared;
use crate::wire::leaf_information::{LeafInformation, LEAF_PROTOCOL};

/// INFO for a server that has connected.
pub fn information(shared: &Shared, connection: &Connection) -> LeafInformation {
    let (own, options) = (shared.server_information(), shared.options());
    let listener = options.leaf_listener().cloned().unwrap_or_default();
    let address = shared.leaf_address();
    let port = address.map_or(listener.port, |address| address.port());
    let advertised = match listener.advertise.as_str() {
        "" => format!("{}:{port}", listener.host),
        advertised => advertised.to_owned(),
    };
    LeafInformation {
        server_id: own.server_id,
        version: own.version,
        proto: i64::from(LEAF_PROTOCOL),
        git_commit: own.git_commit,
        go: own.go,
        host: listener.host,
        port,
        headers: own.headers,
        auth_required: true,
        tls_required: listener.tls.is_some(),
        tls_verify: listener.tls.as_ref().is_some_and(|tls| tls.verify),
        max_payload: own.max_payload,
        jetstream: own.jetstream,
        client_id: connection.id,
        // A server alone is a cluster of its own, as soon as it is a leaf node itself.
        cluster: match shared.has_leaf_remotes() {
            true => own.server_name.clone(),
            false => String::new(),
        },
        server_name: own.server_name,
        domain: own.domain.unwrap_or_default(),
        api_lvl: own.api_lvl,
        info_on_connect: true,
        leafnode_urls: Some(match listener.no_advertise {
            true => Vec::new(),
            false => vec![advertised],
        }),
        ..LeafInformation::default()
    }
}

/// A link is open.
pub fn opened(shared: &Shared, link: &LeafLink) {
    let connection = &link.connection;
    let account = connection.identity.lock().account.clone();
    let domain = |name: &str| subject::quoted(name.as_bytes());
    let own_domain = shared.options().domain.clone().unwrap_or_default();
    shared.events.log(
        Level::Info,
        format!(
            "{} - Leafnode connection created for account: {account}, with server {:?}",
            connection.label(),
            link.traits.server_name
        ),
    );
    shared.events.log(
        Level::Info,
        format!(
            "{} - JetStream using domains: local {}, remote {}",
            connection.label(),
            domain(&own_domain),
            domain(&link.traits.domain)
        ),
    );
    system_events::linked(shared, connection);
}

/// A link has ended, if this connection was one.
pub fn closed(shared: &Shared, connection: &Connection, reason: ClosedReason) {
    let Some(link) = shared.links.close(connection.id) else {
        return;
    };
    let closed = ClosedConnection::new(shared, connection, reason);
    system_events::disconnected(shared, &closed, reason);
    shared.events.log(
        Level::Info,
        format!(
            "{} - Leafnode connection closed: {} - Remote: {}",
            connection.label(),
            reason.text(),
            link.traits.server_name
        ),
    );
}
