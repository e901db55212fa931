"""UNSUB with a maximum: the subscription ends with its Nth message."""

from __future__ import annotations

import pytest

from tests.compatibility.wire import RawClient


@pytest.fixture
def connected(client: RawClient) -> RawClient:
    client.connect()
    return client


def publish(client: RawClient, subject: bytes, count: int) -> None:
    client.send(b"PUB %b 2\r\nhi\r\n" % subject * count)


def expect_messages(client: RawClient, subject: bytes, count: int) -> None:
    """Expect exactly `count` messages for subscription 1."""
    client.expect(b"MSG %b 1 2\r\nhi\r\n" % subject * count)
    client.expect_pong()


@pytest.mark.parametrize("maximum", [1, 2, 5])
def test_subscription_ends_with_the_nth_message(connected: RawClient, subject: bytes, maximum: int) -> None:
    connected.send(b"SUB %b 1\r\nUNSUB 1 %d\r\n" % (subject, maximum))

    publish(connected, subject, 10)

    expect_messages(connected, subject, maximum)


def test_messages_before_unsub_count(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b 1\r\n" % subject)
    publish(connected, subject, 3)
    expect_messages(connected, subject, 3)

    connected.send(b"UNSUB 1 5\r\n")
    publish(connected, subject, 10)

    expect_messages(connected, subject, 2)


@pytest.mark.parametrize("maximum", [1, 2, 3])
def test_maximum_already_reached_ends_at_once(connected: RawClient, subject: bytes, maximum: int) -> None:
    connected.send(b"SUB %b 1\r\n" % subject)
    publish(connected, subject, 3)
    expect_messages(connected, subject, 3)

    connected.send(b"UNSUB 1 %d\r\n" % maximum)
    publish(connected, subject, 10)

    connected.expect_pong()


@pytest.mark.parametrize(("first", "second"), [(5, 2), (2, 5), (3, 3)])
def test_later_maximum_overrides(connected: RawClient, subject: bytes, first: int, second: int) -> None:
    connected.send(b"SUB %b 1\r\nUNSUB 1 %d\r\nUNSUB 1 %d\r\n" % (subject, first, second))

    publish(connected, subject, 10)

    expect_messages(connected, subject, second)


def test_unsub_without_maximum_overrides(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b 1\r\nUNSUB 1 5\r\nUNSUB 1\r\n" % subject)

    publish(connected, subject, 10)

    connected.expect_pong()


@pytest.mark.parametrize("maximum", [b"0", b"-1", b"abc", b"1x", b"+3", b"3.0", b"0x5"])
def test_maximum_that_is_no_positive_number_ends_at_once(connected: RawClient, subject: bytes, maximum: bytes) -> None:
    connected.send(b"SUB %b 1\r\nUNSUB 1 %b\r\n" % (subject, maximum))

    publish(connected, subject, 10)

    connected.expect_pong()


@pytest.mark.parametrize("maximum", [b"2", b"02", b"000000002"])
def test_maximum_may_have_leading_zeros(connected: RawClient, subject: bytes, maximum: bytes) -> None:
    connected.send(b"SUB %b 1\r\nUNSUB 1 %b\r\n" % (subject, maximum))

    publish(connected, subject, 10)

    expect_messages(connected, subject, 2)


def test_subscription_id_may_be_used_again_after_the_last_message(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b 1\r\nUNSUB 1 1\r\n" % subject)
    publish(connected, subject, 2)
    expect_messages(connected, subject, 1)

    connected.send(b"SUB %b 1\r\n" % subject)
    publish(connected, subject, 2)

    expect_messages(connected, subject, 2)


def test_count_starts_anew_with_a_new_subscription(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b 1\r\n" % subject)
    publish(connected, subject, 3)
    expect_messages(connected, subject, 3)
    connected.send(b"UNSUB 1\r\nSUB %b 1\r\nUNSUB 1 2\r\n" % subject)

    publish(connected, subject, 10)

    expect_messages(connected, subject, 2)


def test_maximum_of_one_subscription_leaves_the_others(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b 1\r\nSUB %b 2\r\nUNSUB 2 1\r\n" % (subject, subject))

    publish(connected, subject, 3)

    frames = [connected.read_line().split(b" ")[2] for _ in range(4)]
    assert sorted(frames) == [b"1", b"1", b"1", b"2"]
    connected.expect_pong()


def test_maximum_of_a_group_member_hands_over_to_the_others(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b group 1\r\nSUB %b group 2\r\nUNSUB 1 3\r\n" % (subject, subject))

    publish(connected, subject, 200)

    frames = [connected.read_line().split(b" ")[2] for _ in range(200)]
    assert frames.count(b"1") == 3
    connected.expect_pong()


def test_maximum_counts_messages_of_other_connections(
    connected: RawClient, other_client: RawClient, subject: bytes
) -> None:
    other_client.connect()
    connected.send(b"SUB %b 1\r\nUNSUB 1 2\r\nSUB %b.end 9\r\n" % (subject, subject))
    connected.expect_pong()

    publish(other_client, subject, 5)
    other_client.send(b"PUB %b.end 0\r\n\r\n" % subject)

    connected.expect(b"MSG %b 1 2\r\nhi\r\n" % subject * 2 + b"MSG %b.end 9 0\r\n\r\n" % subject)


def test_echo_off_messages_do_not_count(client: RawClient, other_client: RawClient, subject: bytes) -> None:
    client.connect(echo=False)
    other_client.connect()
    client.send(b"SUB %b 1\r\nUNSUB 1 2\r\n" % subject)
    publish(client, subject, 5)
    client.expect_pong()

    publish(other_client, subject, 5)

    client.expect(b"MSG %b 1 2\r\nhi\r\n" % subject * 2)
    other_client.expect_pong()
    client.expect_pong()
