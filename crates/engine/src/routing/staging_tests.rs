//! Staging: when what is gathered for one receiver must be handed over before the rest of a read.

use super::*;
use crate::config::connection_type::ConnectionType;
use crate::transport::outbox::Outbox;

const PENDING_BYTES_MAX: usize = 1024 * 1024;

fn receiver(slot: usize) -> (Arc<Connection>, std::net::TcpStream) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (socket, address) = listener.accept().unwrap();
    socket.set_nonblocking(true).unwrap();
    let socket = Arc::new(mio::net::TcpStream::from_std(socket));
    let outbox = Outbox::new(socket, PENDING_BYTES_MAX);
    (
        Arc::new(Connection::new(
            1,
            ConnectionType::Standard,
            slot,
            0,
            address,
            outbox,
        )),
        peer,
    )
}

/// Stages one message repeatedly until the staging wants to hand over; returns the count.
fn stage_until_full(staging: &mut Staging, receiver: &Arc<Connection>, buffer: &[u8]) -> usize {
    let size = (buffer.len() - 2).to_string();
    let publish = Publish {
        subject: b"x",
        reply: None,
        header_size_text: b"0",
        total_size_text: size.as_bytes(),
        header_len: 0,
        body: &buffer[..buffer.len() - 2],
    };
    let mut count = 0;
    while !staging.is_full() {
        staging.deliver(receiver, Some(7), &publish, b"1", buffer);
        count += 1;
        assert!(count < 1_000_000, "it is never full");
    }
    count
}

#[test]
fn a_small_part_of_what_may_wait_is_staged_before_it_is_handed_over() {
    for body_bytes in [10, 1000, 5000] {
        let (receiver, _peer) = receiver(3);
        let buffer = [vec![b'm'; body_bytes], b"\r\n".to_vec()].concat();
        let mut staging = Staging::new(0);
        staging.limit_entries(PENDING_BYTES_MAX);

        let count = stage_until_full(&mut staging, &receiver, &buffer);

        let staged = count * body_bytes;
        assert!(staged <= PENDING_BYTES_MAX / STAGED_PART + body_bytes);
        assert!(staged >= PENDING_BYTES_MAX / STAGED_PART / 4);
    }
}

#[test]
fn what_was_handed_over_counts_no_more_and_its_size_is_told() {
    let (receiver, _peer) = receiver(0);
    let buffer = [vec![b'm'; 100], b"\r\n".to_vec()].concat();
    let mut staging = Staging::new(0);
    staging.limit_entries(PENDING_BYTES_MAX);
    let mut followups = Vec::new();

    let count = stage_until_full(&mut staging, &receiver, &buffer);
    // Nothing is written while another buffer waits: so the receiver is behind at once.
    receiver
        .outbox
        .queue_for_owner(vec![b'w'; PENDING_BYTES_MAX / 2]);
    staging.flush(&buffer, 1, &mut followups);

    assert!(!staging.is_full());
    let told: Vec<_> = followups
        .iter()
        .map(|followup| (followup.publisher, followup.message_bytes))
        .collect();
    assert!(told.is_empty() || told == [(Some(7), (count * 100) as u64)]);
}

#[test]
fn a_connection_gets_nothing_that_was_staged_for_the_one_that_had_its_slot() {
    let ((before, _peer), (after, _other)) = (receiver(3), receiver(3));
    let buffer = b"m\r\n";
    let publish = Publish {
        subject: b"x",
        reply: None,
        header_size_text: b"0",
        total_size_text: b"1",
        header_len: 0,
        body: &buffer[..1],
    };
    let mut staging = Staging::new(0);
    staging.limit_entries(PENDING_BYTES_MAX);

    staging.deliver(&before, Some(7), &publish, b"1", buffer);
    staging.deliver(&after, Some(7), &publish, b"1", buffer);
    staging.deliver(&after, Some(7), &publish, b"1", buffer);
    let mut followups = Vec::new();
    staging.flush(buffer, 0, &mut followups);

    let sent = |connection: &Connection| {
        let messages = &connection.traffic.out_messages;
        messages.load(std::sync::atomic::Ordering::Relaxed)
    };
    assert_eq!((sent(&before), sent(&after)), (1, 2));
}
