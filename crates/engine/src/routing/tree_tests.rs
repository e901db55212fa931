//! The tree against the plain meaning of wildcards.

use super::*;
use crate::config::connection_type::ConnectionType;
use crate::routing::clients::connection::Connection;
use crate::routing::subscription::{Receiver, Restrictions};
use crate::transport::outbox::Outbox;
use proptest::prelude::*;

fn connection() -> Arc<Connection> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let socket = mio::net::TcpStream::connect(address).unwrap();
    Arc::new(Connection::new(
        1,
        ConnectionType::Standard,
        0,
        0,
        address,
        Outbox::new(Arc::new(socket), 1024),
    ))
}

fn subscription(
    connection: &Arc<Connection>,
    subject: &str,
    queue: Option<&str>,
) -> Arc<Subscription> {
    Arc::new(Subscription::new(
        Receiver::Connection(Arc::clone(connection)),
        subject.as_bytes(),
        queue.map(str::as_bytes),
        b"1",
        Restrictions::default(),
    ))
}

fn matches(pattern: &[&str], tokens: &[&str]) -> bool {
    match (pattern, tokens) {
        ([], []) => true,
        ([">"], [_, ..]) => true,
        ([first, pattern @ ..], [token, tokens @ ..]) => {
            (*first == "*" || first == token) && matches(pattern, tokens)
        }
        _ => false,
    }
}

#[test]
fn members_of_queue_groups_are_listed_too() {
    let connection = connection();
    let mut tree = SubscriptionTree::default();
    for (subject, queue) in [
        ("a", Some("q")),
        ("a", Some("q")),
        ("b.>", Some("r")),
        ("*", None),
    ] {
        tree.insert(subscription(&connection, subject, queue));
    }

    assert_eq!(tree.all().len(), 4);
}

#[test]
fn one_group_name_on_several_subjects_is_one_group() {
    let connection = connection();
    let mut tree = SubscriptionTree::default();
    for subject in ["foo.*", "foo.>", "foo.bar"] {
        tree.insert(subscription(&connection, subject, Some("q")));
    }

    let routes = tree.find(b"foo.bar");

    assert_eq!(routes.groups.len(), 1);
    assert_eq!(routes.groups[0].members.len(), 3);
}

#[test]
fn tens_of_thousands_on_one_subject_come_and_go_in_time_that_grows_with_their_number() {
    const COUNT: usize = 100_000;
    let connection = connection();
    let names: Vec<String> = (0..COUNT).map(|number| format!("q{number}")).collect();
    let queues: [fn(&str) -> Option<&str>; 3] = [|_| None, |_| Some("q"), |name| Some(name)];
    for queue_of in queues {
        let mut tree = SubscriptionTree::default();
        let all: Vec<_> = names
            .iter()
            .map(|name| subscription(&connection, "same", queue_of(name)))
            .collect();
        let wild = subscription(&connection, "*", queue_of(&names[7]));
        let began = std::time::Instant::now();

        for one in all.iter().chain([&wild]) {
            tree.insert(Arc::clone(one));
        }
        let routes = tree.find(b"same");
        let members = routes.groups.iter().map(|group| group.members.len());
        assert_eq!(routes.plain.len() + members.sum::<usize>(), COUNT + 1);
        for one in all
            .iter()
            .rev()
            .step_by(2)
            .chain(all.iter().rev().skip(1).step_by(2))
        {
            assert!(tree.remove(one) && !tree.remove(one));
        }

        // Quadratic, it would be minutes.
        assert!(began.elapsed() < std::time::Duration::from_secs(30));
        assert_eq!(tree.count(), 1);
        assert!(tree.remove(&wild) && tree.root.is_empty());
    }
}

#[test]
fn subscriptions_of_this_server_are_weighed_without_looking_at_each() {
    let connection = connection();
    let mut tree = SubscriptionTree::default();
    let all: Vec<_> = (0..1_000)
        .map(|number| subscription(&connection, "same", (number % 2 == 0).then_some("q")))
        .collect();
    let looked_at = std::cell::Cell::new(0);
    let weight_of = |_: &Subscription| {
        looked_at.set(looked_at.get() + 1);
        1
    };
    for one in &all {
        tree.insert(Arc::clone(one));
    }

    assert_eq!(tree.weight(b"same", Some(b"q"), &weight_of), 500);
    assert_eq!(tree.weight(b"same", None, &weight_of), 1);
    assert_eq!(tree.weight(b"same", Some(b"other"), &weight_of), 0);
    assert_eq!(looked_at.get(), 2);
    all[0].end();
    tree.remove(&all[0]);
    assert_eq!(tree.weight(b"same", Some(b"q"), &weight_of), 499);
    assert_eq!(tree.weight(b"same", Some(b"q"), &|_| 0), 0);
}

#[test]
fn a_subject_with_an_empty_token_reaches_nobody() {
    let connection = connection();
    let mut tree = SubscriptionTree::default();
    tree.insert(subscription(&connection, ">", None));

    assert!(tree.find(b"a..b").plain.is_empty());
    assert_eq!(tree.find(b"a.b").plain.len(), 1);
}

proptest! {
    #[test]
    fn the_tree_finds_exactly_what_matches_and_is_empty_in_the_end(
        patterns in proptest::collection::vec("[ab*]([.][ab*]){0,2}([.]>)?|>", 1..20),
        subject in "[abc]([.][abc]){0,3}",
        removed in any::<proptest::sample::Index>(),
    ) {
        let connection = connection();
        let mut tree = SubscriptionTree::default();
        let mut all: Vec<_> = patterns.iter().map(|pattern| subscription(&connection, pattern, None)).collect();
        for one in &all {
            tree.insert(Arc::clone(one));
        }
        let gone = all.swap_remove(removed.index(all.len()));
        prop_assert!(tree.remove(&gone));
        prop_assert!(!tree.remove(&gone));

        let tokens: Vec<&str> = subject.split('.').collect();
        let expected = all.iter().filter(|one| {
            let text = std::str::from_utf8(&one.subject).unwrap();
            matches(&text.split('.').collect::<Vec<_>>(), &tokens)
        }).count();
        prop_assert_eq!(tree.find(subject.as_bytes()).plain.len(), expected);

        let listed = tree.all();
        prop_assert_eq!(listed.len(), all.len());
        prop_assert!(all.iter().all(|one| listed.iter().any(|other| Arc::ptr_eq(one, other))));

        for one in &all {
            prop_assert!(tree.remove(one));
        }
        prop_assert!(tree.root.is_empty());
        prop_assert_eq!(tree.count(), 0);
        prop_assert_eq!(tree.inserted(), patterns.len() as u64);
    }
}

#[test]
fn answers_of_one_inbox_are_decided_by_what_their_subjects_begin_with() {
    let connection = connection();
    let mut tree = SubscriptionTree::default();
    for subject in [
        "_INBOX.a.*",
        "_INBOX.b.*",
        "$JS.ACK.S.C.*.*.*.*.*",
        "other.x.y",
    ] {
        tree.insert(subscription(&connection, subject, None));
    }
    let deciding =
        |tree: &SubscriptionTree, subject: &str| tree.find_deciding(subject.as_bytes()).1;

    assert_eq!(deciding(&tree, "_INBOX.a.1"), 2);
    assert_eq!(deciding(&tree, "$JS.ACK.S.C.1.2.3.4.5"), 4);
    assert_eq!(deciding(&tree, "other.x.y"), 3);
    tree.insert(subscription(&connection, "_INBOX.a.7", None));
    assert_eq!(deciding(&tree, "_INBOX.a.1"), 3);
}

/// A receiver inside the server that accepts nothing.
struct Inside {
    stores: bool,
    wants_unstored: bool,
}

impl Sink for Inside {
    fn accept(
        &self,
        _publisher: &crate::routing::router::Publisher<'_>,
        _publish: &crate::wire::Publish<'_>,
        _staging: &mut crate::routing::staging::Staging,
    ) -> bool {
        false
    }

    fn finish_read(&self) {}

    fn stores(&self) -> bool {
        self.stores
    }

    fn wants_unstored(&self) -> bool {
        self.wants_unstored
    }
}

#[test]
fn who_wants_what_nobody_stores_is_passed_over_where_somebody_does() {
    let inside = |subject: &str, stores, wants_unstored| {
        Arc::new(Subscription::new(
            Receiver::Sink(Arc::new(Inside {
                stores,
                wants_unstored,
            })),
            subject.as_bytes(),
            None,
            b"",
            Restrictions::default(),
        ))
    };
    let template = inside("orders.*", false, true);
    let stream = inside("orders.new", true, false);
    let client = subscription(&connection(), "orders.>", None);
    let mut tree = SubscriptionTree::default();
    for subscription in [&template, &stream, &client] {
        tree.insert(Arc::clone(subscription));
    }

    let has = |tree: &SubscriptionTree, subject: &[u8], wanted: &Arc<Subscription>| {
        let routes = tree.find(subject);
        routes.plain.iter().any(|found| Arc::ptr_eq(found, wanted))
    };

    assert!(has(&tree, b"orders.old", &template));
    assert!(has(&tree, b"orders.old", &client));
    assert!(!has(&tree, b"orders.new", &template));
    assert!(has(&tree, b"orders.new", &stream) && has(&tree, b"orders.new", &client));
    tree.remove(&stream);
    assert!(has(&tree, b"orders.new", &template));
}

#[test]
fn a_subject_of_any_number_of_tokens_needs_little_of_the_stack() {
    const TOKENS: usize = 100_000;
    let work = || {
        let connection = connection();
        let deep = ["a"; TOKENS].join(".");
        let kept = subscription(&connection, "a.b", None);
        let mut tree = SubscriptionTree::default();
        tree.insert(Arc::clone(&kept));
        for subject in [deep.clone(), format!("{deep}.>"), "*.".repeat(TOKENS) + "x"] {
            let one = subscription(&connection, &subject, None);
            tree.insert(Arc::clone(&one));
            assert_eq!(tree.all().len(), 2);
            assert!(tree.find(deep.as_bytes()).plain.len() <= 1);
            assert!(tree.remove(&one) && !tree.remove(&one));
        }
        tree.insert(subscription(&connection, &deep, None));
        assert_eq!(tree.find(b"a.b").plain.len(), 1);
        drop(tree);
    };
    let thread = std::thread::Builder::new().stack_size(256 * 1024);

    thread.spawn(work).unwrap().join().unwrap();
}
