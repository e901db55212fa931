//! The outbox of an encrypted connection, on a real socket pair with a real client: order, blocking, limits, the end.

use super::tests::{deliver_from_many_threads, overwhelm};
use super::*;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

use crate::config::options::READ_BUFFER_BYTES;
use crate::transport::tls::channel::{Plaintext, ROOM_BEFORE_BYTES};
use crate::transport::tls::test_certificates::Authority;
use crate::transport::tls::TlsSettings;

type Peer = rustls::StreamOwned<rustls::ClientConnection, std::net::TcpStream>;

/// An outbox whose connection is encrypted already, and the client at the other end.
fn pair(pending_bytes_max: usize) -> (Arc<Outbox>, Peer) {
    let authority = Authority::new();
    let settings = TlsSettings::new(&authority.options()).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let mut peer = Peer::new(authority.client(None), socket);
    let (mut socket, _) = listener.accept().unwrap();
    let raw = socket.try_clone().unwrap();
    raw.set_nonblocking(true).unwrap();
    let outbox = Arc::new(Outbox::new(
        Arc::new(TcpStream::from_std(raw)),
        pending_bytes_max,
    ));
    outbox.queue_framed(b"INFO in the clear\r\n".to_vec(), 1);
    let channel = Arc::new(TlsChannel::new(&settings.server_config).unwrap());
    outbox.encrypt(Arc::clone(&channel));
    let client = std::thread::spawn(move || {
        let mut line = [0; 19];
        peer.sock.read_exact(&mut line).unwrap();
        assert_eq!(&line, b"INFO in the clear\r\n");
        while peer.conn.is_handshaking() {
            peer.conn.complete_io(&mut peer.sock).unwrap();
        }
        peer.flush().unwrap();
        peer
    });
    let mut buffer = vec![0; ROOM_BEFORE_BYTES + READ_BUFFER_BYTES];
    let started = Instant::now();
    while !channel.is_open() {
        assert!(started.elapsed() < Duration::from_secs(10));
        // Delivered before the handshake is over: waits.
        match socket.read(&mut buffer[ROOM_BEFORE_BYTES..]) {
            Ok(count) => {
                let received = ROOM_BEFORE_BYTES..ROOM_BEFORE_BYTES + count;
                let mut unread = Vec::new();
                channel.open(
                    &mut buffer,
                    received,
                    Plaintext::apart(&mut [], &mut unread),
                );
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) => panic!("{error}"),
        }
        outbox.flush(1);
    }
    (outbox, client.join().unwrap())
}

#[test]
fn pieces_arrive_in_order_and_an_end_that_cannot_be_forged_follows_them() {
    let (outbox, mut peer) = pair(1 << 20);

    outbox.deliver(&[IoSlice::new(b"one "), IoSlice::new(b"two ")], 1);
    outbox.queue_framed(b"three".to_vec(), 1);
    outbox.end_when_drained(1);

    let mut text = String::new();
    // Fails if the connection ends without the peer having said so.
    peer.read_to_string(&mut text).unwrap();
    assert_eq!(text, "one two three");
    assert_eq!(outbox.queue_framed(b"late".to_vec(), 1), Flushed::Gone);
    assert_eq!(outbox.pending_bytes(), 0);
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
    // Not everything was encrypted in advance.
    assert!(outbox.state.lock().unsent.len() < 1 << 20);
    let reader = std::thread::spawn(move || {
        let mut received = vec![0; 24 << 20];
        peer.read_exact(&mut received).unwrap();
        received
    });
    let started = Instant::now();
    while outbox.pending_bytes() > 0 {
        assert!(started.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(1));
        outbox.writable(6);
    }
    let received = reader.join().unwrap();
    assert!(received.chunks(1 << 20).all(|chunk| chunk == block));
    assert_eq!(outbox.blocked_since_ms(), 0);
}

#[test]
fn a_client_too_far_behind_is_cut_off() {
    let (outbox, mut peer) = pair(1 << 20);

    overwhelm(&outbox);

    assert_eq!(outbox.pending_bytes(), 0);
    let mut received = Vec::new();
    assert!(peer.read_to_end(&mut received).is_err());
}

#[test]
fn many_threads_deliver_whole_pieces() {
    let (outbox, mut peer) = pair(256 << 20);

    deliver_from_many_threads(&outbox, &mut peer);
}

#[test]
fn nothing_leaves_before_the_handshake_is_over_and_an_end_does_not_wait_for_it() {
    let authority = Authority::new();
    let settings = TlsSettings::new(&authority.options()).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut peer = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (socket, _) = listener.accept().unwrap();
    socket.set_nonblocking(true).unwrap();
    let outbox = Outbox::new(Arc::new(TcpStream::from_std(socket)), 1 << 20);
    outbox.encrypt(Arc::new(TlsChannel::new(&settings.server_config).unwrap()));

    let delivered = outbox.deliver(&[IoSlice::new(b"a secret")], 1);
    outbox.end_when_drained(1);

    assert_eq!(delivered, Flushed::Settled);
    let mut received = Vec::new();
    peer.read_to_end(&mut received).unwrap();
    assert!(received.is_empty());
}
