//! A channel against a real client, in memory: handshakes, records in pieces, damaged records.

use std::io::{Read, Write};
use std::sync::OnceLock;

use proptest::prelude::*;
use rustls::ClientConnection;

use super::*;
use crate::config::options::READ_BUFFER_BYTES;
use crate::transport::tls::test_certificates::Authority;
use crate::transport::tls::TlsSettings;

/// The server's side as a worker and an outbox would use it.
struct Server {
    channel: TlsChannel,
    buffer: Vec<u8>,
    plaintext: Vec<u8>,
    peer: Option<Peer>,
    end: Option<TlsEnd>,
}

impl Server {
    fn new(settings: &TlsSettings) -> Self {
        Self {
            channel: TlsChannel::new(&settings.server_config).unwrap(),
            buffer: vec![0; ROOM_BEFORE_BYTES + READ_BUFFER_BYTES],
            plaintext: Vec::new(),
            peer: None,
            end: None,
        }
    }

    fn receive(&mut self, bytes: &[u8]) {
        let received = ROOM_BEFORE_BYTES..ROOM_BEFORE_BYTES + bytes.len();
        self.buffer[received.clone()].copy_from_slice(bytes);
        let mut unread = Vec::new();
        // Half of the time there is little room, and most of the plaintext is left over.
        let mut small = [0; 100];
        if bytes.len() % 2 == 0 {
            let plaintext = Plaintext::apart(&mut small, &mut unread);
            let opened = self.channel.open(&mut self.buffer, received, plaintext);
            self.plaintext.extend_from_slice(&small[..opened.count]);
            self.note(opened);
        } else {
            let plaintext = Plaintext::to_front(0..READ_BUFFER_BYTES, &mut unread);
            let opened = self.channel.open(&mut self.buffer, received, plaintext);
            self.plaintext
                .extend_from_slice(&self.buffer[..opened.count]);
            self.note(opened);
        }
        self.plaintext.extend_from_slice(&unread);
    }

    fn note(&mut self, opened: TlsRead) {
        self.peer = self.peer.take().or(opened.peer);
        self.end = self.end.take().or(opened.end);
    }

    fn send(&self, pieces: &[&[u8]], goodbye: bool) -> Vec<u8> {
        let pieces: Vec<_> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
        let total: usize = pieces.iter().map(|piece| piece.len()).sum();
        let mut wire = Vec::new();
        let mut taken = 0;
        loop {
            let mut sealed = Sealed::new();
            sealed.clear();
            let Ok(count) = self.channel.seal(&pieces, taken, goodbye, &mut sealed) else {
                return wire;
            };
            taken += count;
            wire.extend_from_slice(sealed.filled());
            if taken == total || count == 0 {
                return wire;
            }
        }
    }
}

fn outgoing(client: &mut ClientConnection) -> Vec<u8> {
    let mut wire = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut wire).unwrap();
    }
    wire
}

fn incoming(client: &mut ClientConnection, mut wire: &[u8]) -> Vec<u8> {
    let mut plaintext = Vec::new();
    while !wire.is_empty() {
        client.read_tls(&mut wire).unwrap();
        client.process_new_packets().unwrap();
        // A client that has nothing to read says so with an error.
        let _ = client.reader().read_to_end(&mut plaintext);
    }
    plaintext
}

fn shake_hands(server: &mut Server, client: &mut ClientConnection, chunk: usize) {
    for _ in 0..10 {
        for bytes in outgoing(client).chunks(chunk) {
            server.receive(bytes);
        }
        incoming(client, &server.send(&[], false));
        if server.peer.is_some() && !client.is_handshaking() {
            return;
        }
    }
    panic!("no end of the handshake: {:?}", server.end);
}

#[test]
fn a_handshake_in_any_pieces_ends_with_both_sides_understanding_each_other() {
    let authority = Authority::new();
    let settings = TlsSettings::new(&authority.options()).unwrap();
    for versions in [&[&rustls::version::TLS13][..], &[&rustls::version::TLS12]] {
        for chunk in [1, 7, 1_000, READ_BUFFER_BYTES] {
            let mut server = Server::new(&settings);
            let mut client = authority.client_with(None, versions);

            shake_hands(&mut server, &mut client, chunk);
            client.writer().write_all(b"PING\r\n").unwrap();
            server.receive(&outgoing(&mut client));
            let answer = incoming(&mut client, &server.send(&[b"PO", b"", b"NG\r\n"], false));

            assert_eq!(server.plaintext, b"PING\r\n");
            assert_eq!(answer, b"PONG\r\n");
            let peer = server.peer.unwrap();
            assert!(peer.certificates.is_empty());
            assert!(peer.cipher.starts_with("TLS_"), "{}", peer.cipher);
            assert!(server.channel.is_open());
        }
    }
}

#[test]
fn a_client_shows_its_certificate_where_that_is_asked_for() {
    let authority = Authority::new();
    let mut options = authority.options();
    options.verify = true;
    let alice = authority.certify("alice");
    let settings = TlsSettings::new(&options).unwrap();
    let mut server = Server::new(&settings);

    shake_hands(&mut server, &mut authority.client(Some(&alice)), 100);

    let peer = server.peer.unwrap();
    assert_eq!(peer.certificates.len(), 1);
    assert!(alice
        .certificate_pem
        .replace(['\n', '\r'], "")
        .contains(&peer.certificates[0]));
    assert!(peer.is_pinned(&[]) && !peer.is_pinned(&[[7; 32]]));
    let json: serde_json::Value = serde_json::from_slice(&peer.to_json()).unwrap();
    assert_eq!(json["version"], "1.3");
}

#[test]
fn a_client_without_a_certificate_or_with_a_foreign_one_fails_and_is_told() {
    let authority = Authority::new();
    let mut options = authority.options();
    options.verify = true;
    let settings = TlsSettings::new(&options).unwrap();
    let foreign = Authority::new().certify("mallory");
    for certified in [None, Some(&foreign)] {
        let mut server = Server::new(&settings);
        let mut client = authority.client(certified);

        server.receive(&outgoing(&mut client));
        incoming(&mut client, &server.send(&[], false));
        server.receive(&outgoing(&mut client));

        assert!(matches!(server.end, Some(TlsEnd::Failed(_))));
        assert!(server.peer.is_none() && !server.channel.is_open());
        let alert = server.send(&[b"never sent"], true);
        client.read_tls(&mut &alert[..]).unwrap();
        assert!(client.process_new_packets().is_err());
    }
}

#[test]
fn new_keys_are_taken_and_answered_between_messages() {
    let authority = Authority::new();
    let settings = TlsSettings::new(&authority.options()).unwrap();
    let mut server = Server::new(&settings);
    let mut client = authority.client(None);
    shake_hands(&mut server, &mut client, 100);

    for round in 0..5 {
        client.refresh_traffic_keys().unwrap();
        client.writer().write_all(b"question ").unwrap();
        for bytes in outgoing(&mut client).chunks(3) {
            server.receive(bytes);
        }
        let answer = incoming(&mut client, &server.send(&[b"answer"], false));

        assert_eq!(answer, b"answer", "round {round}");
    }
    assert_eq!(server.plaintext, b"question ".repeat(5));
}

#[test]
fn large_deliveries_arrive_whole_whatever_their_pieces() {
    let authority = Authority::new();
    let settings = TlsSettings::new(&authority.options()).unwrap();
    let mut server = Server::new(&settings);
    let mut client = authority.client(None);
    client.set_buffer_limit(None);
    shake_hands(&mut server, &mut client, 100);
    let body: Vec<u8> = (0..300_000u32).map(|number| number as u8).collect();

    for pieces in [
        vec![&body[..]],
        vec![
            &body[..10],
            &body[10..20_000],
            &body[20_000..20_001],
            &body[20_001..],
        ],
        body.chunks(999).collect(),
        body.chunks(16_384).collect(),
    ] {
        assert_eq!(incoming(&mut client, &server.send(&pieces, false)), body);
    }
}

#[test]
fn each_side_hears_the_other_end() {
    let authority = Authority::new();
    let settings = TlsSettings::new(&authority.options()).unwrap();
    let mut server = Server::new(&settings);
    let mut client = authority.client(None);
    shake_hands(&mut server, &mut client, 100);

    let last = server.send(&[b"last words"], true);
    client.read_tls(&mut &last[..]).unwrap();
    let state = client.process_new_packets().unwrap();
    assert!(state.peer_has_closed());
    assert!(server.channel.said_goodbye());
    client.writer().write_all(b"mine").unwrap();
    client.send_close_notify();
    server.receive(&outgoing(&mut client));

    assert_eq!(server.plaintext, b"mine");
    assert_eq!(server.end, Some(TlsEnd::ByPeer));
}

/// A record in the clear.
fn record(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind, 3, 3];
    bytes.extend_from_slice(&(payload.len() as u16).to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

#[test]
fn a_message_that_never_ends_is_cut_off() {
    let authority = Authority::new();
    let settings = TlsSettings::new(&authority.options()).unwrap();
    let mut server = Server::new(&settings);
    // A client hello of 60 KB, one byte per record.
    server.receive(&record(0x16, &[1, 0, 0xea, 0x60]));

    let mut sent = 0;
    while server.end.is_none() && sent < 100_000 {
        server.receive(&record(0x16, &[0]));
        sent += 1;
        assert!(server.channel.state.lock().incoming.len() <= TLS_UNFINISHED_BYTES_MAX);
    }

    assert!(matches!(server.end, Some(TlsEnd::Failed(_))), "{sent}");
}

#[test]
fn an_idle_connection_keeps_no_buffers() {
    let authority = Authority::new();
    let settings = TlsSettings::new(&authority.options()).unwrap();
    let mut server = Server::new(&settings);
    let mut client = authority.client(None);
    shake_hands(&mut server, &mut client, 100);
    client.writer().write_all(&[7; 5_000]).unwrap();
    for bytes in outgoing(&mut client).chunks(1_000) {
        server.receive(bytes);
    }

    let state = server.channel.state.lock();
    assert_eq!(
        (state.incoming.capacity(), state.outgoing.capacity()),
        (0, 0)
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Any bytes, at any time, are read or refused; and a writer may come in between.
    #[test]
    fn damaged_records_never_break_the_server(
        healthy in 0usize..4,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        inserted in prop::collection::vec(any::<u8>(), 0..40),
        at in any::<prop::sample::Index>(),
        chunk in 1usize..600,
        tls12 in any::<bool>(),
    ) {
        static PARTIES: OnceLock<(Authority, TlsSettings)> = OnceLock::new();
        let (authority, settings) = PARTIES.get_or_init(|| {
            let authority = Authority::new();
            let settings = TlsSettings::new(&authority.options()).unwrap();
            (authority, settings)
        });
        let mut server = Server::new(settings);
        let versions: &[_] = if tls12 { &[&rustls::version::TLS12] } else { &[&rustls::version::TLS13] };
        let mut client = authority.client_with(None, versions);
        for _ in 0..healthy {
            server.receive(&outgoing(&mut client));
            let wire = server.send(&[], false);
            if client.read_tls(&mut &wire[..]).is_err() || client.process_new_packets().is_err() {
                break;
            }
        }
        if !client.is_handshaking() {
            client.writer().write_all(&[b'x'; 700]).unwrap();
        }
        let mut wire = outgoing(&mut client);
        for (index, value) in &damage {
            if !wire.is_empty() {
                let index = index.index(wire.len());
                wire[index] ^= value;
            }
        }
        let place = at.index(wire.len() + 1);
        wire.splice(place..place, inserted);

        for bytes in wire.chunks(chunk) {
            server.receive(bytes);
            server.send(&[b"in between"], false);
            if server.end.is_some() {
                break;
            }
        }
        server.send(&[b"the end"], true);
    }
}
