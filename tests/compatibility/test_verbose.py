"""Verbose: `+OK` after each operation, in its place."""

from __future__ import annotations

import pytest

from tests.compatibility.wire import RawClient


@pytest.fixture
def verbose(client: RawClient) -> RawClient:
    client.connect(verbose=True, headers=True)
    return client


def test_ok_follows_sub_and_unsub(verbose: RawClient, subject: bytes) -> None:
    verbose.send(b"SUB %b 1\r\n" % subject)
    verbose.expect(b"+OK\r\n")

    verbose.send(b"UNSUB 1\r\n")
    verbose.expect(b"+OK\r\n")

    verbose.expect_pong()


def test_ok_follows_pub_and_hpub(verbose: RawClient, subject: bytes) -> None:
    verbose.send(b"PUB %b 2\r\nhi\r\n" % subject)
    verbose.expect(b"+OK\r\n")

    verbose.send(b"HPUB %b 12 14\r\nNATS/1.0\r\n\r\nhi\r\n" % subject)
    verbose.expect(b"+OK\r\n")

    verbose.expect_pong()


def test_ok_waits_for_the_payload(verbose: RawClient, subject: bytes) -> None:
    verbose.send(b"PUB %b 2\r\n" % subject)
    verbose.expect_silence()

    verbose.send(b"hi\r\n")

    verbose.expect(b"+OK\r\n")


def test_ok_does_not_follow_ping_or_pong(verbose: RawClient) -> None:
    verbose.send(b"PING\r\nPONG\r\nPING\r\n")

    verbose.expect(b"PONG\r\nPONG\r\n")
    verbose.expect_pong()


def test_ok_does_not_follow_ignored_operations(verbose: RawClient) -> None:
    verbose.send(b"+OK\r\nINFO {}\r\n")

    verbose.expect_pong()


def test_ok_comes_before_the_delivery(verbose: RawClient, subject: bytes) -> None:
    verbose.send(b"SUB %b 1\r\nPUB %b 2\r\nhi\r\n" % (subject, subject))

    verbose.expect(b"+OK\r\n+OK\r\nMSG %b 1 2\r\nhi\r\n" % subject)


def test_ok_keeps_the_order_of_the_operations(verbose: RawClient, subject: bytes) -> None:
    verbose.send(b"SUB %b 1\r\nPUB %b 1\r\na\r\nPING\r\nPUB %b 1\r\nb\r\nUNSUB 1\r\nPING\r\n" % ((subject,) * 3))

    message = b"MSG %b 1 1\r\n" % subject
    verbose.expect(
        b"+OK\r\n" + b"+OK\r\n" + message + b"a\r\nPONG\r\n" + b"+OK\r\n" + message + b"b\r\n" + b"+OK\r\nPONG\r\n"
    )


def test_ok_follows_a_duplicate_subscription_id(verbose: RawClient, subject: bytes) -> None:
    verbose.send(b"SUB %b 1\r\nSUB %b.other 1\r\n" % (subject, subject))

    verbose.expect(b"+OK\r\n+OK\r\n")


@pytest.mark.parametrize("line", [b"UNSUB 99", b"UNSUB 99 5"])
def test_ok_follows_unsub_of_an_unknown_id(verbose: RawClient, line: bytes) -> None:
    verbose.send(line + b"\r\n")

    verbose.expect(b"+OK\r\n")
    verbose.expect_pong()


def test_ok_follows_unsub_with_a_maximum(verbose: RawClient, subject: bytes) -> None:
    verbose.send(b"SUB %b 1\r\nUNSUB 1 5\r\n" % subject)

    verbose.expect(b"+OK\r\n+OK\r\n")
    verbose.expect_pong()


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        (b"SUB a..b 1\r\n", "Invalid Subject"),
        (b"SUB a _sys_ 1\r\n", 'Permissions Violation for Subscription to "a" using queue "_sys_"'),
        (b"PUB _GR_.x 2\r\nhi\r\n", 'Permissions Violation for Publish to "_GR_.x"'),
        (b"PUB x _R_.y 2\r\nhi\r\n", 'Permissions Violation for Publish with Reply of "_R_.y"'),
    ],
)
def test_error_takes_the_place_of_ok(verbose: RawClient, operation: bytes, text: str) -> None:
    verbose.send(operation)

    verbose.expect_error(text)
    verbose.expect_pong()


def test_pedantic_error_comes_before_the_ok(client: RawClient, subject: bytes) -> None:
    client.connect(verbose=True, pedantic=True)

    client.send(b"PUB %b.* 2\r\nhi\r\n" % subject)

    client.expect(b"-ERR 'Invalid Publish Subject'\r\n+OK\r\n")
    client.expect_pong()
