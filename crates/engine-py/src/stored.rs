//! What is stored, as Python gets it.

use std::borrow::Cow;

use jetlake_engine::storage::message::Message;
use jetlake_engine::stream::registry::RecoveredStream;

pub type Json = Cow<'static, [u8]>;

/// Account, name and definition of a stream on disk.
pub type StoredStream = (String, String, Json);

/// Subject, time and payload.
pub type StoredMessage = (String, i64, Cow<'static, [u8]>);

pub fn streams(stored: Vec<RecoveredStream>) -> Vec<StoredStream> {
    let streams = stored.into_iter();
    streams
        .map(|stream| (stream.account, stream.name, stream.definition.into()))
        .collect()
}

pub fn message(message: &Message) -> StoredMessage {
    let subject = String::from_utf8_lossy(message.subject()).into_owned();
    let payload = Cow::Owned(message.payload().to_vec());
    (subject, message.time_ns, payload)
}
