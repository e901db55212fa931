//! Accepts connections and gives each to a worker.
//!
//! When as many clients are there as descriptors are meant for, it accepts no more until some have gone: those that wait do so in the system's queue. Stores and
//! everything else keep theirs (`descriptors`). When the process has none left all the same, accepting pauses and tries again later; the clients that are there go on.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use mio::net::TcpListener;
use mio::Token;
use socket2::{Domain, Protocol, Socket, Type};

use crate::common::descriptors::Descriptors;
use crate::common::error::EngineError;
use crate::common::events::Level;
use crate::config::connection_type::ConnectionType;
use crate::routing::clients::mailbox::{AcceptedConnection, WorkerCommand};
use crate::routing::shared::Shared;

pub const LISTENER_TOKEN: Token = Token(usize::MAX);
pub const WEBSOCKET_LISTENER_TOKEN: Token = Token(usize::MAX - 2);
pub const LEAF_LISTENER_TOKEN: Token = Token(usize::MAX - 3);

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;

/// Pause after a failed accept: doubles up to the longest.
const PAUSE_MS_MIN: u64 = 10;
const PAUSE_MS_MAX: u64 = 1_000;

/// How long it takes until it is seen that clients have gone.
const FULL_PAUSE_MS: u64 = 20;

/// Connections accepted before the worker serves those it has, which must not wait for longer than about half a
/// millisecond.
const ACCEPTS_PER_TURN_MAX: usize = 16;

pub struct Listener {
    socket: TcpListener,
    /// How those connect that come here.
    connection_type: ConnectionType,
    next_worker: usize,
    pause_ms: u64,
    paused_until_ms: Option<u64>,
    /// Clients that may be there at a time.
    clients_max: usize,
    /// It was said that there are as many, since there were fewer.
    is_full: bool,
}

impl Listener {
    /// Listens on a port, or takes over a socket that does so already: clients that wait there are served.
    pub fn bind(
        connection_type: ConnectionType,
        host: &str,
        port: u16,
        listening: Option<OwnedFd>,
    ) -> Result<Self, EngineError> {
        let failed = |cause| EngineError::Listen {
            address: format!("{host}:{port}"),
            cause,
        };
        if let Some(listening) = listening {
            return Self::take_over(connection_type, listening.into(), port).map_err(failed);
        }
        let address = (host, port)
            .to_socket_addrs()
            .map_err(failed)?
            .next()
            .ok_or_else(|| failed(io::ErrorKind::AddrNotAvailable.into()))?;
        let socket = open_any(address).map_err(failed)?;
        Ok(Self::new(connection_type, socket))
    }

    fn take_over(connection_type: ConnectionType, socket: Socket, port: u16) -> io::Result<Self> {
        let address = socket.local_addr()?.as_socket();
        if address.is_none_or(|address| address.port() != port) {
            let text = "the socket that was handed over listens elsewhere";
            return Err(io::Error::other(text));
        }
        socket.set_tcp_nodelay(true)?;
        // It may have been made with a shorter queue.
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        let socket = TcpListener::from_std(socket.into());
        Ok(Self::new(connection_type, socket))
    }

    fn new(connection_type: ConnectionType, socket: TcpListener) -> Self {
        Self {
            socket,
            connection_type,
            next_worker: 0,
            pause_ms: PAUSE_MS_MIN,
            paused_until_ms: None,
            clients_max: Descriptors::of_process().clients_max,
            is_full: false,
        }
    }

    /// Whether other servers connect here.
    pub fn is_for_leafs(&self) -> bool {
        self.connection_type.is_leaf()
    }

    pub fn socket(&mut self) -> &mut TcpListener {
        &mut self.socket
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Whether accepting was paused and must be tried again now.
    pub fn is_due(&self, now_ms: u64) -> bool {
        self.paused_until_ms
            .is_some_and(|until_ms| until_ms <= now_ms)
    }

    /// Milliseconds until a paused accept is tried again.
    pub fn retry_in_ms(&self, now_ms: u64) -> Option<u64> {
        self.paused_until_ms
            .map(|until_ms| until_ms.saturating_sub(now_ms))
    }

    /// Accepts what waits, and sends it to the workers in turn. Returns those of the worker whose listener it is: it needs no command.
    pub fn accept_some(
        &mut self,
        shared: &Arc<Shared>,
        own_worker: usize,
        now_ms: u64,
    ) -> Vec<AcceptedConnection> {
        let mut own = Vec::new();
        if self
            .paused_until_ms
            .is_some_and(|until_ms| now_ms < until_ms)
        {
            return own;
        }
        self.paused_until_ms = None;
        for _ in 0..ACCEPTS_PER_TURN_MAX {
            if shared.connection_count() >= self.clients_max {
                self.wait_for_room(shared, now_ms);
                return own;
            }
            match self.socket.accept() {
                Ok((socket, address)) => {
                    self.pause_ms = PAUSE_MS_MIN;
                    self.is_full = false;
                    let address = SocketAddr::new(address.ip().to_canonical(), address.port());
                    let accepted = shared.add_connection(
                        self.connection_type,
                        socket,
                        address,
                        self.next_worker,
                    );
                    if self.next_worker == own_worker {
                        own.push(accepted);
                    } else {
                        shared.send(self.next_worker, WorkerCommand::Accepted(accepted));
                    }
                    self.next_worker = (self.next_worker + 1) % shared.worker_count();
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return own,
                    io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => {}
                    _ => {
                        self.pause(shared, now_ms, &error);
                        return own;
                    }
                },
            }
        }
        // More wait: come back in the next turn, since the poll reports only changes.
        self.paused_until_ms = Some(now_ms);
        own
    }

    fn wait_for_room(&mut self, shared: &Shared, now_ms: u64) {
        self.paused_until_ms = Some(now_ms + FULL_PAUSE_MS);
        if !self.is_full {
            self.is_full = true;
            let limit = Descriptors::of_process().limit;
            shared.events.log(
                Level::Error,
                format!(
                    "{} connections are open, as many as the limit of {limit} open files leaves for clients: new ones wait until some have closed; raise the limit if this lasts",
                    self.clients_max
                ),
            );
        }
    }

    fn pause(&mut self, shared: &Shared, now_ms: u64, error: &io::Error) {
        shared.events.log(
            Level::Error,
            format!(
                "Temporary Client Accept Error ({error}), sleeping {}ms; raise the limit of open files if this lasts",
                self.pause_ms
            ),
        );
        self.paused_until_ms = Some(now_ms + self.pause_ms);
        self.pause_ms = (self.pause_ms * 2).min(PAUSE_MS_MAX);
    }
}

/// The wildcard address means both kinds of addresses, where the machine has both.
fn open_any(address: SocketAddr) -> io::Result<TcpListener> {
    if address.ip() == IpAddr::V4(Ipv4Addr::UNSPECIFIED) {
        let both = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), address.port());
        match open(both) {
            // A port that is taken is taken; only a machine without the newer addresses falls back.
            Err(error) if error.kind() != io::ErrorKind::AddrInUse => {}
            result => return result,
        }
    }
    open(address)
}

fn open(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_address(true)?;
    // A delivery must not wait for the next one. Accepted sockets have it from here.
    socket.set_tcp_nodelay(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(TcpListener::from_std(socket.into()))
}
