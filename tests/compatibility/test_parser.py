"""The parser: what it tolerates, what it refuses with a text, and what it refuses in silence."""

from __future__ import annotations

import pytest

from tests.compatibility.wire import RawClient


@pytest.fixture
def connected(client: RawClient) -> RawClient:
    client.connect(headers=True)
    return client


@pytest.mark.parametrize(
    ("sub", "pub"), [(b"SUB", b"PUB"), (b"sub", b"pub"), (b"Sub", b"Pub"), (b"sUb", b"pUb"), (b"suB", b"PUb")]
)
def test_operations_are_matched_without_case(connected: RawClient, subject: bytes, sub: bytes, pub: bytes) -> None:
    connected.send(b"%b %b 1\r\n%b %b 2\r\nhi\r\n" % (sub, subject, pub, subject))

    connected.expect(b"MSG %b 1 2\r\nhi\r\n" % subject)


@pytest.mark.parametrize("operation", [b"ping", b"Ping", b"pInG"])
def test_ping_is_matched_without_case(connected: RawClient, operation: bytes) -> None:
    connected.send(operation + b"\r\n")

    connected.expect(b"PONG\r\n")


def test_hpub_and_unsub_are_matched_without_case(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b 1\r\nhPuB %b 12 12\r\nNATS/1.0\r\n\r\n\r\n" % (subject, subject))
    connected.expect(b"HMSG %b 1 12 12\r\nNATS/1.0\r\n\r\n\r\n" % subject)

    connected.send(b"uNsUb 1\r\nPUB %b 0\r\n\r\n" % subject)

    connected.expect_pong()


@pytest.mark.parametrize("blank", [b" ", b"  ", b"\t", b" \t ", b"\t\t"])
def test_arguments_are_separated_by_runs_of_blanks(connected: RawClient, subject: bytes, blank: bytes) -> None:
    connected.send(blank.join([b"SUB", subject, b"1"]) + b"\r\n")
    connected.send(blank.join([b"PUB", subject, b"reply", b"2"]) + b"\r\nhi\r\n")
    connected.send(blank.join([b"UNSUB", b"1"]) + b"\r\n")
    connected.send(blank.join([b"PUB", subject, b"0"]) + b"\r\n\r\n")

    connected.expect(b"MSG %b 1 reply 2\r\nhi\r\n" % subject)
    connected.expect_pong()


@pytest.mark.parametrize("blank", [b" ", b"\t", b"   ", b" \t"])
def test_trailing_blanks_are_tolerated(connected: RawClient, subject: bytes, blank: bytes) -> None:
    connected.send(b"SUB %b 1%b\r\nPUB %b 2%b\r\nhi\r\n" % (subject, blank, subject, blank))

    connected.expect(b"MSG %b 1 2\r\nhi\r\n" % subject)


@pytest.mark.parametrize("blank", [b" ", b"\t", b"  "])
def test_leading_blanks_are_refused(connected: RawClient, blank: bytes) -> None:
    connected.send(blank + b"PING\r\n")

    connected.expect_error_and_closed("Unknown Protocol Operation")


def test_control_lines_may_end_in_a_bare_line_feed(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b 1\nPUB %b 2\nhi\r\nPING\nUNSUB 1\nPUB %b 0\n\r\nPING\n" % (subject, subject, subject))

    connected.expect(b"MSG %b 1 2\r\nhi\r\nPONG\r\nPONG\r\n" % subject)


def test_connect_may_end_in_a_bare_line_feed(client: RawClient) -> None:
    client.send(b'CONNECT {"verbose":false}\nPING\n')

    client.expect(b"PONG\r\n")


@pytest.mark.parametrize("ending", [b"\n", b"\r", b"xx", b"\rx", b"\n\r", b"\r\r\n"], ids=repr)
def test_payload_must_end_in_crlf(connected: RawClient, subject: bytes, ending: bytes) -> None:
    connected.send(b"SUB %b 1\r\nPUB %b 2\r\nhi%bPING\r\n" % (subject, subject, ending))

    connected.expect_error_and_closed("Unknown Protocol Operation")


def test_payload_longer_than_declared_is_refused(connected: RawClient, subject: bytes) -> None:
    connected.send(b"PUB %b 2\r\nhello\r\n" % subject)

    connected.expect_error_and_closed("Unknown Protocol Operation")


def test_payload_is_counted_not_searched(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b 1\r\nPUB %b 12\r\nPING\r\nPING\r\n\r\n" % (subject, subject))

    connected.expect(b"MSG %b 1 12\r\nPING\r\nPING\r\n\r\n" % subject)
    connected.expect_pong()


@pytest.mark.parametrize("line", [b"\r\n", b"\n", b"\r\n\r\n"], ids=repr)
def test_empty_line_is_refused(connected: RawClient, line: bytes) -> None:
    connected.send(line)

    connected.expect_error_and_closed("Unknown Protocol Operation")


@pytest.mark.parametrize(
    "line",
    [
        b"HELLO",
        b"GET / HTTP/1.1",
        b"P",
        b"PI",
        b"PIN",
        b"PINK",
        b"PUT x 0",
        b"SUBSCRIBE x 1",
        b"SUP x 1",
        b"UNSUBX 1",
        b"HPUT x 0 0",
        b"\x00",
        b"\xff\xfe",
        b"{}",
        b"+ERR",
        b"+O",
        b"-OK",
        b"-ERR",
        b"-ERRx",
        b"IN",
        b"PUB",
        b"SUB",
        b"UNSUB",
        b"HPUB",
    ],
)
def test_unknown_operation_is_refused(connected: RawClient, line: bytes) -> None:
    connected.send(line + b"\r\n")

    connected.expect_error_and_closed("Unknown Protocol Operation")


@pytest.mark.parametrize("line", [b"MSG x 1 0\r\n\r\n", b"HMSG x 1 0 2\r\nhi\r\n", b"MSG\r\n", b"msg x 1 0\r\n\r\n"])
def test_message_operations_of_a_server_are_refused(connected: RawClient, line: bytes) -> None:
    connected.send(line)

    connected.expect_error_and_closed("Unknown Protocol Operation")


@pytest.mark.parametrize(
    "line", [b"LS+ x", b"LS- x", b"RS+ $G x", b"RS- $G x", b"A+ x", b"A- x", b"RMSG $G x 0", b"LMSG x 0"]
)
def test_operations_between_servers_are_refused(connected: RawClient, line: bytes) -> None:
    connected.send(line + b"\r\n")

    connected.expect_error_and_closed("Unknown Protocol Operation")


@pytest.mark.parametrize("line", [b"PINGxyz", b"PING 1 2 3", b"PING\t", b"PING \r", b"pinging"])
def test_ping_tolerates_trailing_bytes(connected: RawClient, line: bytes) -> None:
    connected.send(line + b"\r\n")

    connected.expect(b"PONG\r\n")
    connected.expect_pong()


@pytest.mark.parametrize("line", [b"PONG", b"PONGxyz", b"pong", b"PONG 1"])
def test_unasked_pong_is_ignored(connected: RawClient, line: bytes) -> None:
    connected.send(line + b"\r\n")

    connected.expect_pong()


@pytest.mark.parametrize("line", [b"+OK", b"+ok", b"+OKAY", b"+OK and more"])
def test_ok_from_the_client_is_ignored(connected: RawClient, line: bytes) -> None:
    connected.send(line + b"\r\n")

    connected.expect_pong()


@pytest.mark.parametrize("line", [b"INFO {}", b'INFO {"server_id":"x"}', b"info {}", b"INFO null"])
def test_info_from_the_client_is_ignored(connected: RawClient, line: bytes) -> None:
    connected.send(line + b"\r\n")

    connected.expect_pong()


@pytest.mark.parametrize("line", [b"INFO", b"INFO hello", b"INFO {", b"INFO []"])
def test_info_from_the_client_must_be_json(connected: RawClient, line: bytes) -> None:
    connected.send(line + b"\r\n")

    connected.expect_closed()


@pytest.mark.parametrize("line", [b"-ERR 'oh'", b"-ERR ", b"-err 'oh'", b"-ERR\toh no"])
def test_error_from_the_client_closes(connected: RawClient, line: bytes) -> None:
    connected.send(line + b"\r\n")

    connected.expect_closed()


@pytest.mark.parametrize(
    "line",
    [
        b"PUB ",
        b"PUB x",
        b"PUB x y z 0",
        b"PUB x y z w 0",
        b"SUB ",
        b"SUB x",
        b"SUB x q 1 2",
        b"SUB x q 1 2 3",
        b"UNSUB ",
        b"UNSUB 1 2 3",
        b"UNSUB 1 2 3 4",
        b"HPUB ",
        b"HPUB x",
        b"HPUB x 0",
        b"HPUB x y z 0 0",
        b"HPUB x y z w 0 0",
    ],
)
def test_wrong_number_of_arguments_closes_silently(connected: RawClient, line: bytes) -> None:
    connected.send(line + b"\r\n")

    connected.expect_closed()


@pytest.mark.parametrize("arguments", [b"%b\r1", b"%b \r 1", b"%b 1\r", b"%b 1\r\r\r", b"\r%b 1"])
def test_carriage_return_is_a_blank_between_arguments_of_sub(
    connected: RawClient, subject: bytes, arguments: bytes
) -> None:
    connected.send(b"SUB %b\r\nPUB %b 2\r\nhi\r\n" % (arguments % subject, subject))

    connected.expect(b"MSG %b 1 2\r\nhi\r\n" % subject)


@pytest.mark.parametrize("arguments", [b"%b 2\r", b"%b 2 \r", b"%b\r2"])
def test_carriage_return_is_no_blank_between_arguments_of_pub(
    connected: RawClient, subject: bytes, arguments: bytes
) -> None:
    connected.send(b"PUB %b\r\nhi\r\n" % (arguments % subject))

    connected.expect_closed()


SCRIPT = (
    b'CONNECT {"verbose":false,"headers":true}\r\n'
    b"SUB %b 1\r\nSUB %b group 2\r\nPING\r\nPUB %b 2\r\nhi\r\nPUB %b answer 5\r\nhello\r\n"
    b"HPUB %b 17 19\r\nNATS/1.0\r\na:b\r\n\r\nhi\r\nUNSUB 2\r\nUNSUB 1 4\r\nPUB %b 0\r\n\r\nPUB %b 0\r\n\r\nPING\r\n"
)


def _script_answers(subject: bytes) -> set[bytes]:
    """The frames that answer SCRIPT; the two subscriptions may be served in either order."""
    frames = set()
    for sid in (b"1", b"2"):
        frames.add(b"MSG %b %b 2\r\nhi\r\n" % (subject, sid))
        frames.add(b"MSG %b %b answer 5\r\nhello\r\n" % (subject, sid))
        frames.add(b"HMSG %b %b 17 19\r\nNATS/1.0\r\na:b\r\n\r\nhi\r\n" % (subject, sid))
    return frames


@pytest.mark.parametrize("piece_bytes", [1, 2, 3, 7])
def test_input_may_be_split_anywhere(client: RawClient, subject: bytes, piece_bytes: int) -> None:
    script = SCRIPT % ((subject,) * 7)

    client.send_in_pieces(script, piece_bytes)

    client.expect(b"PONG\r\n")
    assert {client.read_line() for _ in range(6)} == _script_answers(subject)
    client.expect(b"MSG %b 1 0\r\n\r\nPONG\r\n" % subject)


def test_input_may_be_split_at_each_single_byte(client: RawClient, other_client: RawClient, subject: bytes) -> None:
    line = b"PUB %b 4\r\n\r\n\r\n\r\n" % subject
    client.connect()
    other_client.connect()
    other_client.send(b"SUB %b 1\r\n" % subject)
    other_client.expect_pong()

    for cut in range(1, len(line)):
        client.send_in_pieces(line[:cut], len(line))
        client.send(line[cut:])

    other_client.expect((b"MSG %b 1 4\r\n\r\n\r\n\r\n" % subject) * (len(line) - 1))


def test_many_operations_may_come_in_one_write(connected: RawClient, subject: bytes) -> None:
    count = 2000

    connected.send(b"SUB %b 1\r\n" % subject + b"PUB %b 5\r\nhello\r\n" % subject * count + b"PING\r\n")

    connected.expect(b"MSG %b 1 5\r\nhello\r\n" % subject * count + b"PONG\r\n")


def test_operations_before_an_error_are_carried_out(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b 1\r\nPUB %b 2\r\nhi\r\nNONSENSE\r\nPUB %b 2\r\nno\r\n" % (subject, subject, subject))

    connected.expect(b"MSG %b 1 2\r\nhi\r\n-ERR 'Unknown Protocol Operation'\r\n" % subject)
    connected.expect_closed()
