//! Bytes of a server, as the load generator, the bulk readers and the readers of remote streams get them. A server is trusted no more than a client is.

#![no_main]

use jetlake_engine::stream::replication::remote::delivery;
use jetlake_engine::wire::reply::{parse_reply, NotUnderstood, Reply};
use libfuzzer_sys::fuzz_target;

/// What one server said: the replies as text, how much they took, and whether the next one is nonsense.
fn read(bytes: &[u8]) -> (Vec<String>, usize, bool) {
    let mut replies = Vec::new();
    let mut position = 0;
    loop {
        match parse_reply(&bytes[position..]) {
            Ok(Some((reply, consumed))) => {
                assert!(consumed > 0 && position + consumed <= bytes.len());
                if let Reply::Message {
                    header_len, body, ..
                } = &reply
                {
                    assert!(*header_len <= body.len());
                }
                if let Some(heard) = delivery::read(&reply) {
                    replies.push(format!("{heard:?}"));
                }
                replies.push(format!("{reply:?}"));
                position += consumed;
            }
            Ok(None) => return (replies, position, false),
            Err(NotUnderstood) => return (replies, position, true),
        }
    }
}

fuzz_target!(|input: (u16, &[u8])| {
    let (split, bytes) = input;
    let (whole, consumed, nonsense) = read(bytes);

    let (front, front_consumed, front_nonsense) =
        read(&bytes[..usize::from(split) % (bytes.len() + 1)]);

    assert_eq!(front[..], whole[..front.len()]);
    if front_nonsense {
        assert!(nonsense && front_consumed == consumed);
    }
});
