//! One connection to another server: bytes as replies, and requests with their answers.
//!
//! Invariant: the buffer never holds more than `FRAME_BYTES_MAX`, whatever the server says about sizes.

use std::io;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::login::connect_line;
use super::remotes::Remote;
use super::socket::{Socket, CONNECT_TIMEOUT};
use super::trouble::Trouble;
use crate::wire::reply::{parse_reply, Reply};

/// The longest line with its message: more than any server lets a client send.
const FRAME_BYTES_MAX: usize = 68 * 1024 * 1024;

/// Bytes read at once.
const READ_BYTES: usize = 128 * 1024;

/// A buffer that had to grow beyond this is given back when it is empty.
const KEPT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How long an answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// The subscription for answers.
const ANSWERS: &[u8] = b"1";

/// What a server says about itself, as far as it matters here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RemoteInformation {
    pub nonce: String,
    pub tls_required: bool,
    pub max_payload: usize,
    /// It is about to leave.
    #[serde(rename = "ldm")]
    pub is_leaving: bool,
}

pub struct RemoteConnection {
    socket: Socket,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Of what `next_reply` returned last; gone with the next call.
    shown: usize,
    /// What its inboxes begin with.
    inbox: String,
    questions: u64,
    pub information: RemoteInformation,
}

impl RemoteConnection {
    /// Connects, and says who it is; the server has agreed when this returns.
    pub fn open(remote: &Remote, address: &str, name: &str) -> Result<Self, Trouble> {
        let mut socket = match &remote.linked {
            Some(connect) => Socket::own(connect()?)?,
            None => Socket::connect(address)?,
        };
        let is_secure = remote.tls.is_some();
        let is_first = remote
            .options
            .tls
            .as_ref()
            .is_some_and(|tls| tls.handshake_first);
        if let Some(config) = remote.tls.as_ref().filter(|_| is_first) {
            socket = socket.secure(address, config)?;
        }
        let nonce = getrandom::u64().map_err(|error| Trouble::from(io::Error::from(error)))?;
        let mut connection = Self {
            socket,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            shown: 0,
            inbox: format!("_INBOX.{nonce:016x}"),
            questions: 0,
            information: RemoteInformation::default(),
        };
        connection.read_information()?;
        if let Some(config) = remote.tls.as_ref().filter(|_| !is_first) {
            if connection.start + connection.shown < connection.end {
                return Err(Trouble::NotUnderstood("something came before TLS"));
            }
            connection.socket = connection.socket.secure(address, config)?;
        } else if connection.information.tls_required && !is_secure {
            let text = "it wants TLS: give the remote a block tls with a ca_file";
            return Err(Trouble::Refused(text.to_owned()));
        }
        let mut line = connect_line(remote, name, &connection.information.nonce, is_secure);
        line.extend_from_slice(format!("SUB {}.* 1\r\n", connection.inbox).as_bytes());
        connection.send(&line)?;
        connection.wait_until_read()?;
        Ok(connection)
    }

    fn read_information(&mut self) -> Result<(), Trouble> {
        let deadline = Instant::now() + CONNECT_TIMEOUT;
        loop {
            match self.next_reply()? {
                Some(Reply::Information(json)) => {
                    self.information = read_information(json)?;
                    return Ok(());
                }
                Some(Reply::Error(text)) => return Err(Trouble::error_line(text)),
                Some(_) => return Err(Trouble::NotUnderstood("it does not begin with INFO")),
                None => self.receive_by(deadline)?,
            }
        }
    }

    /// Waits until the server has read everything that was sent.
    pub fn wait_until_read(&mut self) -> Result<(), Trouble> {
        self.send(b"PING\r\n")?;
        let deadline = Instant::now() + CONNECT_TIMEOUT;
        loop {
            match self.next_reply()? {
                Some(Reply::Pong) => return Ok(()),
                Some(Reply::Error(text)) => return Err(Trouble::error_line(text)),
                Some(Reply::Ping) => self.send(b"PONG\r\n")?,
                Some(_) => {}
                None => self.receive_by(deadline)?,
            }
        }
    }

    /// A subject for answers that nobody else has.
    pub fn new_inbox(&mut self, kind: &str) -> String {
        self.questions += 1;
        format!("{}.{kind}{}", self.inbox, self.questions)
    }

    pub fn send(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        Ok(self.socket.write_all(bytes)?)
    }

    /// Asks, and returns what is answered. Whatever else comes meanwhile is of no interest.
    pub fn request(&mut self, subject: &str, body: &[u8]) -> Result<Vec<u8>, Trouble> {
        let inbox = self.new_inbox("");
        let mut line = format!("PUB {subject} {inbox} {}\r\n", body.len()).into_bytes();
        line.extend_from_slice(body);
        line.extend_from_slice(b"\r\n");
        self.send(&line)?;
        let deadline = Instant::now() + ANSWER_TIMEOUT;
        loop {
            match self.next_reply()? {
                Some(Reply::Message {
                    subject: to,
                    sid: ANSWERS,
                    header_len,
                    body,
                    ..
                }) if to == inbox.as_bytes() => {
                    if header_len > 0 && header_len == body.len() {
                        return Err(Trouble::unanswered(subject));
                    }
                    return Ok(body[header_len..].to_vec());
                }
                Some(Reply::Ping) => self.send(b"PONG\r\n")?,
                Some(Reply::Error(text)) => return Err(Trouble::error_line(text)),
                Some(_) => {}
                None => self.receive_by(deadline)?,
            }
        }
    }

    /// The next reply that has come as a whole; none if more bytes are needed.
    pub fn next_reply(&mut self) -> Result<Option<Reply<'_>>, Trouble> {
        self.start += std::mem::take(&mut self.shown);
        let parsed = parse_reply(&self.buffer[self.start..self.end])
            .map_err(|_| Trouble::NotUnderstood("a line makes no sense"))?;
        Ok(parsed.map(|(reply, consumed)| {
            self.shown = consumed;
            reply
        }))
    }

    /// Reads once, and waits no longer than that; false if nothing came.
    pub fn receive(&mut self, timeout: Duration) -> Result<bool, Trouble> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == 0 && self.buffer.len() > KEPT_BYTES_MAX {
            self.buffer = Vec::new();
        }
        if self.buffer.len() < self.end + READ_BYTES {
            if self.end + READ_BYTES > FRAME_BYTES_MAX {
                return Err(Trouble::NotUnderstood("a message is too long"));
            }
            let size = (self.end * 2).clamp(self.end + READ_BYTES, FRAME_BYTES_MAX);
            self.buffer.resize(size, 0);
        }
        self.socket.set_read_timeout(timeout)?;
        match self.socket.read(&mut self.buffer[self.end..]) {
            Ok(0) => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            Ok(count) => {
                self.end += count;
                Ok(true)
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock
                | io::ErrorKind::TimedOut
                | io::ErrorKind::Interrupted => Ok(false),
                _ => Err(error.into()),
            },
        }
    }

    fn receive_by(&mut self, deadline: Instant) -> Result<(), Trouble> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || !self.receive(left)? && Instant::now() >= deadline {
            return Err(io::Error::from(io::ErrorKind::TimedOut).into());
        }
        Ok(())
    }
}

/// Reads what follows `INFO `.
pub fn read_information(json: &[u8]) -> Result<RemoteInformation, Trouble> {
    serde_json::from_slice(json).map_err(|_| Trouble::NotUnderstood("its INFO is not valid JSON"))
}
