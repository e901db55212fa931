//! Frames of a WebSocket client: whatever arrives, in whatever pieces, means the same, and nothing is held beyond the limits.

#![no_main]

use jetlake_engine::transport::websocket::frame_reader::WebSocketEnd;
use jetlake_engine::transport::websocket::WebSocketFrameReader;
use libfuzzer_sys::fuzz_target;

const MESSAGE_BYTES_MAX: usize = 64 * 1024;

fuzz_target!(|input: &[u8]| {
    let Some((&choices, bytes)) = input.split_first() else {
        return;
    };
    let (unmasked, inflates) = (choices & 1 != 0, choices & 2 != 0);
    let piece_bytes = usize::from(choices >> 2) + 1;

    let whole = receive(bytes, bytes.len().max(1), unmasked, inflates);
    let pieces = receive(bytes, piece_bytes, unmasked, inflates);

    assert_eq!(whole, pieces);
});

fn receive(
    bytes: &[u8],
    piece_bytes: usize,
    unmasked: bool,
    inflates: bool,
) -> (Vec<u8>, Vec<u8>, Option<WebSocketEnd>) {
    let mut frame_reader = WebSocketFrameReader::new(unmasked, inflates);
    let (mut heard, mut answers) = (Vec::new(), Vec::new());
    for piece in bytes.chunks(piece_bytes) {
        let mut buffer = piece.to_vec();
        let mut decoded = frame_reader.decode(&mut buffer, MESSAGE_BYTES_MAX);
        buffer.resize(buffer.len().max(999), 0);
        let mut end = None;
        loop {
            // A buffer that grows may have room for twice of what is in it.
            assert!(frame_reader.held_bytes() <= 4 * MESSAGE_BYTES_MAX + 2 * bytes.len());
            heard.extend_from_slice(&buffer[..decoded.count]);
            answers.extend_from_slice(&decoded.answers);
            end = end.or(decoded.end);
            if !frame_reader.has_unread() {
                break;
            }
            decoded = frame_reader.read_on(&mut buffer[..999], MESSAGE_BYTES_MAX);
        }
        if end.is_some() {
            return (heard, answers, end);
        }
    }
    (heard, answers, None)
}
