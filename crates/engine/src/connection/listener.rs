//! Accepts connections and gives each to a worker.
//!
//! When the process has no file descriptors left, accepting pauses and tries again later; the clients that are there go on.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use mio::net::TcpListener;
use mio::Token;
use socket2::{Domain, Protocol, Socket, Type};

use super::mailbox::{Letter, Newcomer};
use crate::engine::Shared;
use crate::error::EngineError;
use crate::events::Level;

pub const LISTENER_TOKEN: Token = Token(usize::MAX);

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;

/// Pause after a failed accept: doubles up to the longest.
const PAUSE_MS_MIN: u64 = 10;
const PAUSE_MS_MAX: u64 = 1_000;

/// Connections accepted before the worker looks after the ones it has: those must not wait for longer than about half a millisecond.
const ACCEPTS_PER_TURN_MAX: usize = 16;

pub struct Listener {
    socket: TcpListener,
    next_worker: usize,
    pause_ms: u64,
    paused_until_ms: Option<u64>,
}

impl Listener {
    pub fn bind(host: &str, port: u16) -> Result<Self, EngineError> {
        let failed = |cause| EngineError::Listen {
            address: format!("{host}:{port}"),
            cause,
        };
        let address = (host, port)
            .to_socket_addrs()
            .map_err(failed)?
            .next()
            .ok_or_else(|| failed(io::ErrorKind::AddrNotAvailable.into()))?;
        let socket = open_any(address).map_err(failed)?;
        Ok(Self {
            socket,
            next_worker: 0,
            pause_ms: PAUSE_MS_MIN,
            paused_until_ms: None,
        })
    }

    pub fn socket(&mut self) -> &mut TcpListener {
        &mut self.socket
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Whether accepting was paused and is to be tried again now.
    pub fn is_due(&self, now_ms: u64) -> bool {
        self.paused_until_ms
            .is_some_and(|until_ms| until_ms <= now_ms)
    }

    /// Milliseconds until a paused accept is tried again.
    pub fn retry_in_ms(&self, now_ms: u64) -> Option<u64> {
        self.paused_until_ms
            .map(|until_ms| until_ms.saturating_sub(now_ms))
    }

    /// Accepts what waits, and sends it to the workers in turn. Returns those of the worker whose listener it is: it needs no letter.
    pub fn accept_some(
        &mut self,
        shared: &Arc<Shared>,
        own_worker: usize,
        now_ms: u64,
    ) -> Vec<Newcomer> {
        let mut own = Vec::new();
        if self
            .paused_until_ms
            .is_some_and(|until_ms| now_ms < until_ms)
        {
            return own;
        }
        self.paused_until_ms = None;
        for _ in 0..ACCEPTS_PER_TURN_MAX {
            match self.socket.accept() {
                Ok((socket, address)) => {
                    self.pause_ms = PAUSE_MS_MIN;
                    let address = SocketAddr::new(address.ip().to_canonical(), address.port());
                    let newcomer = shared.add_connection(socket, address, self.next_worker);
                    if self.next_worker == own_worker {
                        own.push(newcomer);
                    } else {
                        shared.send(self.next_worker, Letter::Accepted(newcomer));
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
