//! The socket of one connection of the load generator: in the clear, with TLS, or with WebSocket.
//!
//! TLS uses the same unbuffered interface of rustls as the server does, so that a measurement shows the server and not the generator.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::unbuffered::{ConnectionState, EncodeError, UnbufferedStatus};
use rustls::{ClientConfig, RootCertStore};

use super::websocket_stream::WebSocketStream;

/// Encrypted bytes read at once.
const RECORDS_BYTES: usize = 64 * 1024;

/// Longest INFO that is waited for before TLS begins.
const INFO_BYTES_MAX: usize = 64 * 1024;

pub enum LoadStream {
    Plain(TcpStream),
    Secure(Box<SecureStream>),
    WebSocket(Box<WebSocketStream>),
}

impl LoadStream {
    /// Speaks TLS on a socket whose server says INFO first, and trusts the authorities of `ca_pem`.
    pub fn secure(mut socket: TcpStream, url: &str, ca_pem: &str) -> io::Result<Self> {
        skip_line(&mut socket)?;
        let mut stream = SecureStream {
            connection: connect(url, ca_pem).map_err(io::Error::other)?,
            socket,
            incoming: vec![0; RECORDS_BYTES],
            filled: 0,
            pending: Vec::new(),
            outgoing: OutgoingRecords::default(),
            closed: false,
        };
        stream.shake_hands()?;
        Ok(Self::Secure(Box::new(stream)))
    }

    pub fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.write_all(bytes),
            Self::Secure(stream) => stream.write_all(bytes),
            Self::WebSocket(stream) => stream.write_all(bytes),
        }
    }

    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Secure(stream) => stream.read(buffer),
            Self::WebSocket(stream) => stream.read(buffer),
        }
    }
}

/// Reads one line byte by byte, so that nothing after it is read.
fn skip_line(socket: &mut TcpStream) -> io::Result<()> {
    let mut byte = [0];
    for _ in 0..INFO_BYTES_MAX {
        socket.read_exact(&mut byte)?;
        if byte[0] == b'\n' {
            return Ok(());
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

fn connect(url: &str, ca_pem: &str) -> Result<UnbufferedClientConnection, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca_pem.as_bytes()) {
        let certificate = certificate.map_err(|_| "the certificate authority is not valid PEM: use a file that begins with -----BEGIN CERTIFICATE-----".to_owned())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let host = url.rsplit_once(':').map_or(url, |(host, _)| host);
    let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned())
        .map_err(|error| error.to_string())?;
    UnbufferedClientConnection::new(Arc::new(config), name).map_err(|error| error.to_string())
}

/// Invariant: between two calls `incoming[..filled]` holds no whole record.
pub struct SecureStream {
    connection: UnbufferedClientConnection,
    socket: TcpStream,
    incoming: Vec<u8>,
    filled: usize,
    /// Plaintext that did not fit where it was asked for.
    pending: Vec<u8>,
    outgoing: OutgoingRecords,
    closed: bool,
}

/// Records ready for the wire. The buffer keeps its length, so that it is not filled with zeros for every send.
#[derive(Default)]
struct OutgoingRecords {
    bytes: Vec<u8>,
    end: usize,
}

impl OutgoingRecords {
    fn room(&mut self, bytes: usize) -> &mut [u8] {
        if self.bytes.len() < self.end + bytes {
            self.bytes.resize(self.end + bytes, 0);
        }
        &mut self.bytes[self.end..]
    }
}

impl SecureStream {
    fn shake_hands(&mut self) -> io::Result<()> {
        while self.connection.is_handshaking() {
            self.step(&mut [], &[])?;
            self.flush()?;
            if self.connection.is_handshaking() {
                self.fill()?;
            }
        }
        self.step(&mut [], &[])?;
        self.flush()
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.step(&mut [], bytes)?;
        self.flush()
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.pending.is_empty() {
            let count = self.pending.len().min(buffer.len());
            buffer[..count].copy_from_slice(&self.pending[..count]);
            self.pending.drain(..count);
            return Ok(count);
        }
        loop {
            if self.closed {
                return Ok(0);
            }
            self.fill()?;
            let count = self.step(buffer, &[])?;
            self.flush()?;
            if count > 0 {
                return Ok(count);
            }
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        let count = self.socket.read(&mut self.incoming[self.filled..])?;
        self.filled += count;
        if count == 0 {
            self.closed = true;
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let end = std::mem::take(&mut self.outgoing.end);
        self.socket.write_all(&self.outgoing.bytes[..end])
    }

    /// Decrypts what came, into `buffer` and `pending`; then encrypts `bytes`, if the handshake is over. Says how much of `buffer` is
    /// filled.
    fn step(&mut self, buffer: &mut [u8], bytes: &[u8]) -> io::Result<usize> {
        let mut start = 0;
        let mut count = 0;
        loop {
            let UnbufferedStatus { discard, state } = self
                .connection
                .process_tls_records(&mut self.incoming[start..self.filled]);
            let mut more = true;
            match state.map_err(io::Error::other)? {
                ConnectionState::ReadTraffic(mut traffic) => {
                    while let Some(record) = traffic.next_record() {
                        let payload = record.map_err(io::Error::other)?.payload;
                        let fitting = payload.len().min(buffer.len() - count);
                        buffer[count..][..fitting].copy_from_slice(&payload[..fitting]);
                        self.pending.extend_from_slice(&payload[fitting..]);
                        count += fitting;
                    }
                }
                ConnectionState::EncodeTlsData(mut data) => {
                    if let Err(EncodeError::InsufficientSize(needed)) = data.encode(&mut []) {
                        let room = self.outgoing.room(needed.required_size);
                        self.outgoing.end += data.encode(room).map_err(io::Error::other)?;
                    }
                }
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::WriteTraffic(mut traffic) => {
                    more = false;
                    if !bytes.is_empty() {
                        // Enough for the bytes and for what their records add; if it is not, rustls says so.
                        let room = self.outgoing.room(bytes.len() + bytes.len() / 256 + 1024);
                        self.outgoing.end +=
                            traffic.encrypt(bytes, room).map_err(io::Error::other)?;
                    }
                }
                ConnectionState::PeerClosed | ConnectionState::Closed => {
                    self.closed = true;
                    more = false;
                }
                _ => more = false,
            }
            start += discard;
            if !more {
                break;
            }
        }
        self.incoming.copy_within(start..self.filled, 0);
        self.filled -= start;
        Ok(count)
    }
}
