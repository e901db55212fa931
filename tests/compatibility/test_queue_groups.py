"""Queue groups: one member of each group gets a message."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.compatibility.wire import RawClient


@pytest.fixture
def connected(client: RawClient) -> RawClient:
    client.connect()
    return client


def read_sids(client: RawClient, count: int) -> list[bytes]:
    """Read `count` messages and return whom each was for."""
    return [client.read_line().split(b" ")[2] for _ in range(count)]


def test_one_member_gets_each_message(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b group 1\r\nSUB %b group 2\r\nSUB %b group 3\r\n" % (subject, subject, subject))

    connected.send(b"PUB %b 2\r\nhi\r\n" % subject * 10)

    assert len(read_sids(connected, 10)) == 10
    connected.expect_pong()


def test_members_share_the_messages_about_equally(connected: RawClient, subject: bytes) -> None:
    count = 3000
    connected.send(b"SUB %b group 1\r\nSUB %b group 2\r\nSUB %b group 3\r\n" % (subject, subject, subject))

    connected.send(b"PUB %b 2\r\nhi\r\n" % subject * count)

    received = Counter(read_sids(connected, count))
    assert set(received) == {b"1", b"2", b"3"}
    assert min(received.values()) > count / 3 * 0.7


def test_members_of_several_connections_share_the_messages(
    connected: RawClient, other_client: RawClient, subject: bytes
) -> None:
    count = 300
    other_client.connect()
    other_client.send(b"SUB %b group 1\r\nSUB %b.end 2\r\n" % (subject, subject))
    other_client.expect_pong()
    connected.send(b"SUB %b group 1\r\nSUB %b.end 2\r\n" % (subject, subject))

    connected.send(b"PUB %b 2\r\nhi\r\n" % subject * count + b"PUB %b.end 0\r\n\r\n" % subject)

    received = Counter()
    for client in (connected, other_client):
        while not (frame := client.read_line()).startswith(b"MSG %b.end" % subject):
            assert frame == b"MSG %b 1 2\r\nhi\r\n" % subject
            received[client] += 1
    assert received.total() == count
    assert min(received[connected], received[other_client]) > 0


def test_each_group_gets_a_copy(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b red r1\r\nSUB %b red r2\r\nSUB %b blue b1\r\nSUB %b blue b2\r\n" % ((subject,) * 4))

    connected.send(b"PUB %b 2\r\nhi\r\n" % subject)

    assert sorted(sid[:1] for sid in read_sids(connected, 2)) == [b"b", b"r"]
    connected.expect_pong()


def test_group_and_plain_subscriptions_are_served_side_by_side(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b group q1\r\nSUB %b group q2\r\nSUB %b p1\r\nSUB %b p2\r\n" % ((subject,) * 4))

    connected.send(b"PUB %b 2\r\nhi\r\n" % subject)

    sids = read_sids(connected, 3)
    assert {b"p1", b"p2"} < set(sids)
    assert len([sid for sid in sids if sid.startswith(b"q")]) == 1
    connected.expect_pong()


def test_members_on_different_matching_subjects_are_one_group(connected: RawClient, subject: bytes) -> None:
    count = 300
    connected.send(b"SUB %b.x group 1\r\nSUB %b.* group 2\r\nSUB %b.> group 3\r\n" % (subject, subject, subject))

    connected.send(b"PUB %b.x 2\r\nhi\r\n" % subject * count)

    assert set(read_sids(connected, count)) == {b"1", b"2", b"3"}
    connected.expect_pong()


def test_members_that_do_not_match_take_no_part(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b.x group 1\r\nSUB %b.y group 2\r\n" % (subject, subject))

    connected.send(b"PUB %b.y 2\r\nhi\r\n" % subject * 50)

    assert set(read_sids(connected, 50)) == {b"2"}


def test_member_leaves_with_unsub(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b group 1\r\nSUB %b group 2\r\nUNSUB 1\r\n" % (subject, subject))

    connected.send(b"PUB %b 2\r\nhi\r\n" % subject * 50)

    assert set(read_sids(connected, 50)) == {b"2"}
    connected.expect_pong()


def test_echo_off_passes_over_own_members(connected: RawClient, other_client: RawClient, subject: bytes) -> None:
    other_client.connect(echo=False)
    connected.send(b"SUB %b group 1\r\n" % subject)
    connected.expect_pong()
    other_client.send(b"SUB %b group 1\r\n" % subject)

    other_client.send(b"PUB %b 2\r\nhi\r\n" % subject * 50)

    connected.expect(b"MSG %b 1 2\r\nhi\r\n" % subject * 50)
    other_client.expect_pong()


@pytest.mark.parametrize("group", [b"a.b", b"*", b">", b"..", b"\x00\xff", b"_sys", b"_SYS_", b"123"])
def test_group_name_is_any_word(connected: RawClient, subject: bytes, group: bytes) -> None:
    connected.send(b"SUB %b %b 1\r\nPUB %b 2\r\nhi\r\n" % (subject, group, subject))

    connected.expect(b"MSG %b 1 2\r\nhi\r\n" % subject)


def test_group_names_are_case_sensitive(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b group 1\r\nSUB %b Group 2\r\nPUB %b 2\r\nhi\r\n" % (subject, subject, subject))

    assert sorted(read_sids(connected, 2)) == [b"1", b"2"]


def test_reserved_group_is_a_violation(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b _sys_ 1\r\nPUB %b 2\r\nhi\r\n" % (subject, subject))

    connected.expect_error(f'Permissions Violation for Subscription to "{subject.decode()}" using queue "_sys_"')
    connected.expect_pong()


@pytest.mark.parametrize("name", [b"a..b", b"a.>.b", b".", b"a."])
def test_invalid_subject_of_a_member_is_refused(connected: RawClient, name: bytes) -> None:
    connected.send(b"SUB %b group 1\r\n" % name)

    connected.expect_error("Invalid Subject")
    connected.expect_pong()
