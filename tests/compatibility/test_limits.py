"""Limits: control line, payload, subscriptions."""

from __future__ import annotations

import json

import pytest

from tests.compatibility.wire import RawClient

CONTROL_LINE_BYTES_MAX = 4096
PAYLOAD_BYTES_MAX = 1_048_576


@pytest.fixture
def connected(client: RawClient) -> RawClient:
    client.connect(headers=True)
    return client


def sub_line(subject: bytes, argument_bytes: int) -> tuple[bytes, bytes]:
    """Return a SUB line whose arguments have this length, and its subject."""
    name = subject + b"." + b"x" * (argument_bytes - len(subject) - len(b".") - len(b" 1"))
    return b"SUB %b 1\r\n" % name, name


def test_control_line_may_have_4096_bytes(connected: RawClient, subject: bytes) -> None:
    line, _ = sub_line(subject, CONTROL_LINE_BYTES_MAX)

    connected.send(line)

    connected.expect_pong()


def test_control_line_may_not_have_4097_bytes(connected: RawClient, subject: bytes) -> None:
    line, _ = sub_line(subject, CONTROL_LINE_BYTES_MAX + 1)

    connected.send(line)

    connected.expect_error_and_closed("maximum control line exceeded")


@pytest.mark.parametrize("operation", [b"PUB", b"HPUB", b"UNSUB", b"CONNECT"])
def test_control_line_limit_holds_for_each_operation(connected: RawClient, operation: bytes) -> None:
    connected.send(operation + b" " + b"x" * (CONTROL_LINE_BYTES_MAX + 1) + b"\r\n")

    connected.expect_error_and_closed("maximum control line exceeded")


def test_control_line_counts_blanks_between_arguments(connected: RawClient, subject: bytes) -> None:
    blanks = b" " * (CONTROL_LINE_BYTES_MAX - len(subject) - 1)

    connected.send(b"SUB %b%b1\r\nPUB %b 2\r\nhi\r\n" % (subject, blanks, subject))
    connected.expect(b"MSG %b 1 2\r\nhi\r\n" % subject)

    connected.send(b"SUB %b%b 2\r\n" % (subject, blanks))
    connected.expect_error_and_closed("maximum control line exceeded")


def test_control_line_does_not_count_blanks_before_the_arguments(connected: RawClient, subject: bytes) -> None:
    blanks = b" " * (2 * CONTROL_LINE_BYTES_MAX)

    connected.send(b"SUB%b%b 1\r\nPUB %b 2\r\nhi\r\n" % (blanks, subject, subject))

    connected.expect(b"MSG %b 1 2\r\nhi\r\n" % subject)


def test_control_line_that_does_not_end_is_refused(connected: RawClient) -> None:
    connected.send(b"SUB " + b"x" * (2 * CONTROL_LINE_BYTES_MAX))

    connected.expect_error_and_closed("maximum control line exceeded")


def test_control_line_limit_holds_for_split_input(connected: RawClient, subject: bytes) -> None:
    line, _ = sub_line(subject, CONTROL_LINE_BYTES_MAX)
    connected.send_in_pieces(line, 1000)
    connected.expect_pong()

    connected.send_in_pieces(b"SUB " + b"x" * (CONTROL_LINE_BYTES_MAX + 1) + b"\r\n", 1000)

    connected.expect_error_and_closed("maximum control line exceeded")


def test_connect_may_have_4096_bytes(client: RawClient) -> None:
    frame_bytes = len(json.dumps({"verbose": False, "name": ""}))

    client.send_connect(verbose=False, name="n" * (CONTROL_LINE_BYTES_MAX - frame_bytes))

    client.expect_pong()


def test_connect_may_not_have_4097_bytes(client: RawClient) -> None:
    frame_bytes = len(json.dumps({"verbose": False, "name": ""}))

    client.send_connect(verbose=False, name="n" * (CONTROL_LINE_BYTES_MAX + 1 - frame_bytes))

    client.expect_error_and_closed("maximum control line exceeded")


def test_ping_has_no_control_line_limit(connected: RawClient) -> None:
    connected.send(b"PING" + b"x" * (2 * CONTROL_LINE_BYTES_MAX) + b"\r\n")

    connected.expect(b"PONG\r\n")


def test_payload_may_have_max_payload_bytes(connected: RawClient, subject: bytes) -> None:
    payload = b"p" * PAYLOAD_BYTES_MAX

    connected.send(b"SUB %b 1\r\nPUB %b %d\r\n%b\r\n" % (subject, subject, len(payload), payload))

    connected.expect(b"MSG %b 1 %d\r\n%b\r\n" % (subject, len(payload), payload))


@pytest.mark.parametrize("size", [b"1048577", b"999999999"])
def test_payload_over_max_payload_is_refused_after_its_line(connected: RawClient, subject: bytes, size: bytes) -> None:
    connected.send(b"PUB %b %b\r\n" % (subject, size))

    connected.expect_error_and_closed("Maximum Payload Violation")


@pytest.mark.parametrize("sizes", [b"12 1048577", b"1048577 1048577", b"0 999999999"])
def test_header_counts_as_payload(connected: RawClient, subject: bytes, sizes: bytes) -> None:
    connected.send(b"HPUB %b %b\r\n" % (subject, sizes))

    connected.expect_error_and_closed("Maximum Payload Violation")


def test_header_and_payload_may_have_max_payload_bytes(connected: RawClient, subject: bytes) -> None:
    message = b"NATS/1.0\r\n\r\n" + b"p" * (PAYLOAD_BYTES_MAX - 12)
    line = b"%b 12 %d\r\n%b\r\n"

    connected.send(b"SUB %b 1\r\nHPUB " % subject + line % (subject, len(message), message))

    connected.expect(b"HMSG " + line % (subject + b" 1", len(message), message))


def test_payload_limit_holds_before_connect(client: RawClient) -> None:
    client.send(b"PUB x 1048577\r\n")

    client.expect_error_and_closed("Maximum Payload Violation")


def test_configured_max_payload_is_exact(start_server) -> None:
    server = start_server(config="max_payload: 10")

    with server.client() as client:
        client.connect()
        client.send(b"SUB a 1\r\nPUB a 10\r\n0123456789\r\n")
        client.expect(b"MSG a 1 10\r\n0123456789\r\n")
        client.send(b"PUB a 11\r\n")
        client.expect_error_and_closed("Maximum Payload Violation")


def test_configured_max_control_line_is_exact(start_server) -> None:
    server = start_server(config="max_control_line: 100")

    with server.client() as client:
        client.connect()
        client.send(b"SUB " + b"x" * 98 + b" 1\r\n")
        client.expect_pong()
        client.send(b"SUB " + b"x" * 99 + b" 1\r\n")
        client.expect_error_and_closed("maximum control line exceeded")


def test_subscriptions_over_the_maximum_are_refused_and_the_connection_stays(start_server) -> None:
    server = start_server(config="max_subscriptions: 2")

    with server.client() as client:
        client.connect()
        client.send(b"SUB a 1\r\nSUB b 2\r\nSUB c 3\r\n")
        client.expect_error("maximum subscriptions exceeded")
        client.send(b"PUB c 2\r\nno\r\nPUB a 3\r\nyes\r\n")
        client.expect(b"MSG a 1 3\r\nyes\r\n")
        client.send(b"UNSUB 1\r\nSUB c 3\r\nPUB c 3\r\nyes\r\n")
        client.expect(b"MSG c 3 3\r\nyes\r\n")


def test_maximum_of_subscriptions_is_checked_before_the_subject(start_server) -> None:
    server = start_server(config="max_subscriptions: 1\nmax_sub_tokens: 3")

    with server.client() as client:
        client.connect()
        client.send(b"SUB a 1\r\nSUB a..b 2\r\nSUB a.b.c.d 3\r\n")
        client.expect_error("maximum subscriptions exceeded")
        client.expect_error('Permissions Violation for Subscription to "a.b.c.d", too many tokens')
