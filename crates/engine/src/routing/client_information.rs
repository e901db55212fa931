//! Who a client is, as reported to services of other accounts and in latency events.
//!
//! Invariant: an account that does not share its connections shows its name and the round trip, and nothing else.

use std::sync::atomic::Ordering;

use serde::Serialize;
use serde_json::{Map, Value};

use super::clients::connection::Connection;
use super::monitoring::statistics::unix_ns;
use super::shared::Shared;
use crate::common::go_json;
use crate::common::timestamp;

#[derive(Debug, Clone, Serialize)]
pub struct ClientInformation {
    acc: String,
    #[serde(skip_serializing_if = "is_zero")]
    rtt: u64,
    #[serde(flatten)]
    shared: Option<ClientDetails>,
}

/// What is reported if the account shares it.
#[derive(Debug, Clone, Serialize)]
struct ClientDetails {
    start: String,
    host: String,
    id: u64,
    #[serde(skip_serializing_if = "String::is_empty")]
    user: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    lang: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    ver: String,
    server: String,
    kind: &'static str,
    client_type: &'static str,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl ClientInformation {
    /// A client, or a part of the server that acts in this account.
    pub fn new(
        shared: &Shared,
        account: &str,
        connection: Option<&Connection>,
        with_details: bool,
    ) -> Self {
        let Some(connection) = connection else {
            return Self {
                acc: account.to_owned(),
                rtt: 0,
                shared: None,
            };
        };
        let identity = connection.identity.lock().clone();
        Self {
            acc: identity.account.clone(),
            rtt: connection.round_trip_micros.load(Ordering::Relaxed) * 1_000,
            shared: with_details.then(|| ClientDetails {
                start: timestamp::text(unix_ns(connection.started) as i64),
                host: connection.remote_address.ip().to_string(),
                id: connection.id,
                user: identity.user,
                name: identity.name,
                lang: identity.language,
                ver: identity.version,
                server: shared.server_information().server_name,
                kind: "Client",
                client_type: connection.connection_type().client_type(),
            }),
        }
    }

    pub fn round_trip_ns(&self) -> i64 {
        i64::try_from(self.rtt).unwrap_or(i64::MAX)
    }

    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::new();
        go_json::append(&mut out, self);
        out
    }
}

/// What the next service of a chain is told about a client: what the one before received, and which account passes the
/// request on.
pub fn passed_on(before: &[u8], service: &str, server: Option<&str>) -> Option<Vec<u8>> {
    let mut information: Map<String, Value> = serde_json::from_slice(before).ok()?;
    information.insert("svc".to_owned(), service.into());
    if let Some(server) = server {
        information.entry("server").or_insert_with(|| server.into());
    }
    serde_json::to_vec(&information).ok()
}
