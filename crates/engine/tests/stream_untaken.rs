//! Messages that no stream takes are held until one is made: none is lost, none is there twice, and each publisher's are in order.
//!
//! Publishers send all the time while the stream is made, so some messages are held, some are passed on, and some go to the stream directly.

#[path = "support/stream_server.rs"]
#[allow(dead_code, reason = "each test uses its part of it")]
mod stream_server;

use std::thread;
use std::time::Duration;

use jetlake_engine::storage::disk::simulated::SimulatedDisk;
use stream_server::StreamServer;

const PUBLISHERS: u64 = 4;
const MESSAGES: u64 = 1_000;
const ROUNDS: u64 = 10;

#[test]
fn messages_are_stored_once_and_in_order_while_their_stream_is_made() {
    let disk = SimulatedDisk::default();
    let server = StreamServer::start(&disk);
    let streams = server.engine().streams().unwrap();
    streams
        .subscribe_untaken(server.engine().services(), "$G", b"t.*")
        .unwrap();
    for round in 0..ROUNDS {
        let subject = format!("t.{round}");
        let publishers: Vec<_> = (0..PUBLISHERS)
            .map(|publisher| {
                let (mut wire, subject) = (server.connect(), subject.clone());
                thread::spawn(move || {
                    for number in 0..MESSAGES {
                        wire.publish(&subject, &format!("{publisher} {number}"), number);
                        if number % 20 == 0 {
                            wire.flush();
                        }
                    }
                    wire.flush();
                    let mut answers = Vec::new();
                    while answers.len() < MESSAGES as usize {
                        answers.extend(wire.answers());
                    }
                    answers
                })
            })
            .collect();
        thread::sleep(Duration::from_millis(round % 5 * 2));
        let name = format!("T{round}");
        server.create(&name, &subject);

        let answers: Vec<Vec<(u64, u64)>> = publishers
            .into_iter()
            .map(|publisher| publisher.join().unwrap())
            .collect();

        let counts = server.find(&name).store().messages().counts();
        assert_eq!(counts.last_sequence, PUBLISHERS * MESSAGES);
        for (publisher, of_one) in answers.iter().enumerate() {
            let mut before = 0;
            for (token, sequence) in of_one {
                assert!(*sequence > before, "{sequence} comes behind {before}");
                before = *sequence;
                let stored = server.payload(&name, *sequence).unwrap();
                assert_eq!(stored, format!("{publisher} {token}").into_bytes());
            }
        }
    }
}

#[test]
fn what_is_refused_is_not_stored_by_a_stream_that_comes_later() {
    let disk = SimulatedDisk::default();
    let server = StreamServer::start(&disk);
    let streams = server.engine().streams().unwrap();
    streams
        .subscribe_untaken(server.engine().services(), "$G", b"t.*")
        .unwrap();
    let (mut refused, mut wire) = (server.connect(), server.connect());

    refused.publish("t.1", "held", 1);
    refused.flush();
    thread::sleep(Duration::from_millis(500));
    streams.refuse_untaken("$G", b"t.1", "no room");
    server.create("T", "t.1");

    assert_eq!(wire.publish_one("t.1", "stored"), 1);
    // A stream that is there gets what waits, whatever was decided.
    streams.refuse_untaken("$G", b"t.1", "no room");
    assert_eq!(server.payload("T", 1).unwrap(), b"stored");
    assert_eq!(
        server.find("T").store().messages().counts().last_sequence,
        1
    );
}
