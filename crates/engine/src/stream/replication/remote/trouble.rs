//! Why a stream of another server is not being read, in words for reports about the stream that copies it.
//!
//! No text of it holds a password, a token or a key: it is part of answers of the API.

use std::fmt;
use std::io;

/// Longest text of another server that is repeated.
const TEXT_BYTES_MAX: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// No connection, or it broke.
    Unreachable(String),
    /// The server is there and says no.
    Refused(String),
    /// What came is not the protocol.
    NotUnderstood(&'static str),
    /// An answer of the API.
    Api {
        code: u16,
        error_code: u16,
        description: String,
    },
    /// The consumer is gone, or a message of it: another one is made.
    Lost(String),
    /// The receiver of the messages wants them from another sequence on.
    Anew,
    /// The messages are not wanted any more.
    Stopped,
}

impl Trouble {
    /// Of an answer without words.
    pub fn unanswered(subject: &str) -> Self {
        Self::Refused(format!(
            "nobody answers {subject}: JetStream is off there, or it is another account or domain; check api_prefix and domain"
        ))
    }

    pub fn api(code: u16, error_code: u16, description: &str) -> Self {
        Self::Api {
            code,
            error_code,
            description: shortened(description),
        }
    }

    /// From the text of an `-ERR`, with its quotes.
    pub fn error_line(text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text);
        Self::Refused(format!("it says {}", shortened(text.trim())))
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Unreachable(match error.kind() {
            io::ErrorKind::UnexpectedEof => "the connection was closed".to_owned(),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                "it does not answer in time".to_owned()
            }
            _ => error.to_string(),
        })
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(text) | Self::Refused(text) | Self::Lost(text) => {
                formatter.write_str(text)
            }
            Self::NotUnderstood(what) => {
                write!(formatter, "it does not speak the NATS protocol: {what}")
            }
            Self::Api { description, .. } => formatter.write_str(description),
            Self::Anew => formatter.write_str("it begins anew"),
            Self::Stopped => formatter.write_str("it was stopped"),
        }
    }
}

fn shortened(text: &str) -> String {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_of_others_are_cut_between_letters() {
        let Trouble::Refused(text) = Trouble::error_line("ä".repeat(500).as_bytes()) else {
            unreachable!()
        };

        assert!(text.len() <= TEXT_BYTES_MAX + "it says ".len());
        assert!(text.ends_with('ä'));
    }
}
