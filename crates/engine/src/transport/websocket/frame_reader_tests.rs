//! Frames in any pieces: what a session gets of them, what is answered, and what ends a connection.

use proptest::prelude::*;

use super::*;
use crate::transport::websocket::deflate;

const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];
const LIMIT: usize = 1 << 20;

/// A frame as a client sends it.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        length @ 0..=125 => bytes.push(0x80 | length as u8),
        length @ 126..=65_535 => {
            bytes.push(0x80 | 126);
            bytes.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            bytes.push(0x80 | 127);
            bytes.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    bytes.extend_from_slice(&MASK);
    let start = bytes.len();
    bytes.extend_from_slice(payload);
    apply_mask(&mut bytes[start..], MASK, 0);
    bytes
}

fn compressed(payload: &[u8]) -> Vec<u8> {
    deflate::compress([payload].into_iter(), <[u8]>::to_vec)
}

/// What a session would get of bytes that arrive in such pieces, the answers, and the end.
fn receive(bytes: &[u8], sizes: &[usize]) -> (Vec<u8>, Vec<u8>, Option<WebSocketEnd>) {
    let mut frame_reader = WebSocketFrameReader::new(false, true);
    let (mut heard, mut answers, mut end) = (Vec::new(), Vec::new(), None);
    let mut rest = bytes;
    let mut sizes = sizes.iter().cycle();
    while !rest.is_empty() {
        let size = sizes.next().map_or(rest.len(), |&size| size.max(1));
        let (piece, after) = rest.split_at(size.min(rest.len()));
        let mut buffer = piece.to_vec();
        let mut decoded = frame_reader.decode(&mut buffer, LIMIT);
        buffer.resize(buffer.len().max(1_000), 0);
        loop {
            // Whatever is left of the read, and what that says of other messages.
            assert!(frame_reader.held_bytes() <= 2 * (LIMIT + UNREAD_BYTES_ENOUGH + bytes.len()));
            heard.extend_from_slice(&buffer[..decoded.count]);
            answers.extend_from_slice(&decoded.answers);
            end = end.or(decoded.end);
            if !frame_reader.has_unread() {
                break;
            }
            let target = &mut buffer[..1_000];
            decoded = frame_reader.read_on(target, LIMIT);
        }
        if end.is_some() {
            return (heard, answers, end);
        }
        rest = after;
    }
    (heard, answers, None)
}

fn violation(bytes: &[u8]) -> String {
    match receive(bytes, &[]).2.map(|end| end.cause) {
        Some(CloseCause::Violation(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn messages_fragments_and_control_frames_arrive_in_any_pieces() {
    let mut bytes = frame(0x82, b"CONNECT {}\r\n");
    bytes.extend(frame(0x02, b"PUB a"));
    bytes.extend(frame(0x89, b"are you there"));
    bytes.extend(frame(0x80, b" 2\r\nhi\r\n"));
    bytes.extend(frame(0xc1, &compressed(&b"PING\r\n".repeat(50))));
    bytes.extend(frame(0x82, b""));
    bytes.extend(frame(0x8a, b""));
    bytes.extend(frame(0x82, b"PONG\r\n"));
    let mut expected = b"CONNECT {}\r\nPUB a 2\r\nhi\r\n".to_vec();
    expected.extend(b"PING\r\n".repeat(50));
    expected.extend(b"PONG\r\n");
    let mut pong = Vec::new();
    frames::put_control(&mut pong, Opcode::Pong, b"are you there");

    for size in [1, 2, 3, 5, 7, 11, 64, bytes.len()] {
        let (heard, answers, end) = receive(&bytes, &[size]);
        assert_eq!(heard, expected, "in pieces of {size}");
        assert_eq!((answers, end), (pong.clone(), None));
    }
}

#[test]
fn frames_against_the_rules_end_the_connection_with_the_reason() {
    assert_eq!(violation(&[0x82, 0x02, b'h', b'i']), "mask bit missing");
    assert!(violation(&frame(0x80, b"")).contains("continuation"));
    assert!(violation(&frame(0x09, b"")).contains("final bit"));
    assert!(violation(&frame(0xc9, b"")).contains("must not be compressed"));
    assert!(violation(&frame(0x89, &[0; 126])).contains("125 bytes"));
    let mut twice = frame(0x02, b"");
    twice.extend(frame(0x02, b""));
    assert!(violation(&twice).contains("before final frame"));
    assert_eq!(
        violation(&frame(0xc2, &[0xff; 9])),
        "invalid compressed data"
    );
}

#[test]
fn compression_that_was_not_agreed_on_is_refused() {
    let mut bytes = frame(0xc2, &compressed(b"PING\r\n"));
    let decoded = WebSocketFrameReader::new(false, false).decode(&mut bytes, LIMIT);

    let Some(CloseCause::Violation(text)) = decoded.end.map(|end| end.cause) else {
        panic!("it was accepted");
    };
    assert!(text.contains("without negotiated"));
}

#[test]
fn what_inflates_beyond_the_limit_is_refused_and_not_held() {
    let bytes = frame(0xc2, &compressed(&vec![0; 8 * LIMIT]));
    let (heard, _, end) = receive(&bytes, &[]);

    assert_eq!(end.unwrap().cause, CloseCause::TooLarge);
    assert!(heard.len() <= LIMIT);
}

#[test]
fn large_messages_of_one_read_are_inflated_one_after_another() {
    const COUNT: usize = 200;
    let message = b"PING\r\n".repeat(LIMIT / 6);
    let mut bytes = frame(0x82, b"PONG\r\n");
    for _ in 0..COUNT {
        bytes.extend(frame(0xc2, &compressed(&message)));
        bytes.extend(frame(0x82, b"+OK\r\n"));
        bytes.extend(frame(0x89, b"there?"));
    }
    bytes.extend(frame(0x88, b""));

    // `receive` looks at what is held meanwhile.
    let (heard, answers, end) = receive(&bytes, &[]);

    let expected = [&message, &b"+OK\r\n"[..]].concat().repeat(COUNT);
    assert!(heard == [b"PONG\r\n", &expected[..]].concat());
    assert_eq!(answers.len(), COUNT * (2 + b"there?".len()));
    assert_eq!(end.map(|end| end.cause), Some(CloseCause::ByPeer));
}

#[test]
fn small_messages_of_one_read_are_inflated_at_once() {
    let mut bytes = frame(0xc2, &compressed(b"PING\r\n")).repeat(1_000);
    let mut frame_reader = WebSocketFrameReader::new(false, true);
    frame_reader.decode(&mut bytes, LIMIT);
    let mut target = [0; 10_000];

    let decoded = frame_reader.read_on(&mut target, LIMIT);

    assert_eq!(&target[..decoded.count], b"PING\r\n".repeat(1_000));
    assert!(!frame_reader.has_unread());
    assert_eq!(frame_reader.held_bytes(), 0);
}

#[test]
fn what_a_frame_says_in_plain_stays_before_what_is_inflated_however_little_is_taken() {
    let large = b"a".repeat(2 * UNREAD_BYTES_ENOUGH);
    let plain = b"b".repeat(3_000);
    let mut bytes = Vec::new();
    for _ in 0..3 {
        bytes.extend(frame(0xc2, &compressed(&large)));
        bytes.extend(frame(0x82, &plain));
    }

    for size in [1, 999, 4_096] {
        let mut frame_reader = WebSocketFrameReader::new(false, true);
        let mut buffer = bytes.clone();
        let decoded = frame_reader.decode(&mut buffer, LIMIT);
        let mut heard = buffer[..decoded.count].to_vec();
        let mut target = vec![0; size];
        while frame_reader.has_unread() {
            let count = frame_reader.read_on(&mut target, LIMIT).count;
            heard.extend_from_slice(&target[..count]);
        }

        assert!(heard == [&large[..], &plain].concat().repeat(3), "{size}");
    }
}

#[test]
fn a_close_frame_is_answered_with_the_same_status() {
    let mut payload = 1000u16.to_be_bytes().to_vec();
    payload.extend_from_slice(b"bye");
    let mut bytes = frame(0x82, b"PING\r\n");
    bytes.extend(frame(0x88, &payload));

    let (heard, _, end) = receive(&bytes, &[]);

    let end = end.unwrap();
    assert_eq!(
        (heard, end.cause),
        (b"PING\r\n".to_vec(), CloseCause::ByPeer)
    );
    assert_eq!(&end.frame[2..], payload);
    assert!(violation(&frame(0x88, &[3])).contains("1 byte"));
    assert!(violation(&frame(0x88, &1005u16.to_be_bytes())).contains("1005"));
}

#[test]
fn a_client_that_agreed_on_no_masks_sends_none() {
    let mut bytes = [&[0x82, 0x06][..], b"PING\r\n"].concat();
    let decoded = WebSocketFrameReader::new(true, false).decode(&mut bytes, LIMIT);

    assert_eq!((decoded.count, decoded.end), (6, None));
    assert_eq!(&bytes[..6], b"PING\r\n");
}

proptest! {
    #[test]
    fn bytes_mean_the_same_however_they_are_cut(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        frames in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..300)), 0..6),
        sizes in prop::collection::vec(1usize..50, 1..8),
    ) {
        let mut stream: Vec<u8> = frames.iter().flat_map(|(first, payload)| frame(*first, payload)).collect();
        stream.extend(bytes);

        prop_assert_eq!(receive(&stream, &[]), receive(&stream, &sizes));
    }
}
