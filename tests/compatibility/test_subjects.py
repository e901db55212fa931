"""Subjects: tokens, wildcards, and which are valid."""

from __future__ import annotations

import pytest

from tests.compatibility.wire import RawClient


@pytest.fixture
def connected(client: RawClient) -> RawClient:
    client.connect()
    return client


@pytest.mark.parametrize(
    ("pattern", "tail", "matches"),
    [
        (b"one", b"one", True),
        (b"one", b"One", False),
        (b"one", b"on", False),
        (b"one", b"one.two", False),
        (b"one.two", b"one", False),
        (b"*", b"one", True),
        (b"*", b"one.two", False),
        (b"*.*", b"one.two", True),
        (b"*.*", b"one", False),
        (b"*.two", b"one.two", True),
        (b"*.two", b"one.three", False),
        (b"one.*.three", b"one.two.three", True),
        (b"one.*.three", b"one.three", False),
        (b">", b"one", True),
        (b">", b"one.two.three.four", True),
        (b"one.>", b"one.two", True),
        (b"one.>", b"one.two.three", True),
        (b"one.>", b"one", False),
        (b"*.>", b"one.two", True),
        (b"*.>", b"one", False),
        (b"*.two.>", b"one.two.three", True),
        (b"*.two.>", b"one.three.three", False),
    ],
)
def test_subscription_matches_by_token(
    connected: RawClient, subject: bytes, pattern: bytes, tail: bytes, matches: bool
) -> None:
    connected.send(b"SUB %b.%b 1\r\nPUB %b.%b 2\r\nhi\r\n" % (subject, pattern, subject, tail))

    if matches:
        connected.expect(b"MSG %b.%b 1 2\r\nhi\r\n" % (subject, tail))
    connected.expect_pong()


@pytest.mark.parametrize("token", [b"foo*", b"*foo", b"foo>", b">foo", b"**", b">>", b"*>", b"f*o", b"a>b"])
def test_wildcard_characters_inside_a_token_are_literal(connected: RawClient, subject: bytes, token: bytes) -> None:
    connected.send(b"SUB %b.%b 1\r\n" % (subject, token))

    connected.send(b"PUB %b.foobar 2\r\nno\r\nPUB %b.x 2\r\nno\r\nPUB %b.%b 3\r\nyes\r\n" % ((subject,) * 3 + (token,)))

    connected.expect(b"MSG %b.%b 1 3\r\nyes\r\n" % (subject, token))
    connected.expect_pong()


@pytest.mark.parametrize(
    "name", [b".", b"..", b".a", b"a.", b"a..b", b"a.>.b", b">.a", b"*.>.*", b"a.>.>", b"a..>", b".>", b">."]
)
def test_invalid_subject_of_a_subscription_is_refused_and_the_connection_stays(
    connected: RawClient, name: bytes
) -> None:
    connected.send(b"SUB %b 1\r\n" % name)

    connected.expect_error("Invalid Subject")
    connected.expect_pong()


def test_invalid_subscription_does_not_take_its_id(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB a..b 1\r\n")
    connected.expect_error("Invalid Subject")

    connected.send(b"SUB %b 1\r\nPUB %b 2\r\nhi\r\n" % (subject, subject))

    connected.expect(b"MSG %b 1 2\r\nhi\r\n" % subject)


@pytest.mark.parametrize(
    "token",
    [
        b"\x00",
        b"a\x00b",
        b"\x01\x02\x7f",
        b"\xff\xfe",
        b"\xc3\x28",
        "naïve-☃".encode(),
        b"\x0b\x0c",
        b"$",
        b"-_~!@#%^&()+={}[]|:;'\"<,/?`\\",
        b"x" * 3000,
    ],
    ids=lambda token: repr(token[:20]),
)
def test_subject_is_any_bytes_but_blanks(connected: RawClient, subject: bytes, token: bytes) -> None:
    name = subject + b"." + token

    connected.send(b"SUB %b 1\r\nPUB %b 2\r\nhi\r\n" % (name, name))

    connected.expect(b"MSG %b 1 2\r\nhi\r\n" % name)


def test_wildcard_subscription_gets_the_published_bytes(connected: RawClient, subject: bytes) -> None:
    name = subject + b".\xff\x00.end"

    connected.send(b"SUB %b.*.end 1\r\nPUB %b 2\r\nhi\r\n" % (subject, name))

    connected.expect(b"MSG %b 1 2\r\nhi\r\n" % name)


@pytest.mark.parametrize("token_count", [33, 100, 1000])
def test_subject_may_have_many_tokens(connected: RawClient, subject: bytes, token_count: int) -> None:
    name = subject + b".t" * token_count
    pattern = subject + b".*" * token_count

    connected.send(
        b"SUB %b 1\r\nPUB %b 2\r\nhi\r\nUNSUB 1\r\nSUB %b 2\r\nPUB %b 2\r\nhi\r\n" % (name, name, pattern, name)
    )

    connected.expect(b"MSG %b 1 2\r\nhi\r\nMSG %b 2 2\r\nhi\r\n" % (name, name))


def test_subscription_with_too_many_tokens_is_a_violation(start_server) -> None:
    server = start_server(config="max_sub_tokens: 3")

    with server.client() as client:
        client.connect()
        client.send(b"SUB a.b.c.d 1\r\nSUB a.b.c 2\r\nPUB a.b.c.d 2\r\nno\r\nPUB a.b.c 3\r\nyes\r\n")

        client.expect_error('Permissions Violation for Subscription to "a.b.c.d", too many tokens')
        client.expect(b"MSG a.b.c 2 3\r\nyes\r\n")
        client.expect_pong()
