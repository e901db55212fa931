"""PUB and MSG: arguments, sizes, replies and delivery."""

from __future__ import annotations

import pytest

from tests.compatibility.wire import RawClient


@pytest.fixture
def connected(client: RawClient) -> RawClient:
    client.connect()
    return client


def test_message_reaches_a_subscriber_of_another_connection(
    connected: RawClient, other_client: RawClient, subject: bytes
) -> None:
    other_client.connect()
    other_client.send(b"SUB %b 9\r\n" % subject)
    other_client.expect_pong()

    connected.send(b"PUB %b 5\r\nhello\r\n" % subject)

    other_client.expect(b"MSG %b 9 5\r\nhello\r\n" % subject)


def test_message_carries_the_reply_subject(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b 1\r\nPUB %b the.reply 5\r\nhello\r\n" % (subject, subject))

    connected.expect(b"MSG %b 1 the.reply 5\r\nhello\r\n" % subject)


def test_message_may_be_empty(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b 1\r\nPUB %b 0\r\n\r\n" % (subject, subject))

    connected.expect(b"MSG %b 1 0\r\n\r\n" % subject)


def test_message_payload_is_any_bytes(connected: RawClient, subject: bytes) -> None:
    payload = bytes(range(256)) * 3

    connected.send(b"SUB %b 1\r\nPUB %b %d\r\n%b\r\n" % (subject, subject, len(payload), payload))

    connected.expect(b"MSG %b 1 %d\r\n%b\r\n" % (subject, len(payload), payload))


def test_messages_of_one_publisher_keep_their_order(
    connected: RawClient, other_client: RawClient, subject: bytes
) -> None:
    count = 1000
    other_client.connect()
    other_client.send(b"SUB %b.> 1\r\n" % subject)
    other_client.expect_pong()

    for number in range(count):
        connected.send(b"PUB %b.%d %d\r\n%d\r\n" % (subject, number % 7, len(str(number)), number))

    for number in range(count):
        other_client.expect(b"MSG %b.%d 1 %d\r\n%d\r\n" % (subject, number % 7, len(str(number)), number))


@pytest.mark.parametrize("size", [b"2", b"02", b"002", b"000000002"])
def test_size_is_echoed_as_it_was_written(connected: RawClient, subject: bytes, size: bytes) -> None:
    connected.send(b"SUB %b 1\r\nPUB %b %b\r\nhi\r\n" % (subject, subject, size))

    connected.expect(b"MSG %b 1 %b\r\nhi\r\n" % (subject, size))


@pytest.mark.parametrize(
    "size", [b"-1", b"+2", b"2x", b"x", b"0x2", b"2.0", b"1e1", b"0000000002", b"1234567890", b"99999999999999999999"]
)
def test_malformed_size_closes_silently(connected: RawClient, subject: bytes, size: bytes) -> None:
    connected.send(b"SUB %b 1\r\nPUB %b %b\r\nhi\r\n" % (subject, subject, size))

    connected.expect_closed()


def test_publish_to_nobody_is_no_error(connected: RawClient, subject: bytes) -> None:
    connected.send(b"PUB %b 2\r\nhi\r\n" % subject)

    connected.expect_pong()


@pytest.mark.parametrize(
    "reply", [b"a..b", b".", b"..", b"x.", b".x", b"*", b">", b"a.>.b", b"\x00", b"\xff\xfe", b'"', b"_R_", b"$JS.ACK"]
)
def test_reply_is_any_word(connected: RawClient, subject: bytes, reply: bytes) -> None:
    connected.send(b"SUB %b 1\r\nPUB %b %b 2\r\nhi\r\n" % (subject, subject, reply))

    connected.expect(b"MSG %b 1 %b 2\r\nhi\r\n" % (subject, reply))


@pytest.mark.parametrize("reply", [b"_R_.x", b"_R_.", b"$JS.ACK.x", b"$JS.ACK.a.b", b"_GR_.x", b"_GR_.a.b"])
def test_reply_with_a_reserved_prefix_is_a_violation(connected: RawClient, subject: bytes, reply: bytes) -> None:
    connected.send(b"SUB %b 1\r\nPUB %b %b 2\r\nhi\r\n" % (subject, subject, reply))

    connected.expect_error(f'Permissions Violation for Publish with Reply of "{reply.decode()}"')
    connected.expect_pong()


@pytest.mark.parametrize("name", [b"_GR_.x", b"_GR_.a.b.c", b"$NRG.x", b"$NRG.a.b"])
def test_publish_to_a_reserved_subject_is_a_violation(connected: RawClient, name: bytes) -> None:
    connected.send(b"SUB %b 1\r\nPUB %b 2\r\nhi\r\n" % (name, name))

    connected.expect_error(f'Permissions Violation for Publish to "{name.decode()}"')
    connected.expect_pong()


@pytest.mark.parametrize("name", [b"$SYS.hello", b"$JS.hello", b"$JS.API.hello", b"_INBOX.hello", b"$KV.b.k", b"_R_.x"])
def test_publish_to_other_namespaces_is_ordinary(connected: RawClient, subject: bytes, name: bytes) -> None:
    name += b"." + subject

    connected.send(b"SUB %b 1\r\nPUB %b 2\r\nhi\r\n" % (name, name))

    connected.expect(b"MSG %b 1 2\r\nhi\r\n" % name)


@pytest.mark.parametrize("pattern", [b"*", b">"])
def test_publish_to_a_wildcard_reaches_wildcard_subscriptions(
    connected: RawClient, subject: bytes, pattern: bytes
) -> None:
    connected.send(b"SUB %b.%b 1\r\nPUB %b.* 2\r\nhi\r\n" % (subject, pattern, subject))

    connected.expect(b"MSG %b.* 1 2\r\nhi\r\n" % subject)


def test_publish_to_a_wildcard_does_not_reach_other_literals(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b.one 1\r\nPUB %b.* 2\r\nhi\r\nPUB %b.> 2\r\nhi\r\n" % (subject, subject, subject))

    connected.expect_pong()


def test_publish_to_a_full_wildcard_reaches_the_same_subscription(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b.> 1\r\nPUB %b.> 2\r\nhi\r\n" % (subject, subject))

    connected.expect(b"MSG %b.> 1 2\r\nhi\r\n" % subject)


@pytest.mark.parametrize("name", [b"%b..x", b"%b.", b".%b", b"%b.x..y"])
def test_publish_to_a_subject_with_an_empty_token_matches_nobody(
    connected: RawClient, subject: bytes, name: bytes
) -> None:
    connected.send(b"SUB > 1\r\nSUB %b.> 2\r\nSUB %b.*.* 3\r\nSUB %b.* 4\r\n" % (subject, subject, subject))

    connected.send(b"PUB %b 2\r\nhi\r\nUNSUB 1\r\n" % (name % subject))

    connected.expect_pong()


def test_pedantic_publish_to_a_wildcard_is_reported_and_still_delivered(client: RawClient, subject: bytes) -> None:
    client.connect(pedantic=True)

    client.send(b"SUB %b.> 1\r\nPUB %b.* 2\r\nhi\r\n" % (subject, subject))

    client.expect(b"-ERR 'Invalid Publish Subject'\r\nMSG %b.* 1 2\r\nhi\r\n" % subject)
    client.expect_pong()


@pytest.mark.parametrize("name", [b"a..b", b"a.", b".a", b"a.>", b">", b"*", b"a.*.b", b"a.>.b"])
def test_pedantic_publish_refuses_subjects_that_are_not_literal(client: RawClient, name: bytes) -> None:
    client.connect(pedantic=True)

    client.send(b"PUB %b 2\r\nhi\r\n" % name)

    client.expect_error("Invalid Publish Subject")
    client.expect_pong()


@pytest.mark.parametrize("name", [b"a", b"a.b", b"a*.b", b"a>", b"*a", b"\xff", b"\x01"])
def test_pedantic_publish_accepts_literals(client: RawClient, subject: bytes, name: bytes) -> None:
    client.connect(pedantic=True)

    client.send(b"PUB %b.%b 2\r\nhi\r\n" % (subject, name))

    client.expect_pong()


def test_pedantic_refusal_does_not_wait_for_the_payload(client: RawClient, subject: bytes) -> None:
    client.connect(pedantic=True)

    client.send(b"PUB %b.* 2\r\n" % subject)

    client.expect_error("Invalid Publish Subject")


def test_pedantic_refusal_comes_even_when_the_payload_is_malformed(client: RawClient, subject: bytes) -> None:
    client.connect(pedantic=True)

    client.send(b"PUB %b.* 2\r\nhello\r\n" % subject)

    client.expect_error("Invalid Publish Subject")
    client.expect_error_and_closed("Unknown Protocol Operation")


@pytest.mark.parametrize(
    "line", [b"PUB %b.* -1", b"PUB %b.* x", b"PUB %b.* r r 2", b"PUB %b.*", b"HPUB %b.* 12 14", b"HPUB %b.* 12"]
)
def test_pedantic_refusal_does_not_come_when_the_line_is_malformed(
    client: RawClient, subject: bytes, line: bytes
) -> None:
    client.connect(pedantic=True, headers=False)

    client.send(line % subject + b"\r\nhi\r\n")

    client.expect_closed()


def test_pedantic_refusal_does_not_come_when_the_payload_is_too_large(client: RawClient, subject: bytes) -> None:
    client.connect(pedantic=True)

    client.send(b"PUB %b.* 1048577\r\n" % subject)

    client.expect_error_and_closed("Maximum Payload Violation")


def test_pedantic_hpub_refuses_wildcards_too(client: RawClient, subject: bytes) -> None:
    client.connect(pedantic=True, headers=True)

    client.send(b"HPUB %b.* 12 12\r\nNATS/1.0\r\n\r\n\r\n" % subject)

    client.expect_error("Invalid Publish Subject")
    client.expect_pong()
