//! How a client, or another server, connects.

/// How a client, or another server, connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionType {
    Standard,
    WebSocket,
    /// Another server, as a leaf node or as the hub of this one.
    Leaf,
    LeafWebSocket,
    /// A part of this server that speaks to it as a client does.
    Internal,
}

impl ConnectionType {
    /// The word of monitoring for it.
    pub fn client_type(self) -> &'static str {
        match self {
            Self::Standard | Self::Internal => "nats",
            Self::WebSocket => "websocket",
            Self::Leaf | Self::LeafWebSocket => "leafnode",
        }
    }

    /// The word of users' permissions for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Standard => "STANDARD",
            Self::WebSocket => "WEBSOCKET",
            Self::Leaf => "LEAFNODE",
            Self::LeafWebSocket => "LEAFNODE_WS",
            Self::Internal => "INPROCESS",
        }
    }

    /// Whether the other side is a server.
    pub fn is_leaf(self) -> bool {
        matches!(self, Self::Leaf | Self::LeafWebSocket)
    }
}
