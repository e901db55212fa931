//! The reader against a server made up for it: one that plays by the rules up to some point, and then says anything.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;

use proptest::prelude::*;

use super::*;
use crate::storage::commit::work_pool::WorkPool;
use crate::stream::replication::origin::Parts;
use crate::stream::replication::remote::options::RemoteOptions;
use crate::stream::replication::remote::origin_api::ReadStart;
use crate::stream::replication::remote::pulls::{BATCH, WINDOW_MESSAGES};
use crate::stream::replication::remote::remotes::Remotes;

const TIMEOUT: Duration = Duration::from_secs(10);

/// What a server says before it stops playing by the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Until {
    Nothing,
    Information,
    Pong,
    Stream,
    Consumer,
}

const STAGES: [Until; 5] = [
    Until::Nothing,
    Until::Information,
    Until::Pong,
    Until::Stream,
    Until::Consumer,
];

fn origin() -> Arc<Origin> {
    let parts = Parts {
        name: "O",
        external: None,
        consumer: None,
        is_mirror: false,
        filter: "",
        transforms: Vec::new(),
        start_sequence: 0,
        start_time_ns: None,
    };
    Arc::new(Origin::new(parts).unwrap())
}

fn thread(address: String, channel: Arc<RemoteChannel>) -> Thread {
    let options = RemoteOptions {
        name: "x".to_owned(),
        addresses: vec![address],
        ..RemoteOptions::default()
    };
    let remotes = Remotes::new(&[options]).unwrap();
    Thread {
        api: "$JS.API".to_owned(),
        consumer: "C".to_owned(),
        assignment: Assignment {
            remote: Arc::clone(remotes.find("A", "$JS.x.API").unwrap()),
            origin: origin(),
            consumer: "C".to_owned(),
            client: "test".to_owned(),
        },
        channel,
        address: 0,
        next_sid: FIRST_PULL_SID,
        pause: Duration::from_millis(1),
        pause_max: PAUSE_MAX,
    }
}

/// Reads until the client has said something with this word, and returns the last line that has it.
fn wait_for(socket: &mut TcpStream, heard: &mut String, word: &str) -> Option<String> {
    let mut buffer = [0; 4096];
    while !heard.contains(word) {
        let count = socket.read(&mut buffer).ok().filter(|count| *count > 0)?;
        heard.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    let line = heard.lines().rfind(|line| line.contains(word));
    line.map(str::to_owned)
}

fn answer(socket: &mut TcpStream, heard: &mut String, word: &str, body: &str) -> Option<()> {
    let line = wait_for(socket, heard, word)?;
    let inbox = line.split(' ').nth(2)?;
    let message = format!("MSG {inbox} 1 {}\r\n{body}\r\n", body.len());
    socket.write_all(message.as_bytes()).ok()
}

/// Plays by the rules until then.
fn play(socket: &mut TcpStream, until: Until) -> Option<()> {
    let mut heard = String::new();
    if until >= Until::Information {
        let line = b"INFO {\"max_payload\":1048576,\"headers\":true}\r\n";
        socket.write_all(line).ok()?;
    }
    if until >= Until::Pong {
        wait_for(socket, &mut heard, "PING")?;
        socket.write_all(b"PONG\r\n").ok()?;
    }
    if until >= Until::Stream {
        let body = r#"{"config":{"retention":"limits"},"created":"x","state":{"first_seq":1}}"#;
        answer(socket, &mut heard, "STREAM.INFO", body)?;
    }
    if until >= Until::Consumer {
        answer(
            socket,
            &mut heard,
            "CONSUMER.CREATE",
            r#"{"num_pending":1}"#,
        )?;
        wait_for(socket, &mut heard, "CONSUMER.MSG.NEXT")?;
    }
    Some(())
}

/// Reads from a server that plays by the rules until then, and then says `bytes` and nothing more; returns what it ended with, and what came.
fn read_from(until: Until, bytes: Vec<u8>) -> (Trouble, Vec<RemoteDelivery>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        if play(&mut socket, until).is_some() {
            // A client that has gone does not receive it.
            let _ = socket.write_all(&bytes);
        }
        let _ = socket.shutdown(std::net::Shutdown::Write);
        let _ = socket.read_to_end(&mut Vec::new());
    });
    let pool = WorkPool::new(&Arc::default());
    let channel = RemoteChannel::new(&pool.job(|| {}));
    let (ended, has_ended) = mpsc::channel();
    let mut thread = thread(address, Arc::clone(&channel));
    let reader = std::thread::spawn(move || {
        let trouble = thread.connect_and_read();
        ended.send(()).unwrap();
        trouble
    });
    let mut came = VecDeque::new();
    let mut session = 0;
    while has_ended.recv_timeout(Duration::from_millis(1)) == Err(mpsc::RecvTimeoutError::Timeout) {
        if let Some((offered, _)) = channel.offered() {
            session = offered;
            channel.begin(session, ReadStart::Sequence(1));
        }
    }
    channel.drain_into(session, &mut came);
    let trouble = reader.join().expect("it never panics");
    channel.end(ReaderEnd::Pause);
    server.join().unwrap();
    (trouble, came.into())
}

fn message(slot: u64, sequence: u64, consumer_sequence: u64) -> String {
    let sid = FIRST_PULL_SID + slot;
    format!("MSG a {sid} $JS.ACK.O.C.1.{sequence}.{consumer_sequence}.5.0 2\r\nhi\r\n")
}

#[test]
fn messages_are_handed_over_in_order() {
    let bytes = format!("{}PING\r\n{}", message(0, 3, 1), message(0, 7, 2));

    let (trouble, came) = read_from(Until::Consumer, bytes.into_bytes());

    let sequences: Vec<u64> = came.iter().map(|delivery| delivery.sequence).collect();
    assert_eq!(sequences, [3, 7]);
    assert_eq!(
        trouble,
        Trouble::Unreachable("the connection was closed".to_owned())
    );
}

#[test]
fn a_gap_of_the_consumer_is_noticed() {
    let bytes = format!("{}{}", message(0, 3, 1), message(0, 7, 3));
    let (_, came) = read_from(Until::Consumer, bytes.into_bytes());

    assert_eq!(came.len(), 1);
}

#[test]
fn more_than_was_asked_for_costs_the_connection() {
    let bytes: String = (1..=WINDOW_MESSAGES + 1)
        .map(|number| message(1, number, number))
        .collect();

    let (trouble, came) = read_from(Until::Consumer, bytes.into_bytes());

    assert!((BATCH..WINDOW_MESSAGES).contains(&(came.len() as u64)));
    assert_eq!(
        trouble,
        Trouble::NotUnderstood("more comes than was asked for")
    );
}

/// Anything, and things that look like the protocol.
fn said() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..40),
        "(MSG|HMSG|INFO|PING|PONG|-ERR|\\+OK) ?[ -~]{0,40}\r\n".prop_map(String::into_bytes),
        "INFO \\{\"ldm\":true\\}\r\n".prop_map(String::into_bytes),
        (10..12u64, 0..4u64, 0..4u64)
            .prop_map(|(sid, one, other)| message(sid - 10, one, other).into_bytes()),
        "HMSG i 1[01] 2[0-9] 2[0-9]\r\nNATS/1.0 [0-9]{3} [a-zA-Z ]{8,16}\r\n\r\n\r\n"
            .prop_map(String::into_bytes),
        Just(b"MSG a 10 999999999\r\n".to_vec()),
    ];
    proptest::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn whatever_a_server_says_the_reader_ends_in_good_order(stage in 0..STAGES.len(), bytes in said()) {
        let (trouble, came) = read_from(STAGES[stage], bytes);

        prop_assert!(trouble != Trouble::Stopped && trouble != Trouble::Anew);
        prop_assert!(came.windows(2).all(|pair| pair[0].sequence < pair[1].sequence));
    }
}
