//! Arrivals and departures of clients, for subscribers in the system account.
//!
//! Invariant: nothing is built or sent without a subscriber; the system account's own tree is checked for one.

use super::closed::ClosedConnection;
use super::reports::ConnectionReport;
use super::statistics::to_json;
use crate::common::events::{ConnectionEvent, ConnectionEventKind};
use crate::routing::clients::closed_reason::ClosedReason;
use crate::routing::clients::connection::Connection;
use crate::routing::shared::Shared;

/// A client was let in.
pub fn connected(shared: &Shared, connection: &Connection) {
    let account = connection.identity.lock().account.clone();
    if is_wanted(shared, &format!("$SYS.ACCOUNT.{account}.CONNECT")) {
        shared.events.push_connection(ConnectionEvent {
            kind: ConnectionEventKind::Connect,
            connection: to_json(&ConnectionReport::new(shared, connection)),
        });
    }
}

/// A server behind a link was let in.
pub fn linked(shared: &Shared, connection: &Connection) {
    let account = connection.identity.lock().account.clone();
    if is_wanted(shared, &format!("$SYS.ACCOUNT.{account}.LEAFNODE.CONNECT")) {
        shared.events.push_connection(ConnectionEvent {
            kind: ConnectionEventKind::Link,
            connection: to_json(&ConnectionReport::new(shared, connection)),
        });
    }
}

/// A connection has ended, as `closed` says.
pub fn disconnected(shared: &Shared, closed: &ClosedConnection, reason: ClosedReason) {
    let refused = matches!(
        reason,
        ClosedReason::AuthenticationFailure | ClosedReason::AuthenticationTimeout
    );
    let server_id = shared.server_id();
    if refused && is_wanted(shared, &format!("$SYS.SERVER.{server_id}.CLIENT.AUTH.ERR")) {
        push(shared, ConnectionEventKind::Refused, closed);
    }
    if is_wanted(
        shared,
        &format!("$SYS.ACCOUNT.{}.DISCONNECT", closed.account()),
    ) {
        push(shared, ConnectionEventKind::Disconnect, closed);
    }
}

fn push(shared: &Shared, kind: ConnectionEventKind, closed: &ClosedConnection) {
    shared.events.push_connection(ConnectionEvent {
        kind,
        connection: to_json(closed),
    });
}

fn is_wanted(shared: &Shared, subject: &str) -> bool {
    let system_account = &shared.options().system_account;
    if system_account.is_empty() {
        return false;
    }
    let (routes, _) = shared.account(system_account).find(subject.as_bytes());
    !routes.plain.is_empty() || !routes.groups.is_empty()
}
