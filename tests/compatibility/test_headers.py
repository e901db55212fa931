"""HPUB and HMSG: the header block, its sizes, and clients without headers."""

from __future__ import annotations

import pytest

from tests.compatibility.wire import RawClient

BLOCK = b"NATS/1.0\r\nColour: green\r\n\r\n"


@pytest.fixture
def connected(client: RawClient) -> RawClient:
    client.connect(headers=True)
    return client


def hpub(subject: bytes, header: bytes, payload: bytes, reply: bytes = b"") -> bytes:
    target = b"%b %b" % (subject, reply) if reply else subject
    return b"HPUB %b %d %d\r\n%b%b\r\n" % (target, len(header), len(header) + len(payload), header, payload)


def hmsg(subject: bytes, sid: bytes, header: bytes, payload: bytes, reply: bytes = b"") -> bytes:
    target = b"%b %b %b" % (subject, sid, reply) if reply else b"%b %b" % (subject, sid)
    return b"HMSG %b %d %d\r\n%b%b\r\n" % (target, len(header), len(header) + len(payload), header, payload)


def test_header_is_delivered_with_the_payload(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b 1\r\n" % subject + hpub(subject, BLOCK, b"hello"))

    connected.expect(hmsg(subject, b"1", BLOCK, b"hello"))


def test_header_is_delivered_with_the_reply(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b 1\r\n" % subject + hpub(subject, BLOCK, b"hello", reply=b"the.reply"))

    connected.expect(hmsg(subject, b"1", BLOCK, b"hello", reply=b"the.reply"))


def test_header_may_be_all_of_the_message(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b 1\r\n" % subject + hpub(subject, BLOCK, b""))

    connected.expect(hmsg(subject, b"1", BLOCK, b""))


def test_header_is_cut_for_a_client_without_headers(
    connected: RawClient, other_client: RawClient, subject: bytes
) -> None:
    other_client.connect(headers=False)
    other_client.send(b"SUB %b 4\r\n" % subject)
    other_client.expect_pong()

    connected.send(hpub(subject, BLOCK, b"hello") + hpub(subject, BLOCK, b"", reply=b"r"))

    other_client.expect(b"MSG %b 4 5\r\nhello\r\nMSG %b 4 r 0\r\n\r\n" % (subject, subject))


def test_clients_with_and_without_headers_get_the_same_message(
    connected: RawClient, other_client: RawClient, subject: bytes
) -> None:
    other_client.connect()
    other_client.send(b"SUB %b 4\r\n" % subject)
    other_client.expect_pong()
    connected.send(b"SUB %b 1\r\n" % subject)

    for _ in range(5):
        connected.send(hpub(subject, BLOCK, b"hello") + b"PUB %b 5\r\nplain\r\n" % subject)

    for _ in range(5):
        connected.expect(hmsg(subject, b"1", BLOCK, b"hello") + b"MSG %b 1 5\r\nplain\r\n" % subject)
        other_client.expect(b"MSG %b 4 5\r\nhello\r\nMSG %b 4 5\r\nplain\r\n" % (subject, subject))


def test_plain_message_reaches_a_client_with_headers_as_msg(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b 1\r\nPUB %b 5\r\nhello\r\n" % (subject, subject))

    connected.expect(b"MSG %b 1 5\r\nhello\r\n" % subject)


def test_header_of_no_bytes_is_delivered_as_msg(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b 1\r\nHPUB %b 0 5\r\nhello\r\n" % (subject, subject))

    connected.expect(b"MSG %b 1 5\r\nhello\r\n" % subject)


@pytest.mark.parametrize(
    "header",
    [
        b"x",
        b"hello",
        b"NATS/1.0",
        b"NATS/1.0\r\n",
        b"NATS/1.0\r\n\r\n",
        b"NATS/9.9\r\n\r\n",
        b"NATS/1.0 503\r\n\r\n",
        b"NATS/1.0 404 Not Found\r\n\r\n",
        b"NATS/1.0\r\nno colon\r\n\r\n",
        b"NATS/1.0\r\n: no key\r\n\r\n",
        b"NATS/1.0\r\nA: 1\r\nA: 2\r\na: 3\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        bytes(range(256)),
        b"\r\n\r\n",
    ],
    ids=lambda header: repr(header[:24]),
)
def test_header_bytes_are_forwarded_as_they_are(connected: RawClient, subject: bytes, header: bytes) -> None:
    connected.send(b"SUB %b 1\r\n" % subject + hpub(subject, header, b"hello"))

    connected.expect(hmsg(subject, b"1", header, b"hello"))


@pytest.mark.parametrize(("header_bytes", "total_bytes"), [(b"012", b"014"), (b"12", b"0014"), (b"000012", b"14")])
def test_header_sizes_are_echoed_as_they_were_written(
    connected: RawClient, subject: bytes, header_bytes: bytes, total_bytes: bytes
) -> None:
    sizes = header_bytes + b" " + total_bytes

    connected.send(b"SUB %b 1\r\nHPUB %b %b\r\nNATS/1.0\r\n\r\nhi\r\n" % (subject, subject, sizes))

    connected.expect(b"HMSG %b 1 %b\r\nNATS/1.0\r\n\r\nhi\r\n" % (subject, sizes))


@pytest.mark.parametrize(
    "sizes", [b"13 12", b"x 12", b"12 x", b"-1 12", b"12 -1", b"+12 14", b"0000000012 14", b"12 0000000014"]
)
def test_malformed_sizes_close_silently(connected: RawClient, subject: bytes, sizes: bytes) -> None:
    connected.send(b"HPUB %b %b\r\nNATS/1.0\r\n\r\n\r\n" % (subject, sizes))

    connected.expect_closed()


@pytest.mark.parametrize("options", [{}, {"headers": False}])
def test_hpub_without_headers_closes_silently(client: RawClient, subject: bytes, options: dict) -> None:
    client.connect(**options)

    client.send(hpub(subject, BLOCK, b"hello"))

    client.expect_closed()


def test_hpub_payload_must_end_in_crlf(connected: RawClient, subject: bytes) -> None:
    connected.send(b"HPUB %b 12 14\r\nNATS/1.0\r\n\r\nhi\nPING\r\n" % subject)

    connected.expect_error_and_closed("Unknown Protocol Operation")


@pytest.mark.parametrize("reply", [b"_R_.x", b"$JS.ACK.x", b"_GR_.x"])
def test_hpub_reply_with_a_reserved_prefix_is_a_violation(connected: RawClient, subject: bytes, reply: bytes) -> None:
    connected.send(b"SUB %b 1\r\n" % subject + hpub(subject, BLOCK, b"hello", reply=reply))

    connected.expect_error(f'Permissions Violation for Publish with Reply of "{reply.decode()}"')
    connected.expect_pong()


def test_hpub_closes_silently_where_the_server_has_no_headers(start_server) -> None:
    server = start_server(config="no_header_support: true")

    with server.client() as client:
        client.connect(headers=True)
        client.send(hpub(b"foo", BLOCK, b"hello"))

        client.expect_closed()
