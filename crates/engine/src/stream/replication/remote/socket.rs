//! A blocking socket to another server, in the clear or with TLS.
//!
//! Invariant: once TLS is on, nothing that came before it is in use.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::trouble::Trouble;
use crate::transport::tls::client;

/// How long a connection, and then its handshake, may take.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A server that reads nothing for so long is taken for dead.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

pub enum Socket {
    Plain(TcpStream),
    Secure(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Socket {
    /// Connects to the first address of `host:port` that takes it.
    pub fn connect(address: &str) -> Result<Self, Trouble> {
        let unreachable = |error: io::Error| {
            Trouble::Unreachable(format!("cannot connect to {address}: {error}"))
        };
        let mut failure = io::ErrorKind::NotFound.into();
        for resolved in address.to_socket_addrs().map_err(unreachable)? {
            match TcpStream::connect_timeout(&resolved, CONNECT_TIMEOUT) {
                Ok(socket) => {
                    socket
                        .set_nodelay(true)
                        .and_then(|()| socket.set_write_timeout(Some(WRITE_TIMEOUT)))
                        .map_err(unreachable)?;
                    return Ok(Self::Plain(socket));
                }
                Err(error) => failure = error,
            }
        }
        Err(unreachable(failure))
    }

    /// A socket that is connected already.
    pub fn own(socket: TcpStream) -> io::Result<Self> {
        socket.set_write_timeout(Some(WRITE_TIMEOUT))?;
        Ok(Self::Plain(socket))
    }

    /// Speaks TLS from now on.
    pub fn secure(self, address: &str, config: &Arc<ClientConfig>) -> Result<Self, Trouble> {
        let Self::Plain(mut socket) = self else {
            return Ok(self);
        };
        let failed = |reason: String| Trouble::Unreachable(format!("TLS with {address}: {reason}"));
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let name = client::server_name(host).map_err(failed)?;
        let mut connection = ClientConnection::new(Arc::clone(config), name)
            .map_err(|error| failed(error.to_string()))?;
        socket.set_read_timeout(Some(CONNECT_TIMEOUT))?;
        while connection.is_handshaking() {
            connection
                .complete_io(&mut socket)
                .map_err(|error| failed(error.to_string()))?;
        }
        Ok(Self::Secure(Box::new(StreamOwned::new(connection, socket))))
    }

    pub fn set_read_timeout(&self, timeout: Duration) -> io::Result<()> {
        let socket = match self {
            Self::Plain(socket) => socket,
            Self::Secure(stream) => &stream.sock,
        };
        socket.set_read_timeout(Some(timeout))
    }

    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Secure(stream) => stream.read(buffer),
        }
    }

    pub fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.write_all(bytes),
            Self::Secure(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }
}
