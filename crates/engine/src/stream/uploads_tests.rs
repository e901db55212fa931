//! Uploads: what is taken, in which order, and what is dropped.

use super::*;
use proptest::prelude::*;

fn message(payload: &[u8]) -> Held<'_> {
    Held {
        subject: b"a",
        headers: b"",
        payload,
    }
}

fn take(uploads: &mut Uploads, value: &str) -> Result<u64, u16> {
    let taken = uploads.take(value.as_bytes(), message(b"p"), 0);
    taken.map_err(|refusal| refusal.code)
}

fn uploads() -> Uploads {
    Uploads::new(Arc::default())
}

#[test]
fn an_upload_is_there_when_it_has_ended() {
    let mut uploads = uploads();

    assert_eq!(take(&mut uploads, "u/1/query/run"), Ok(1));
    assert_eq!(take(&mut uploads, "u/2"), Ok(2));
    assert!(uploads.get("u", 2).is_err(), "it may go on");
    assert_eq!(take(&mut uploads, "u/2/end"), Ok(2));

    assert_eq!(uploads.get("u", 2).unwrap().len(), 2);
    assert!(uploads.get("u", 3).is_err());
    assert_eq!(take(&mut uploads, "u/3"), Err(400), "it has ended");
}

#[test]
fn a_gap_spoils_an_upload_and_no_other() {
    let mut uploads = uploads();
    take(&mut uploads, "u/1/query/run").unwrap();
    take(&mut uploads, "v/1/query/run").unwrap();

    assert_eq!(take(&mut uploads, "u/3"), Err(400));
    assert_eq!(take(&mut uploads, "u/2"), Err(400), "still");
    assert_eq!(take(&mut uploads, "v/1/end"), Ok(1));
    assert_eq!(take(&mut uploads, "w/2"), Err(404));
    assert_eq!(take(&mut uploads, "v/1/query/run"), Err(400), "twice");
}

#[test]
fn a_new_run_of_a_query_drops_what_the_one_before_has_left() {
    let mut uploads = uploads();
    take(&mut uploads, "u/1/query/run").unwrap();
    take(&mut uploads, "o/1/other/run").unwrap();

    take(&mut uploads, "v/1/query/again").unwrap();

    assert_eq!(take(&mut uploads, "u/2"), Err(404));
    assert_eq!(take(&mut uploads, "o/2"), Ok(2));
    uploads.drop_all(&["v", "o"]);
    assert_eq!(uploads.bytes_of_server.load(Ordering::Relaxed), 0);
}

#[test]
fn idle_uploads_are_given_up() {
    let mut uploads = uploads();
    take(&mut uploads, "u/1/query/run").unwrap();

    uploads.expire(IDLE_NS_MAX - 1);
    assert_eq!(take(&mut uploads, "u/2"), Ok(2));
    uploads.expire(IDLE_NS_MAX);

    assert_eq!(take(&mut uploads, "u/3"), Err(404));
    assert_eq!(uploads.bytes_of_server.load(Ordering::Relaxed), 0);
}

#[test]
fn what_is_too_much_for_the_server_is_refused_and_costs_nothing() {
    let full = Arc::new(AtomicUsize::new(UPLOADED_BYTES_MAX - 100));
    let mut uploads = Uploads::new(Arc::clone(&full));

    let large = uploads.take(b"u/1/query/run", message(&[0; 100]), 0);

    assert_eq!(large.unwrap_err().code, 413);
    drop(uploads);
    assert_eq!(full.load(Ordering::Relaxed), UPLOADED_BYTES_MAX - 100);
}

proptest! {
    #[test]
    fn any_header_is_read(values in proptest::collection::vec("[a/1-3end ]{0,12}", 0..8)) {
        let mut uploads = uploads();
        for value in values {
            let _ = take(&mut uploads, &value);
        }
    }

    #[test]
    fn any_bytes_are_read(value in proptest::collection::vec(any::<u8>(), 0..40)) {
        let _ = uploads().take(&value, message(b""), 0);
    }
}
