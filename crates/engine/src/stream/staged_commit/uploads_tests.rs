//! Uploads: what is taken, in which order, and what is dropped.

use super::*;
use proptest::prelude::*;

fn message(payload: &[u8]) -> HeldMessage<'_> {
    HeldMessage {
        subject: b"a",
        headers: b"",
        payload,
    }
}

fn accept(uploads: &mut Uploads, value: &str) -> Result<u64, u16> {
    take_from(uploads, 1, value, 0)
}

/// Connections below 10 belong to `ada`, the others to `bob`; that of number 99 is gone.
fn take_from(uploads: &mut Uploads, connection: u64, value: &str, now_ns: i64) -> Result<u64, u16> {
    let taken = uploads.accept(value.as_bytes(), connection, message(b"p"), now_ns);
    taken.map_err(|refusal| refusal.code)
}

fn find_user(connection_id: u64) -> Option<String> {
    match connection_id {
        99 => None,
        0..10 => Some("ada".to_owned()),
        _ => Some("bob".to_owned()),
    }
}

fn usage() -> Arc<AccountUsage> {
    Arc::new(AccountUsage::new(Arc::default()))
}

fn uploads() -> Uploads {
    Uploads::new(usage(), Arc::new(find_user))
}

#[test]
fn an_upload_is_there_when_it_has_ended() {
    let mut uploads = uploads();

    assert_eq!(accept(&mut uploads, "u/1/query/run"), Ok(1));
    assert_eq!(accept(&mut uploads, "u/2"), Ok(2));
    assert!(uploads.get("ada", "u", 2).is_err(), "it may go on");
    assert_eq!(accept(&mut uploads, "u/2/end"), Ok(2));

    assert_eq!(uploads.get("ada", "u", 2).unwrap().len(), 2);
    assert!(uploads.get("ada", "u", 3).is_err());
    assert_eq!(accept(&mut uploads, "u/3"), Err(400), "it has ended");
}

#[test]
fn a_gap_spoils_an_upload_and_no_other() {
    let mut uploads = uploads();
    accept(&mut uploads, "u/1/query/run").unwrap();
    accept(&mut uploads, "v/1/query/run").unwrap();

    assert_eq!(accept(&mut uploads, "u/3"), Err(400));
    assert_eq!(accept(&mut uploads, "u/2"), Err(400), "still");
    assert_eq!(accept(&mut uploads, "v/1/end"), Ok(1));
    assert_eq!(accept(&mut uploads, "w/2"), Err(404));
    assert_eq!(accept(&mut uploads, "v/1/query/run"), Err(400), "twice");
}

#[test]
fn a_new_run_of_a_query_drops_what_the_one_before_has_left() {
    let mut uploads = uploads();
    accept(&mut uploads, "u/1/query/run").unwrap();
    accept(&mut uploads, "o/1/other/run").unwrap();

    accept(&mut uploads, "v/1/query/again").unwrap();

    assert_eq!(accept(&mut uploads, "u/2"), Err(404));
    assert_eq!(accept(&mut uploads, "o/2"), Ok(2));
    uploads.drop_all("ada", &["v", "o"]);
    assert_eq!(uploads.usage.upload_bytes.held(), 0);
    assert!(uploads.open.is_empty());
}

#[test]
fn no_other_publisher_adds_to_an_upload_or_drops_it() {
    let mut uploads = uploads();
    take_from(&mut uploads, 1, "u/1/query/run", 0).unwrap();

    // Another run of a query with the same name, and an upload with the same id, belong to another user.
    assert_eq!(take_from(&mut uploads, 11, "u/1/query/another", 0), Ok(1));
    assert_eq!(take_from(&mut uploads, 11, "u/2", 0), Ok(2));
    uploads.drop_all("bob", &["u"]);
    assert_eq!(take_from(&mut uploads, 11, "u/3", 0), Err(404));

    assert_eq!(take_from(&mut uploads, 2, "u/2", 0), Ok(2), "the same user");
    assert_eq!(take_from(&mut uploads, 2, "u/2/end", 0), Ok(2));
    assert_eq!(uploads.get("ada", "u", 2).unwrap().len(), 2);
    assert_eq!(take_from(&mut uploads, 99, "w/1/query/run", 0), Err(403));
}

#[test]
fn whoever_may_commit_means_the_upload_that_was_there_first() {
    let mut uploads = uploads();
    take_from(&mut uploads, 1, "u/1/query/run", 0).unwrap();
    take_from(&mut uploads, 1, "u/1/end", 0).unwrap();
    // Another user has seen the id.
    take_from(&mut uploads, 11, "u/1/query/run", 0).unwrap();
    take_from(&mut uploads, 11, "u/2", 0).unwrap();
    take_from(&mut uploads, 11, "u/2/end", 0).unwrap();

    assert_eq!(uploads.get("driver", "u", 1).unwrap().len(), 1);
    assert!(uploads.get("driver", "u", 2).is_err());
    assert_eq!(uploads.get("bob", "u", 2).unwrap().len(), 2);
    uploads.drop_all("driver", &["u", "other"]);
    assert_eq!(uploads.get("driver", "u", 2).unwrap().len(), 2);
}

#[test]
fn idle_uploads_are_given_up() {
    let mut uploads = uploads();
    accept(&mut uploads, "u/1/query/run").unwrap();

    uploads.expire(IDLE_NS_MAX - 1);
    assert_eq!(accept(&mut uploads, "u/2"), Ok(2));
    uploads.expire(IDLE_NS_MAX + LOOK_NS);

    assert_eq!(accept(&mut uploads, "u/3"), Err(404));
    assert_eq!(uploads.usage.upload_bytes.held(), 0);
}

#[test]
fn an_upload_waits_as_long_as_another_task_of_its_query_sends_something() {
    let mut uploads = uploads();
    take_from(&mut uploads, 1, "u/1/query/run", 0).unwrap();
    take_from(&mut uploads, 1, "u/1/end", 0).unwrap();
    take_from(&mut uploads, 1, "v/1/query/run", IDLE_NS_MAX / 2).unwrap();

    uploads.expire(IDLE_NS_MAX);

    assert!(uploads.get("ada", "u", 1).is_ok());
    uploads.expire(IDLE_NS_MAX / 2 + IDLE_NS_MAX);
    assert!(uploads.get("ada", "u", 1).is_err());
}

#[test]
fn an_upload_waits_as_long_as_its_run_gives_a_sign_of_life() {
    let mut uploads = uploads();
    take_from(&mut uploads, 1, "u/1/query/run", 0).unwrap();
    take_from(&mut uploads, 1, "u/1/end", 0).unwrap();
    take_from(&mut uploads, 1, "o/1/other/run", 0).unwrap();
    let bytes = uploads.usage.upload_bytes.held();

    // A task that has not sent anything yet has no upload.
    let alive = take_from(&mut uploads, 2, "v/0/query/run", IDLE_NS_MAX / 2);
    assert_eq!(alive, Ok(0));
    assert_eq!(uploads.usage.upload_bytes.held(), bytes);
    // Another run, and another user, keep only their own.
    let later = IDLE_NS_MAX - 1;
    assert_eq!(take_from(&mut uploads, 1, "v/0/query/again", later), Ok(0));
    assert_eq!(take_from(&mut uploads, 11, "v/0/query/run", later), Ok(0));

    uploads.expire(IDLE_NS_MAX);
    assert!(uploads.get("ada", "u", 1).is_ok());
    assert_eq!(take_from(&mut uploads, 1, "o/2", IDLE_NS_MAX), Err(404));
    uploads.expire(IDLE_NS_MAX / 2 + IDLE_NS_MAX);
    assert!(uploads.get("ada", "u", 1).is_err());
    assert!(uploads.open.is_empty());
}

#[test]
fn one_account_cannot_take_what_another_may_upload() {
    let server = Arc::default();
    let accounts = [1, 2].map(|_| Arc::new(AccountUsage::new(Arc::clone(&server))));
    let of = |number: usize| Uploads::new(Arc::clone(&accounts[number]), Arc::new(find_user));
    let (mut one, mut other) = (of(0), of(1));
    let large = vec![0; 1 << 20];
    let mut refused = None;
    for number in 1..1024 {
        let value = match number {
            1 => "u/1/query/run".to_owned(),
            _ => format!("u/{number}"),
        };
        if let Err(refusal) = one.accept(value.as_bytes(), 1, message(&large), 0) {
            refused = Some(refusal.code);
            break;
        }
    }

    assert_eq!(refused, Some(413));
    assert_eq!(accept(&mut other, "u/1/query/run"), Ok(1));
    drop((one, other));
    assert_eq!(accounts.map(|account| account.upload_bytes.held()), [0, 0]);
}

proptest! {
    #[test]
    fn any_header_is_read(values in proptest::collection::vec("[a/1-3end ]{0,12}", 0..8)) {
        let mut uploads = uploads();
        for value in values {
            let _ = accept(&mut uploads, &value);
        }
    }

    #[test]
    fn any_bytes_are_read(value in proptest::collection::vec(any::<u8>(), 0..40)) {
        let _ = uploads().accept(&value, 1, message(b""), 0);
    }
}
