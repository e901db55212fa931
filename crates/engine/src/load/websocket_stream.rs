//! A connection of the load generator that speaks WebSocket: every write is one masked message.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use crate::transport::websocket::frames::{apply_mask, MessageHeader, Opcode};
use crate::transport::websocket::WebSocketFrameReader;

/// Longest answer to an upgrade that is waited for.
const ANSWER_BYTES_MAX: usize = 16 * 1024;

/// Nothing is compressed, so that no message has to be held.
const MESSAGE_BYTES_MAX: usize = 0;

/// The server sees each byte through it; what it is does not matter.
const MASK: [u8; 4] = [0x3c, 0xa5, 0x69, 0x0f];

const MASK_BIT: u8 = 0x80;

pub struct WebSocketStream {
    socket: TcpStream,
    frame_reader: WebSocketFrameReader,
    outgoing: Vec<u8>,
}

impl WebSocketStream {
    pub fn upgrade(mut socket: TcpStream, url: &str) -> io::Result<Self> {
        let request = format!(
            "GET / HTTP/1.1\r\nHost: {url}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: amV0bGFrZSBiZW5jaG1hcg==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        );
        socket.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        let mut byte = [0];
        // One by one, so that nothing of the first message is read.
        while !answer.ends_with(b"\r\n\r\n") {
            socket.read_exact(&mut byte)?;
            answer.push(byte[0]);
            if answer.len() > ANSWER_BYTES_MAX {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        if !answer.starts_with(b"HTTP/1.1 101 ") {
            let line = answer.split(|&byte| byte == b'\r').next();
            let text = String::from_utf8_lossy(line.unwrap_or_default());
            return Err(io::Error::other(format!("the upgrade was refused: {text}")));
        }
        Ok(Self {
            socket,
            frame_reader: WebSocketFrameReader::new(true, false),
            outgoing: Vec::new(),
        })
    }

    pub fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.outgoing.clear();
        let header = MessageHeader::new(Opcode::Binary, false, bytes.len());
        self.outgoing.extend_from_slice(header.as_bytes());
        self.outgoing[1] |= MASK_BIT;
        self.outgoing.extend_from_slice(&MASK);
        let start = self.outgoing.len();
        self.outgoing.extend_from_slice(bytes);
        apply_mask(&mut self.outgoing[start..], MASK, 0);
        self.socket.write_all(&self.outgoing)
    }

    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.socket.read(buffer)?;
            if count == 0 {
                return Ok(0);
            }
            let decoded = self
                .frame_reader
                .decode(&mut buffer[..count], MESSAGE_BYTES_MAX);
            if let Some(end) = decoded.end {
                return Err(io::Error::other(format!("the server ended: {end:?}")));
            }
            if decoded.count > 0 {
                return Ok(decoded.count);
            }
        }
    }
}
