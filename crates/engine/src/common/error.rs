//! Everything the engine can refuse or fail at, as a closed list.

use std::fmt;
use std::io;

#[derive(Debug)]
pub enum EngineError {
    /// Options that contradict each other or are not a JSON object of options. Is returned when an engine is made.
    Options(String),
    /// The address to listen on is taken, or not ours. Is returned when an engine is made.
    Listen { address: String, cause: io::Error },
    /// The operating system refused a poll, a thread or random bytes. Is returned when an engine is made or started.
    System {
        what: &'static str,
        cause: io::Error,
    },
    /// The disk or the store refused; says why and what to do. Is returned by everything that changes a stream.
    Store(String),
    /// There is no such stream. Is returned by everything that names one.
    UnknownStream { account: String, name: String },
    /// There is no such consumer. Is returned by everything that names one.
    UnknownConsumer { stream: String, name: String },
    /// A server said no, in these words. Is returned by bulk readers and writers.
    Refused(String),
    /// A server sent what is not NATS, or not an answer to what was asked. Is returned by bulk readers and writers.
    Protocol(String),
    /// What was being read went away, or broke off too often. Is returned by bulk readers.
    Lost(String),
    /// A payload or a column is not what it is said to be. Is returned by bulk readers and writers.
    Data(String),
    /// A load could not be run. Is returned by the load generator.
    Load(String),
}

impl EngineError {
    /// A stable name for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Options(_) => "options",
            Self::Listen { .. } => "listen",
            Self::System { .. } => "system",
            Self::Store(_) => "store",
            Self::UnknownStream { .. } => "unknown_stream",
            Self::UnknownConsumer { .. } => "unknown_consumer",
            Self::Refused(_) => "refused",
            Self::Protocol(_) => "protocol",
            Self::Lost(_) => "lost",
            Self::Data(_) => "data",
            Self::Load(_) => "load",
        }
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Options(reason) => write!(formatter, "engine options: {reason}"),
            Self::Listen { address, cause } => write!(formatter, "listen tcp {address}: {cause}"),
            Self::System { what, cause } => write!(formatter, "{what}: {cause}"),
            Self::Store(reason)
            | Self::Refused(reason)
            | Self::Protocol(reason)
            | Self::Lost(reason)
            | Self::Data(reason)
            | Self::Load(reason) => write!(formatter, "{reason}"),
            Self::UnknownStream { account, name } => {
                write!(formatter, "account {account:?} has no stream {name:?}")
            }
            Self::UnknownConsumer { stream, name } => {
                write!(formatter, "stream {stream:?} has no consumer {name:?}")
            }
        }
    }
}

impl std::error::Error for EngineError {}
