"""SUB and UNSUB: subscription ids, several subscriptions, and who gets how many copies."""

from __future__ import annotations

import pytest

from tests.compatibility.wire import RawClient


@pytest.fixture
def connected(client: RawClient) -> RawClient:
    client.connect()
    return client


@pytest.mark.parametrize("sid", [b"1", b"0", b"007", b"abc", b"a.b", b"-5", b"*", b"\x00", b"\xff", b'"', b"x" * 300])
def test_subscription_id_is_any_word(connected: RawClient, subject: bytes, sid: bytes) -> None:
    connected.send(b"SUB %b %b\r\nPUB %b 2\r\nhi\r\n" % (subject, sid, subject))

    connected.expect(b"MSG %b %b 2\r\nhi\r\n" % (subject, sid))


def test_each_matching_subscription_of_a_connection_gets_a_copy(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b.x 1\r\nSUB %b.* 2\r\nSUB %b.> 3\r\nSUB %b.x 4\r\n" % ((subject,) * 4))

    connected.send(b"PUB %b.x 2\r\nhi\r\n" % subject)

    frames = {connected.read_line() for _ in range(4)}
    assert frames == {b"MSG %b.x %d 2\r\nhi\r\n" % (subject, sid) for sid in (1, 2, 3, 4)}
    connected.expect_pong()


def test_each_subscribed_connection_gets_a_copy(connected: RawClient, other_client: RawClient, subject: bytes) -> None:
    other_client.connect()
    other_client.send(b"SUB %b 5\r\n" % subject)
    other_client.expect_pong()

    connected.send(b"SUB %b 1\r\nPUB %b 2\r\nhi\r\n" % (subject, subject))

    connected.expect(b"MSG %b 1 2\r\nhi\r\n" % subject)
    other_client.expect(b"MSG %b 5 2\r\nhi\r\n" % subject)


def test_duplicate_subscription_id_is_ignored_silently(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b.first 1\r\nSUB %b.second 1\r\n" % (subject, subject))

    connected.send(b"PUB %b.second 2\r\nno\r\nPUB %b.first 3\r\nyes\r\n" % (subject, subject))

    connected.expect(b"MSG %b.first 1 3\r\nyes\r\n" % subject)
    connected.expect_pong()


def test_duplicate_subscription_id_is_ignored_before_its_subject_is_looked_at(
    connected: RawClient, subject: bytes
) -> None:
    connected.send(b"SUB %b 1\r\nSUB a..b 1\r\n" % subject)

    connected.expect_pong()


def test_duplicate_subscription_id_does_not_double_the_messages(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b 1\r\nSUB %b 1\r\nPUB %b 2\r\nhi\r\n" % (subject, subject, subject))

    connected.expect(b"MSG %b 1 2\r\nhi\r\n" % subject)
    connected.expect_pong()


def test_duplicate_subscription_id_does_not_join_a_queue_group(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b 1\r\nSUB %b group 1\r\nPUB %b 2\r\nhi\r\n" % (subject, subject, subject))

    connected.expect(b"MSG %b 1 2\r\nhi\r\n" % subject)
    connected.expect_pong()


def test_same_subscription_id_on_two_connections_is_two_subscriptions(
    connected: RawClient, other_client: RawClient, subject: bytes
) -> None:
    other_client.connect()
    other_client.send(b"SUB %b 1\r\n" % subject)
    other_client.expect_pong()

    connected.send(b"SUB %b 1\r\nUNSUB 1\r\nPUB %b 2\r\nhi\r\n" % (subject, subject))

    other_client.expect(b"MSG %b 1 2\r\nhi\r\n" % subject)
    connected.expect_pong()


def test_unsub_ends_the_subscription(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b 1\r\nUNSUB 1\r\nPUB %b 2\r\nhi\r\n" % (subject, subject))

    connected.expect_pong()


def test_unsub_of_one_subscription_leaves_the_others(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b 1\r\nSUB %b 2\r\nUNSUB 1\r\nPUB %b 2\r\nhi\r\n" % (subject, subject, subject))

    connected.expect(b"MSG %b 2 2\r\nhi\r\n" % subject)
    connected.expect_pong()


@pytest.mark.parametrize("line", [b"UNSUB 99", b"UNSUB nobody", b"UNSUB 99 5"])
def test_unsub_of_an_unknown_id_is_ignored(connected: RawClient, line: bytes) -> None:
    connected.send(line + b"\r\n")

    connected.expect_pong()


def test_subscription_id_may_be_used_again_after_unsub(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b.old 1\r\nUNSUB 1\r\nSUB %b.new 1\r\n" % (subject, subject))

    connected.send(b"PUB %b.old 2\r\nno\r\nPUB %b.new 3\r\nyes\r\n" % (subject, subject))

    connected.expect(b"MSG %b.new 1 3\r\nyes\r\n" % subject)
    connected.expect_pong()


def test_subscriptions_end_with_their_connection(connected: RawClient, other_client: RawClient, subject: bytes) -> None:
    other_client.connect()
    other_client.send(b"SUB %b group 1\r\nSUB %b.sync 2\r\n" % (subject, subject))
    other_client.expect_pong()
    connected.send(b"SUB %b group 1\r\n" % subject)

    # The other end may take a moment to notice the close, so the close is confirmed by an -ERR first.
    other_client.send(b"NONSENSE\r\n")
    other_client.expect_error_and_closed("Unknown Protocol Operation")
    other_client.close()

    connected.send(b"PUB %b 2\r\nhi\r\n" % subject * 20)
    connected.expect(b"MSG %b 1 2\r\nhi\r\n" % subject * 20)


def test_messages_published_before_a_subscription_are_not_delivered(connected: RawClient, subject: bytes) -> None:
    connected.send(b"PUB %b 2\r\nno\r\nSUB %b 1\r\nPUB %b 3\r\nyes\r\n" % (subject, subject, subject))

    connected.expect(b"MSG %b 1 3\r\nyes\r\n" % subject)
    connected.expect_pong()


def test_ten_thousand_subscriptions_on_one_connection(connected: RawClient, subject: bytes) -> None:
    count = 10_000
    connected.send(b"".join(b"SUB %b.%d %d\r\n" % (subject, number, number) for number in range(count)))

    connected.send(b"".join(b"PUB %b.%d 1\r\nx\r\n" % (subject, number) for number in range(0, count, 1000)))

    connected.expect(
        b"".join(b"MSG %b.%d %d 1\r\nx\r\n" % (subject, number, number) for number in range(0, count, 1000))
    )
    connected.expect_pong()
