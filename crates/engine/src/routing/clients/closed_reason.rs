//! Why a connection ended, in the words monitoring uses.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClosedReason {
    ClientClosed,
    AuthenticationTimeout,
    AuthenticationFailure,
    SlowConsumerPendingBytes,
    SlowConsumerWriteDeadline,
    WriteError,
    ReadError,
    ParseError,
    StaleConnection,
    ProtocolViolation,
    BadClientProtocolVersion,
    MaximumConnectionsExceeded,
    MaximumAccountConnectionsExceeded,
    MaximumSubscriptionsExceeded,
    MaximumPayloadExceeded,
    MaximumControlLineExceeded,
    ServerShutdown,
    MessageHeaderViolation,
    NoRespondersRequiresHeaders,
    Kicked,
    TlsHandshakeFailure,
    AuthenticationExpired,
    CredentialsRevoked,
    WrongPort,
    DuplicateLeaf,
    ClusterNamesIdentical,
    MinimumVersionRequired,
    MissingAccount,
}

impl ClosedReason {
    pub fn text(self) -> &'static str {
        match self {
            Self::ClientClosed => "Client Closed",
            Self::AuthenticationTimeout => "Authentication Timeout",
            Self::AuthenticationFailure => "Authentication Failure",
            Self::SlowConsumerPendingBytes => "Slow Consumer (Pending Bytes)",
            Self::SlowConsumerWriteDeadline => "Slow Consumer (Write Deadline)",
            Self::WriteError => "Write Error",
            Self::ReadError => "Read Error",
            Self::ParseError => "Parse Error",
            Self::StaleConnection => "Stale Connection",
            Self::ProtocolViolation => "Protocol Violation",
            Self::BadClientProtocolVersion => "Bad Client Protocol Version",
            Self::MaximumConnectionsExceeded => "Maximum Connections Exceeded",
            Self::MaximumAccountConnectionsExceeded => "Maximum Account Connections Exceeded",
            Self::MaximumSubscriptionsExceeded => "Maximum Subscriptions Exceeded",
            Self::MaximumPayloadExceeded => "Maximum Message Payload Exceeded",
            Self::MaximumControlLineExceeded => "Maximum Control Line Exceeded",
            Self::ServerShutdown => "Server Shutdown",
            Self::MessageHeaderViolation => "Message Header Violation",
            Self::Kicked => "Kicked",
            Self::NoRespondersRequiresHeaders => "No Responders Requires Headers",
            Self::TlsHandshakeFailure => "TLS Handshake Failure",
            Self::AuthenticationExpired => "Authentication Expired",
            Self::CredentialsRevoked => "Credentials Revoked",
            Self::WrongPort => "Incorrect Port",
            Self::DuplicateLeaf => "Duplicate Remote LeafNode Connection",
            Self::ClusterNamesIdentical => "Cluster Names Identical",
            Self::MinimumVersionRequired => "Minimum Version Required",
            Self::MissingAccount => "Missing Account",
        }
    }

    /// What a close frame of WebSocket says.
    pub fn websocket_status(self) -> u16 {
        match self {
            Self::ClientClosed => 1000,
            Self::WriteError | Self::ReadError | Self::StaleConnection | Self::ServerShutdown => {
                1001
            }
            Self::ParseError | Self::ProtocolViolation | Self::BadClientProtocolVersion => 1002,
            Self::AuthenticationTimeout
            | Self::AuthenticationFailure
            | Self::AuthenticationExpired
            | Self::CredentialsRevoked
            | Self::SlowConsumerPendingBytes
            | Self::SlowConsumerWriteDeadline
            | Self::MaximumConnectionsExceeded
            | Self::MaximumAccountConnectionsExceeded
            | Self::MaximumSubscriptionsExceeded
            | Self::MaximumControlLineExceeded => 1008,
            Self::MaximumPayloadExceeded => 1009,
            Self::MessageHeaderViolation
            | Self::NoRespondersRequiresHeaders
            | Self::Kicked
            | Self::WrongPort
            | Self::DuplicateLeaf
            | Self::ClusterNamesIdentical
            | Self::MinimumVersionRequired
            | Self::MissingAccount
            | Self::TlsHandshakeFailure => 1011,
        }
    }

    /// Whether the client was cut off for not reading: then nothing is sent any more, not even what is pending.
    pub fn is_slow_consumer(self) -> bool {
        matches!(
            self,
            Self::SlowConsumerPendingBytes | Self::SlowConsumerWriteDeadline
        )
    }
}
