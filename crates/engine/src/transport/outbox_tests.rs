//! The outbox on a real socket pair: order, blocking, limits.

use super::*;
use std::io::Read;
use std::time::Duration;

fn pair(pending_bytes_max: usize) -> (Outbox, std::net::TcpStream) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (socket, _) = listener.accept().unwrap();
    socket.set_nonblocking(true).unwrap();
    peer.set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    (
        Outbox::new(Arc::new(TcpStream::from_std(socket)), pending_bytes_max),
        peer,
    )
}

#[test]
fn pieces_arrive_in_order_and_an_end_follows_them() {
    let (outbox, mut peer) = pair(1 << 20);

    outbox.deliver(&[IoSlice::new(b"one "), IoSlice::new(b"two ")], 1);
    outbox.queue_framed(b"three".to_vec(), 1);
    outbox.end_when_drained(1);

    let mut text = String::new();
    peer.read_to_string(&mut text).unwrap();
    assert_eq!(text, "one two three");
    assert_eq!(outbox.queue_framed(b"late".to_vec(), 1), Flushed::Gone);
}

#[test]
fn a_full_socket_keeps_the_rest_and_goes_on_when_writable() {
    let (outbox, mut peer) = pair(64 << 20);
    let block: Vec<u8> = (0..1u32 << 20).map(|number| number as u8).collect();

    for _ in 0..24 {
        assert_eq!(outbox.deliver(&[IoSlice::new(&block)], 5), Flushed::Settled);
    }

    assert!(outbox.pending_bytes() > 0);
    assert_eq!(outbox.blocked_since_ms(), 5);
    let reader = std::thread::spawn(move || {
        let mut received = vec![0; 24 << 20];
        peer.read_exact(&mut received).unwrap();
        received
    });
    while outbox.pending_bytes() > 0 {
        std::thread::sleep(Duration::from_millis(1));
        outbox.writable(6);
    }
    let received = reader.join().unwrap();
    assert!(received.chunks(1 << 20).all(|chunk| chunk == block));
    assert_eq!(outbox.blocked_since_ms(), 0);
}

/// Delivers to a client that does not read, until it is cut off.
pub(super) fn overwhelm(outbox: &Outbox) {
    let block = vec![0u8; 1 << 20];
    let mut flushed = Flushed::Settled;
    for _ in 0..64 {
        flushed = outbox.deliver(&[IoSlice::new(&block)], 1);
        if flushed != Flushed::Settled {
            break;
        }
    }

    assert_eq!(flushed, Flushed::SlowConsumer);
    assert_eq!(outbox.deliver(&[IoSlice::new(b"x")], 1), Flushed::Gone);
}

#[test]
fn a_client_too_far_behind_is_cut_off() {
    let (outbox, mut peer) = pair(1 << 20);

    overwhelm(&outbox);

    let mut received = Vec::new();
    let ended = peer.read_to_end(&mut received);
    assert!(ended.is_err() || received.len() < 64 << 20);
}

/// Delivers from several threads at once and reads it all: no piece may be torn by another.
pub(super) fn deliver_from_many_threads(outbox: &Arc<Outbox>, peer: &mut impl Read) {
    let threads: Vec<_> = (0..4u8)
        .map(|number| {
            let outbox = Arc::clone(outbox);
            std::thread::spawn(move || {
                let line = [b'a' + number; 100];
                for _ in 0..5_000 {
                    assert!(matches!(
                        outbox.deliver(&[IoSlice::new(&line), IoSlice::new(b"\n")], 1),
                        Flushed::Settled | Flushed::HandOver
                    ));
                }
            })
        })
        .collect();
    let writer = {
        let outbox = Arc::clone(outbox);
        std::thread::spawn(move || {
            for thread in threads {
                thread.join().unwrap();
            }
            while outbox.pending_bytes() > 0 {
                outbox.writable(2);
            }
        })
    };

    let mut received = vec![0; 4 * 5_000 * 101];
    peer.read_exact(&mut received).unwrap();
    writer.join().unwrap();

    assert!(received
        .chunks(101)
        .all(|line| line[..100].iter().all(|byte| *byte == line[0]) && line[100] == b'\n'));
}

#[test]
fn many_threads_deliver_whole_pieces() {
    let (outbox, mut peer) = pair(256 << 20);

    deliver_from_many_threads(&Arc::new(outbox), &mut peer);
}

#[test]
fn the_owner_is_asked_once_for_all_that_is_queued_until_it_writes() {
    let (outbox, mut peer) = pair(1 << 20);

    outbox.queue_for_owner(b"one ".to_vec());
    assert!(outbox.ask_owner());
    outbox.queue_for_owner(b"two ".to_vec());
    assert!(!outbox.ask_owner());
    assert_eq!(outbox.flush_for_owner(1), Flushed::Settled);
    outbox.queue_for_owner(b"three".to_vec());
    assert!(outbox.ask_owner());
    outbox.end_when_drained(1);

    let mut text = String::new();
    peer.read_to_string(&mut text).unwrap();
    assert_eq!(text, "one two three");
}
