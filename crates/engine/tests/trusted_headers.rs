//! Headers that are believed: whatever a publisher writes there itself is taken out, refused, or harmless, on every way a message can take into a stream.
//!
//! The list is the one in the code; a header that is added there is tried here.

#[path = "support/stream_server.rs"]
#[allow(dead_code, reason = "each test uses its part of it")]
mod stream_server;

use jetlake_engine::storage::disk::simulated::{SimulatedDisk, Survival};
use jetlake_engine::wire::stored_headers;
use jetlake_engine::wire::trusted_headers::{Treatment, TrustedHeader, TRUSTED};
use serde_json::{json, Value};
use stream_server::{StreamServer, Wire};

/// What a message is published as.
#[derive(Debug, Clone, Copy)]
enum Way {
    Plain,
    Batch,
    Upload,
}

const OWN_LINE: &str = "Own: kept\r\n";

fn block(lines: &str) -> String {
    format!("NATS/1.0\r\n{lines}\r\n")
}

fn server(disk: &SimulatedDisk) -> StreamServer {
    let server = StreamServer::start(disk);
    server.create_as(&json!({
        "name": "S", "subjects": ["s.>"], "allow_atomic": true, "allow_msg_schedules": true,
    }));
    server
}

/// Publishes a message with these lines, and returns the answer that says whether it is stored.
fn publish(wire: &mut Wire, way: Way, lines: &str, id: usize) -> Value {
    match way {
        Way::Plain => wire.ask("s.1", &block(lines), "x"),
        Way::Batch => {
            let batch = format!(
                "{lines}Nats-Batch-Id: b{id}\r\nNats-Batch-Sequence: 1\r\nNats-Batch-Commit: 1\r\n"
            );
            wire.ask("s.1", &block(&batch), "x")
        }
        Way::Upload => {
            let first = format!("{lines}Jetlake-Upload: u{id}/1/q{id}/run\r\n");
            let answer = wire.ask("s.1", &block(&first), "x");
            if !answer["error"].is_null() {
                return answer;
            }
            let end = format!("Jetlake-Upload: u{id}/1/end\r\n");
            wire.ask("s.1", &block(&end), "");
            commit(wire, &format!("q{id}"), 1, &format!("u{id}"))
        }
    }
}

fn commit(wire: &mut Wire, query: &str, batch: u64, upload: &str) -> Value {
    let request = json!({
        "query": query, "batch": batch, "uploads": [{"id": upload, "messages": 1}],
    });
    wire.ask("$JS.API.STREAM.UPLOAD.COMMIT.S", "", &request.to_string())
}

fn names_to_try(header: &TrustedHeader) -> Vec<String> {
    let name = String::from_utf8(header.name.to_vec()).unwrap();
    match header.is_prefix {
        true => vec![format!("{name}Subject"), format!("{name}Anything")],
        false => vec![name],
    }
}

/// The headers of the last message.
fn last_headers(server: &StreamServer) -> Vec<u8> {
    let stream = server.find("S");
    let last = stream.store().messages().counts().last_sequence;
    let message = stream.store().messages().read(last).unwrap().unwrap();
    message.headers().to_vec()
}

#[test]
fn no_publishers_own_header_is_believed_on_any_way_into_a_stream() {
    let disk = SimulatedDisk::default();
    let server = server(&disk);
    let mut wire = server.connect();
    let mut id = 0;
    for header in &TRUSTED {
        for name in names_to_try(header) {
            for way in [Way::Plain, Way::Batch, Way::Upload] {
                if header.of_publishers == Treatment::Staged {
                    continue;
                }
                id += 1;
                // Twice: what comes second must not be what is left.
                let lines = format!("{name}: S/q/9\r\n{OWN_LINE}{name}: S/q/8\r\n");
                let before = server.find("S").store().messages().counts().last_sequence;

                let answer = publish(&mut wire, way, &lines, id);

                let stored = server.find("S").store().messages().counts().last_sequence > before;
                let what = format!("{name} {way:?}: {answer}");
                if let Treatment::Refused(code) = header.of_publishers {
                    assert!(!stored, "{what}");
                    assert_eq!(answer["error"]["err_code"], json!(code), "{what}");
                    continue;
                }
                assert!(stored && answer["error"].is_null(), "{what}");
                let headers = last_headers(&server);
                let found = stored_headers::value(&headers, name.as_bytes());
                let own = stored_headers::value(&headers, b"Own");
                assert_eq!(own, Some(b"kept".as_slice()), "{what}");
                match (header.of_publishers, way) {
                    (Treatment::Removed, Way::Upload) if name == "Jetlake-Batch" => {
                        let mark = format!("S/q{id}/1");
                        assert_eq!(found, Some(mark.as_bytes()), "{what}");
                    }
                    (Treatment::Removed, _) => assert_eq!(found, None, "{what}"),
                    (Treatment::Disabled, _) => {
                        assert_eq!(found, Some(b"trace disabled".as_slice()), "{what}");
                    }
                    (Treatment::Kept, _) => {
                        assert_eq!(found, Some(b"S/q/9".as_slice()), "{what}");
                    }
                    (Treatment::Staged | Treatment::Refused(_), _) => unreachable!("{what}"),
                }
            }
        }
    }
}

#[test]
fn an_upload_is_never_stored_with_its_header_nor_by_another_way() {
    let disk = SimulatedDisk::default();
    let server = server(&disk);
    let mut wire = server.connect();

    for lines in [
        "Jetlake-Upload: u/1/q/run\r\n",
        "Jetlake-Upload: u/2\r\nNats-Batch-Id: b\r\nNats-Batch-Sequence: 1\r\nNats-Batch-Commit: 1\r\n",
    ] {
        let answer = wire.ask("s.1", &block(lines), "x");
        assert!(answer["uploaded"].is_u64(), "{answer}");
    }

    assert_eq!(server.find("S").store().messages().counts().messages, 0);
}

#[test]
fn a_publishers_own_batch_does_not_make_a_commit_repeated_after_a_crash() {
    let disk = SimulatedDisk::default();
    let server = server(&disk);
    let mut wire = server.connect();
    let first = publish(&mut wire, Way::Upload, "", 1);
    assert_eq!(first["repeated"], json!(false), "{first}");
    // The next batches of the same query, as another user claims.
    let claimed = publish(&mut wire, Way::Plain, "Jetlake-Batch: S/q1/99\r\n", 0);
    assert!(claimed["seq"].is_u64(), "{claimed}");

    let server = StreamServer::start(&disk.after_power_cut(Survival::Nothing));
    let mut wire = server.connect();
    wire.ask("s.1", &block("Jetlake-Upload: v/1/q1/again\r\n"), "row");
    wire.ask("s.1", &block("Jetlake-Upload: v/1/end\r\n"), "");
    let second = commit(&mut wire, "q1", 2, "v");

    assert_eq!(second["repeated"], json!(false), "{second}");
    let last = second["last"].as_u64().unwrap();
    assert_eq!(
        server.payload("S", last).as_deref(),
        Some(b"row".as_slice())
    );
}
