//! How a client connects.

/// How a client connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionType {
    Standard,
    WebSocket,
}

impl ConnectionType {
    /// The word of monitoring for it.
    pub fn client_type(self) -> &'static str {
        match self {
            Self::Standard => "nats",
            Self::WebSocket => "websocket",
        }
    }

    /// The word of users' permissions for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Standard => "STANDARD",
            Self::WebSocket => "WEBSOCKET",
        }
    }
}
