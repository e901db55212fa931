//! What happened to a message, step by step, as the event reports it.

use serde::Serialize;

use crate::common::clock;
use crate::common::timestamp;
use crate::routing::account::Account;
use crate::routing::clients::connection::Connection;
use crate::routing::subscription::Subscription;

/// The numbers that clients and leaf nodes have among the kinds of connections.
const CLIENT: u8 = 0;
const LEAF: u8 = 4;

#[derive(Debug, Serialize)]
#[serde(tag = "type")]
pub enum TraceStep {
    #[serde(rename = "in")]
    Ingress {
        ts: String,
        kind: u8,
        cid: u64,
        #[serde(skip_serializing_if = "String::is_empty")]
        name: String,
        acc: String,
        subj: String,
        #[serde(skip_serializing_if = "String::is_empty")]
        error: String,
    },
    #[serde(rename = "sm")]
    SubjectMapping { ts: String, to: String },
    #[serde(rename = "si")]
    ServiceImport {
        ts: String,
        acc: String,
        from: String,
        to: String,
    },
    #[serde(rename = "se")]
    StreamExport { ts: String, acc: String, to: String },
    #[serde(rename = "js")]
    JetStream {
        ts: String,
        stream: String,
        #[serde(skip_serializing_if = "String::is_empty")]
        subject: String,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        nointerest: bool,
        #[serde(skip_serializing_if = "String::is_empty")]
        error: String,
    },
    #[serde(rename = "eg")]
    Egress {
        ts: String,
        kind: u8,
        cid: u64,
        #[serde(skip_serializing_if = "String::is_empty")]
        name: String,
        #[serde(skip_serializing_if = "String::is_empty")]
        hop: String,
        #[serde(skip_serializing_if = "String::is_empty")]
        acc: String,
        #[serde(skip_serializing_if = "String::is_empty")]
        sub: String,
        #[serde(skip_serializing_if = "String::is_empty")]
        queue: String,
        #[serde(skip_serializing_if = "str::is_empty")]
        error: &'static str,
    },
}

impl TraceStep {
    pub fn ingress(publisher: &Connection, account: &Account, subject: &[u8]) -> Self {
        Self::Ingress {
            ts: now(),
            kind: match publisher.connection_type().is_leaf() {
                true => LEAF,
                false => CLIENT,
            },
            cid: publisher.id,
            name: publisher.identity.lock().name.clone(),
            acc: account.name.clone(),
            subj: text(subject),
            error: String::new(),
        }
    }

    pub fn mapping(subject: &[u8]) -> Self {
        Self::SubjectMapping {
            ts: now(),
            to: text(subject),
        }
    }

    pub fn service_import(account: &str, from: &[u8], to: &[u8]) -> Self {
        Self::ServiceImport {
            ts: now(),
            acc: account.to_owned(),
            from: text(from),
            to: text(to),
        }
    }

    pub fn stream_export(account: &str, subject: &[u8]) -> Self {
        Self::StreamExport {
            ts: now(),
            acc: account.to_owned(),
            to: text(subject),
        }
    }

    pub fn jetstream(stream: &str, subject: &[u8], is_wanted: bool, error: &str) -> Self {
        Self::JetStream {
            ts: now(),
            stream: stream.to_owned(),
            subject: text(subject),
            nointerest: !is_wanted,
            error: error.to_owned(),
        }
    }

    pub fn egress(
        receiver: &Connection,
        account: String,
        subscription: &Subscription,
        error: &'static str,
    ) -> Self {
        Self::Egress {
            ts: now(),
            kind: CLIENT,
            cid: receiver.id,
            name: receiver.identity.lock().name.clone(),
            hop: String::new(),
            acc: account,
            sub: text(&subscription.subject),
            queue: text(subscription.queue.as_deref().unwrap_or_default()),
            error,
        }
    }

    pub fn forwarded(
        receiver: &Connection,
        account: String,
        hop: String,
        error: &'static str,
    ) -> Self {
        Self::Egress {
            ts: now(),
            kind: LEAF,
            cid: receiver.id,
            name: receiver.identity.lock().name.clone(),
            hop,
            acc: account,
            sub: String::new(),
            queue: String::new(),
            error,
        }
    }
}

pub fn now() -> String {
    timestamp::text(clock::system_ns())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
