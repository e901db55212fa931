//! Bulk readers and writers as bytes: whatever pieces a server's answers come in, the rows are the same, and no bytes break anything.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::RecordBatch;
use jetlake_engine::bulk::publishes::PublishWriter;
use jetlake_engine::bulk::rows::RowReader;
use proptest::prelude::*;

fn reader(source: &str, more: &str) -> RowReader {
    let options = format!(
        r#"{{"stream":"S","inbox":"_INBOX.a","source":"{source}","batch_rows":7,"request_rows":20{more}}}"#
    );
    RowReader::new(options.as_bytes()).unwrap()
}

/// What a consumer delivers: `count` messages from `first` on, with `pending_end` still to come after them.
fn deliveries(sid: &str, first: u64, count: u64, consumer_first: u64, pending_end: u64) -> Vec<u8> {
    let mut out = Vec::new();
    for number in 0..count {
        let sequence = first + number;
        let consumer_sequence = consumer_first + number;
        let pending = pending_end + count - 1 - number;
        let reply = format!(
            "$JS.ACK.S.c.1.{sequence}.{consumer_sequence}.170000000000000{sequence:04}.{pending}"
        );
        let payload = format!("payload {sequence}");
        if sequence % 3 == 0 {
            let header = "NATS/1.0\r\nA: 1\r\nA: 2\r\n\r\n";
            let total = header.len() + payload.len();
            out.extend_from_slice(
                format!(
                    "HMSG a.{sequence} {sid} {reply} {} {total}\r\n{header}{payload}\r\n",
                    header.len()
                )
                .as_bytes(),
            );
        } else {
            out.extend_from_slice(
                format!(
                    "MSG a.{sequence} {sid} {reply} {}\r\n{payload}\r\n",
                    payload.len()
                )
                .as_bytes(),
            );
        }
    }
    out
}

fn made(sid: &str, generation: u32, pending: u64) -> Vec<u8> {
    let body = format!(r#"{{"name":"c","num_pending":{pending}}}"#);
    format!(
        "MSG _INBOX.a.{generation}.made {sid} {}\r\n{body}\r\n",
        body.len()
    )
    .into_bytes()
}

fn sequences(batches: &[RecordBatch]) -> Vec<i64> {
    let mut all = Vec::new();
    for batch in batches {
        let column = batch.column_by_name("sequence").unwrap();
        all.extend_from_slice(column.as_primitive::<Int64Type>().values());
    }
    all
}

#[test]
fn rows_come_in_full_batches_and_the_rest_at_the_end() {
    let mut reader = reader("consumer", "");
    let asked = String::from_utf8(reader.to_send()).unwrap();
    reader.feed(&made("1", 0, 20)).unwrap();
    let next = String::from_utf8(reader.to_send()).unwrap();

    let batches = reader.feed(&deliveries("1", 1, 20, 1, 0)).unwrap();

    assert!(asked.starts_with("SUB _INBOX.a.0.* 1\r\nPUB $JS.API.CONSUMER.CREATE.S.rows-"));
    assert!(next.contains(r#""batch":20"#), "{next}");
    let rows: Vec<usize> = batches.iter().map(RecordBatch::num_rows).collect();
    assert_eq!(rows, [7, 7, 6]);
    assert_eq!(sequences(&batches), (1..=20).collect::<Vec<i64>>());
    assert!(reader.is_finished());
    let last = String::from_utf8(reader.to_send()).unwrap();
    assert!(last.contains("UNSUB 1\r\nPUB $JS.API.CONSUMER.DELETE.S.rows-"));
}

#[test]
fn a_gap_of_delivery_makes_a_new_consumer_go_on_behind_the_last_row() {
    let mut reader = reader("consumer", "");
    reader.to_send();
    reader.feed(&made("1", 0, 20)).unwrap();
    reader.feed(&deliveries("1", 1, 5, 1, 15)).unwrap();
    reader.to_send();

    reader.feed(&deliveries("1", 9, 1, 9, 11)).unwrap();
    let anew = String::from_utf8(reader.to_send()).unwrap();
    // What the old consumer still sends is passed over.
    reader.feed(&deliveries("1", 10, 2, 10, 9)).unwrap();
    reader.feed(&made("1r1", 1, 15)).unwrap();
    reader.feed(&deliveries("1r1", 6, 15, 1, 0)).unwrap();

    assert!(anew.contains("UNSUB 1\r\n"), "{anew}");
    assert!(anew.contains(r#""opt_start_seq":6"#), "{anew}");
    assert!(reader.is_finished());
    assert_eq!(reader.batches().rows, 20);
    assert_eq!(reader.batches().last_sequence, 20);
}

#[test]
fn a_delivery_that_breaks_off_again_and_again_is_given_up() {
    let mut reader = reader("consumer", "");
    let mut outcome = Ok(Vec::new());
    for generation in 0..20 {
        let sid = match generation {
            0 => "1".to_owned(),
            generation => format!("1r{generation}"),
        };
        reader.feed(&made(&sid, generation, 20)).unwrap();
        outcome = reader.feed(&deliveries(&sid, 3, 1, 3, 2));
        if outcome.is_err() {
            break;
        }
    }

    let error = outcome.unwrap_err();

    assert_eq!(error.kind(), "lost");
    assert!(reader.is_finished());
}

#[test]
fn an_end_within_what_is_delivered_ends_the_rows() {
    let mut reader = reader("consumer", r#","start":3,"end":6"#);
    reader.feed(&made("1", 0, 18)).unwrap();

    let batches = reader.feed(&deliveries("1", 3, 9, 1, 9)).unwrap();

    assert_eq!(sequences(&batches), [3, 4, 5]);
    assert!(reader.is_finished());
}

/// One row for the subject `a` as a batch, in frames.
fn written(rows: usize) -> (PublishWriter, Vec<u8>) {
    let mut writer = PublishWriter::new(br#"{"inbox":"_INBOX.a","subject":"a"}"#).unwrap();
    let column = arrow_array::StringArray::from(vec!["x"; rows]);
    let batch = RecordBatch::try_from_iter([("value", std::sync::Arc::new(column) as _)]).unwrap();
    writer.add(&batch).unwrap();
    let bytes = writer.to_send().unwrap();
    (writer, bytes)
}

#[test]
fn publishes_are_outstanding_until_each_is_acknowledged() {
    let (mut writer, bytes) = written(2);

    let text = String::from_utf8(bytes).unwrap();
    assert_eq!(
        text,
        "SUB _INBOX.a.* 1\r\nPUB a _INBOX.a.0 1\r\nx\r\nPUB a _INBOX.a.1 1\r\nx\r\n"
    );
    let ack = |number: u64, body: &str| {
        format!("MSG _INBOX.a.{number} 1 {}\r\n{body}\r\n", body.len()).into_bytes()
    };
    writer
        .feed(&ack(1, r#"{"stream":"S","seq":2,"duplicate":true}"#))
        .unwrap();
    // The same one once more counts once.
    writer
        .feed(&ack(1, r#"{"stream":"S","seq":2,"duplicate":true}"#))
        .unwrap();
    assert_eq!(writer.outstanding(), 1);
    writer.feed(&ack(0, r#"{"stream":"S","seq":1}"#)).unwrap();
    assert_eq!(
        (writer.outstanding(), writer.stored(), writer.duplicates()),
        (0, 1, 1)
    );
}

#[test]
fn an_acknowledgement_that_is_none_is_an_error() {
    for (answer, kind) in [
        ("MSG _INBOX.a.0 1 2\r\nhi\r\n", "protocol"),
        ("MSG _INBOX.a.0 1 2\r\n{}\r\n", "protocol"),
        (
            "MSG _INBOX.a.7 1 21\r\n{\"stream\":\"\",\"seq\":1}\r\n",
            "protocol",
        ),
        (
            "HMSG _INBOX.a.0 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n",
            "refused",
        ),
        ("-ERR 'Permissions Violation'\r\n", "refused"),
    ] {
        let (mut writer, _) = written(1);

        let error = writer.feed(answer.as_bytes()).unwrap_err();

        assert_eq!(error.kind(), kind, "{answer}");
        assert!(writer.to_send().is_err());
    }
}

proptest! {
    #[test]
    fn pieces_of_any_size_give_the_same_rows(cuts in proptest::collection::vec(0usize..2000, 0..30)) {
        let mut bytes = made("1", 0, 40);
        bytes.extend_from_slice(b"PING\r\n+OK\r\nINFO {}\r\n");
        bytes.extend_from_slice(&deliveries("1", 5, 40, 1, 0));
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let mut whole = reader("consumer", "");
        let mut pieces = reader("consumer", "");

        let expected = whole.feed(&bytes).unwrap();
        let mut found = Vec::new();
        for pair in cuts.windows(2) {
            found.extend(pieces.feed(&bytes[pair[0]..pair[1]]).unwrap());
        }

        prop_assert_eq!(found, expected);
        prop_assert_eq!(pieces.to_send(), whole.to_send());
        prop_assert!(pieces.is_finished());
    }

    #[test]
    fn no_bytes_break_a_reader_or_a_writer(
        source in prop_oneof!["consumer", "direct_get", "scan"],
        bytes in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..300),
            "(H?MSG _INBOX.a.(0.made|1|rows|made) 1 (\\$JS.ACK.S.c.1.2.1.4.5 )?[0-9]{1,2} ?[0-9]{0,2}\r\n\
              (NATS/1.0( 204| 404| 409)?\r\n(Jetlake-Size: 9\r\n)?\r\n)?[{}\":a-z0-9]{0,20}\r\n){0,4}".prop_map(String::into_bytes),
        ],
    ) {
        let mut reader = reader(&source, r#","decompress":"zlib","bad_payload":"null""#);
        let _ = reader.feed(&bytes);
        let _ = reader.flush();
        let _ = reader.to_send();
        let (mut writer, _) = written(1);
        let _ = writer.feed(&bytes);
    }
}
