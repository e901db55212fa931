//! Connects to the servers that this one is a leaf node of.
//!
//! One thread for each: DNS lookups and connects block. A connected socket is handed to a worker, and the thread
//! waits until the worker reports that the link has ended.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use crate::common::error::EngineError;
use crate::common::events::Level;
use crate::common::threads;
use crate::config::connection_type::ConnectionType;
use crate::config::leaf::LeafUrl;
use crate::routing::clients::mailbox::{SolicitedConnection, WorkerCommand};
use crate::routing::leaf::remote::url_text;
use crate::routing::leaf::LeafRemote;
use crate::routing::shared::Shared;

/// Servers to connect to: each has a thread.
pub const REMOTES_MAX: usize = 256;

/// How long a connection may take if the configuration does not say.
const DIAL_TIMEOUT_MS_DEFAULT: u64 = 1_000;

/// Only the first failure and then every 60th is logged: a remote may be away for days.
const FAILURES_PER_LINE: u64 = 60;

/// Starts the thread of a remote. It ends when the remote is stopped.
pub fn start(shared: &Arc<Shared>, remote: Arc<LeafRemote>) -> Result<(), EngineError> {
    let dialing = Arc::clone(shared);
    let run = move || {
        dial_until_stopped(&dialing, &remote);
        Ok(())
    };
    // It is not waited for: a name server that does not answer must not hold up the end.
    threads::spawn(&shared.events, "jetlake-leaf", run)
        .map(drop)
        .map_err(|cause| EngineError::System {
            what: "leaf node thread",
            cause,
        })
}

fn dial_until_stopped(shared: &Arc<Shared>, remote: &Arc<LeafRemote>) {
    let mut next_worker = 0;
    let mut failures = 0;
    while let Some(url) = remote.next_attempt() {
        shared.events.debug(|| {
            format!(
                "Trying to connect as leafnode to remote server on {}",
                url_text(&url)
            )
        });
        match dial(remote, &url) {
            Ok((socket, address)) if !remote.is_stopped() => {
                failures = 0;
                let kind = match url.websocket {
                    true => ConnectionType::LeafWebSocket,
                    false => ConnectionType::Leaf,
                };
                let worker = next_worker % shared.worker_count();
                next_worker = worker + 1;
                let accepted = shared.add_connection(kind, socket, address, worker);
                let command = WorkerCommand::Solicited(Box::new(SolicitedConnection {
                    accepted,
                    remote: Arc::clone(remote),
                    url,
                }));
                shared.send(worker, command);
            }
            Ok(_) => return,
            Err(error) => {
                failures += 1;
                let text = format!(
                    "Error trying to connect as leafnode to remote server {} (attempt {failures}): {error}",
                    url_text(&url)
                );
                match failures % FAILURES_PER_LINE {
                    1 => shared.events.log(Level::Error, text),
                    _ => shared.events.debug(|| text),
                }
                remote.ended(
                    &format!("cannot connect to {}: {error}", url_text(&url)),
                    None,
                );
            }
        }
    }
}

/// Connects to the first address of a host that answers.
fn dial(remote: &LeafRemote, url: &LeafUrl) -> io::Result<(mio::net::TcpStream, SocketAddr)> {
    let timeout = Duration::from_millis(match remote.options.dial_timeout_ms {
        0 => DIAL_TIMEOUT_MS_DEFAULT,
        timeout_ms => timeout_ms,
    });
    let mut failure = io::ErrorKind::NotFound.into();
    let host = url.host.trim_matches(['[', ']']);
    for address in (host, url.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                socket.set_nonblocking(true)?;
                return Ok((mio::net::TcpStream::from_std(socket), address));
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}
