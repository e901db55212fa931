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
    MaximumPayloadExceeded,
    MaximumControlLineExceeded,
    ServerShutdown,
    MessageHeaderViolation,
    NoRespondersRequiresHeaders,
    Kicked,
    TlsHandshakeFailure,
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
            Self::MaximumPayloadExceeded => "Maximum Message Payload Exceeded",
            Self::MaximumControlLineExceeded => "Maximum Control Line Exceeded",
            Self::ServerShutdown => "Server Shutdown",
            Self::MessageHeaderViolation => "Message Header Violation",
            Self::Kicked => "Kicked",
            Self::NoRespondersRequiresHeaders => "No Responders Requires Headers",
            Self::TlsHandshakeFailure => "TLS Handshake Failure",
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
