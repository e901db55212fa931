//! Commands to a worker from other threads. Many commands cost one wake-up.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use mio::net::TcpStream;
use mio::Waker;
use parking_lot::Mutex;
use serde::Deserialize;

use super::closed_reason::ClosedReason;
use super::connection::Connection;
use crate::common::error::EngineError;
use crate::common::permissions::PermissionLists;
use crate::config::leaf::LeafUrl;
use crate::routing::leaf::LeafRemote;
use crate::routing::subscription::Subscription;

/// A socket that was accepted, with the connection made for it.
pub type AcceptedConnection = (Arc<Connection>, Arc<TcpStream>);

/// A connection to another server that this one has made.
pub struct SolicitedConnection {
    pub accepted: AcceptedConnection,
    pub remote: Arc<LeafRemote>,
    pub url: LeafUrl,
}

pub enum WorkerCommand {
    Accepted(AcceptedConnection),
    Solicited(Box<SolicitedConnection>),
    /// Go on writing for this connection.
    Flush {
        slot: usize,
        connection_id: u64,
    },
    /// Its outbox is gone; end the session.
    Lost {
        slot: usize,
        connection_id: u64,
        reason: ClosedReason,
    },
    /// Close it in good order.
    Close {
        slot: usize,
        connection_id: u64,
        reason: ClosedReason,
    },
    /// A subscription had its last delivery; forget its sid.
    Ended {
        slot: usize,
        connection_id: u64,
        subscription: Arc<Subscription>,
    },
    /// Python decided about a CONNECT.
    Verdict {
        slot: usize,
        connection_id: u64,
        verdict: Verdict,
    },
    /// Take no more connections.
    StopAccepting,
    /// Other options are in force.
    OptionsChanged,
    /// Ask about every client again, or those of the account with this index.
    Reauthenticate {
        account: Option<usize>,
    },
    /// Notify clients that support it that this server will stop.
    LameDuck,
    Shutdown,
}

/// What Python says about a CONNECT.
pub enum Verdict {
    Admit(Box<Admission>),
    Refuse(RefusalCause),
}

/// Why a client is refused, as far as the client learns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalCause {
    Unauthorized,
    /// What it was let in with was revoked.
    Revoked,
    /// Its account has ended.
    AccountExpired,
}

impl RefusalCause {
    pub fn read(name: &str) -> Result<Self, EngineError> {
        Ok(match name {
            "" => Self::Unauthorized,
            "revoked" => Self::Revoked,
            "account expired" => Self::AccountExpired,
            _ => {
                let text = format!("{name:?} is not a cause to refuse a client for");
                return Err(EngineError::Options(text));
            }
        })
    }
}

/// As whom a client is let in.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Admission {
    pub account: String,
    pub user: String,
    #[serde(default)]
    pub permissions: Option<PermissionLists>,
    /// Where it is less than the server's own.
    #[serde(default)]
    pub max_payload_bytes: Option<usize>,
    #[serde(default)]
    pub max_subscriptions: Option<usize>,
    #[serde(default)]
    pub max_account_connections: Option<usize>,
    /// When the connection ends, because what the client was let in with does.
    #[serde(default)]
    pub expires_unix_ms: Option<u64>,
    /// What Python wants to find again in reports of the connection.
    #[serde(default)]
    pub details: String,
}

impl Verdict {
    pub fn from_json(json: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(json).map(|admission| Self::Admit(Box::new(admission)))
    }
}

pub struct Mailbox {
    commands: Mutex<Vec<WorkerCommand>>,
    woken: AtomicBool,
    waker: Waker,
}

impl Mailbox {
    pub fn new(waker: Waker) -> Self {
        Self {
            commands: Mutex::default(),
            woken: AtomicBool::new(false),
            waker,
        }
    }

    pub fn send(&self, command: WorkerCommand) {
        self.commands.lock().push(command);
        if !self.woken.swap(true, Ordering::AcqRel) {
            // It fails only when the poll is gone, and then nobody waits for the command.
            let _ = self.waker.wake();
        }
    }

    /// Everything that came since the last call.
    pub fn drain(&self) -> Vec<WorkerCommand> {
        // Cleared first: a command that comes now causes one wake-up too many, never one too few.
        self.woken.store(false, Ordering::Release);
        std::mem::take(&mut self.commands.lock())
    }
}
