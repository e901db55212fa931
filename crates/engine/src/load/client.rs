//! One connection of the load generator: a blocking socket and a read buffer.

use std::io;
use std::net::TcpStream;
use std::time::Duration;

use super::plan::LoadPlan;
use super::stream::LoadStream;
use super::websocket_stream::WebSocketStream;
use crate::common::error::EngineError;
use crate::wire::reply::{parse_reply, Reply};

const READ_BUFFER_BYTES: usize = 256 * 1024;

/// A server that is silent for this long is taken for dead.
const SILENCE_MAX: Duration = Duration::from_secs(20);

pub struct Client {
    stream: LoadStream,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> EngineError {
    EngineError::Load(format!("{what}: {error}"))
}

impl Client {
    pub fn connect(plan: &LoadPlan) -> Result<Self, EngineError> {
        let socket = TcpStream::connect(&plan.url)
            .map_err(|error| failed(&format!("cannot connect to {}", plan.url), &error))?;
        socket
            .set_nodelay(true)
            .and_then(|()| socket.set_read_timeout(Some(SILENCE_MAX)))
            .and_then(|()| socket.set_write_timeout(Some(SILENCE_MAX)))
            .map_err(|error| failed("socket options", &error))?;
        let stream = match &plan.tls_ca_pem {
            None if plan.websocket => WebSocketStream::upgrade(socket, &plan.url)
                .map(|stream| LoadStream::WebSocket(Box::new(stream)))
                .map_err(|error| failed("WebSocket", &error))?,
            None => LoadStream::Plain(socket),
            Some(ca_pem) => LoadStream::secure(socket, &plan.url, ca_pem)
                .map_err(|error| failed("TLS", &error))?,
        };
        let mut client = Self {
            stream,
            buffer: vec![0; READ_BUFFER_BYTES + plan.payload_bytes],
            start: 0,
            end: 0,
        };
        let mut connect = serde_json::json!({
            "verbose": false, "pedantic": false, "protocol": 1, "headers": true, "no_responders": true,
            "name": "jetlake bench", "lang": "rust", "version": env!("CARGO_PKG_VERSION"),
        });
        for (key, value) in [
            ("user", &plan.user),
            ("pass", &plan.password),
            ("auth_token", &plan.token),
        ] {
            if let Some(value) = value {
                connect[key] = serde_json::Value::from(value.as_str());
            }
        }
        client.send(format!("CONNECT {connect}\r\n").as_bytes())?;
        client.synchronise()?;
        Ok(client)
    }

    pub fn send(&mut self, bytes: &[u8]) -> Result<(), EngineError> {
        self.stream
            .write_all(bytes)
            .map_err(|error| failed("the server stopped reading", &error))
    }

    /// Waits until the server has seen everything that was sent.
    pub fn synchronise(&mut self) -> Result<(), EngineError> {
        self.send(b"PING\r\n")?;
        let mut answered = false;
        while !answered {
            self.read(|_| {}, |reply| answered |= matches!(reply, Reply::Pong))?;
        }
        Ok(())
    }

    /// Reads once and calls `message` with each body, `other` with everything else. Pings are answered.
    pub fn read(
        &mut self,
        mut message: impl FnMut(Delivered<'_>),
        mut other: impl FnMut(&Reply<'_>),
    ) -> Result<(), EngineError> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let count = match self.stream.read(&mut self.buffer[self.end..]) {
            Ok(0) => {
                return Err(EngineError::Load(
                    "the server closed the connection".to_owned(),
                ))
            }
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(failed("the server fell silent", &error)),
        };
        self.end += count;
        let mut pings = 0;
        loop {
            let parsed = parse_reply(&self.buffer[self.start..self.end]).map_err(|_| {
                EngineError::Load("the server does not speak the NATS protocol".to_owned())
            })?;
            let Some((reply, consumed)) = parsed else {
                break;
            };
            match &reply {
                Reply::Message {
                    subject,
                    reply,
                    body,
                    ..
                } => message(Delivered {
                    subject,
                    reply: *reply,
                    body,
                }),
                Reply::Error(text) => {
                    return Err(failed("the server refused", &String::from_utf8_lossy(text)));
                }
                Reply::Ping => pings += 1,
                _ => other(&reply),
            }
            self.start += consumed;
        }
        for _ in 0..pings {
            self.send(b"PONG\r\n")?;
        }
        Ok(())
    }
}

/// A message as a subscriber of the load generator sees it.
pub struct Delivered<'a> {
    pub subject: &'a [u8],
    pub reply: Option<&'a [u8]>,
    /// With its headers, where it has some.
    pub body: &'a [u8],
}
