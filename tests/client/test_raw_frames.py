"""Frames taken apart, in whatever pieces they come."""

import itertools
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetlake.client.raw_frames import FrameReader, header_value, status_of
from jetlake.errors import ClientError

HEADERS = b"NATS/1.0\r\nNats-Msg-Id: 7\r\nChoria-Identity:web1\r\n\r\n"

WIRE = (
    b"MSG a.b 1 5\r\nhello\r\n"
    b"PING\r\n"
    b"MSG a.c 1 _INBOX.x.1 0\r\n\r\n"
    b"HMSG a.d 1 %d %d\r\n%b{}\r\n"
    b"HMSG a.e 1 _INBOX.x.2 16 16\r\nNATS/1.0 503\r\n\r\n\r\n"
    b"-ERR 'Permissions Violation for Publish to \"x\"'\r\n"
    b"PONG\r\n+OK\r\nINFO {}\r\n"
    b"MSG a.f 1 4\r\n\r\n\r\n\r\n"
) % (len(HEADERS), len(HEADERS) + 2, HEADERS)

MESSAGES = [
    (b"a.b", b"", b"", b"hello"),
    (b"a.c", b"_INBOX.x.1", b"", b""),
    (b"a.d", b"", HEADERS, b"{}"),
    (b"a.e", b"_INBOX.x.2", b"NATS/1.0 503\r\n\r\n", b""),
    (b"a.f", b"", b"", b"\r\n\r\n"),
]


def test_everything_that_one_read_brought_is_taken_apart():
    reader = FrameReader()

    assert reader.feed(WIRE) == MESSAGES
    assert (reader.pings, reader.pongs) == (1, 1)
    assert reader.complaints == ['Permissions Violation for Publish to "x"']


@given(st.lists(st.integers(0, len(WIRE)), max_size=20))
def test_pieces_make_no_difference(cuts):
    reader = FrameReader()
    edges = [0, *sorted(cuts), len(WIRE)]

    found = [message for start, end in itertools.pairwise(edges) for message in reader.feed(WIRE[start:end])]

    assert found == MESSAGES
    assert (reader.pings, reader.pongs) == (1, 1)


@pytest.mark.parametrize("data", [b"MSG \r\n", b"MSG a 1 x\r\n", b"MSG a 1 -5\r\n", b"M\r\n", b"H\r\n", b"x" * 100_000])
def test_what_is_not_nats_is_refused(data):
    with pytest.raises(ClientError):
        FrameReader().feed(data)


@given(st.binary(max_size=200))
def test_no_bytes_do_anything_but_raise_a_client_error(data):
    with suppress(ClientError):
        assert isinstance(FrameReader().feed(data), list)


def test_headers_are_found():
    assert header_value(HEADERS, b"Nats-Msg-Id") == "7"
    assert header_value(HEADERS, b"Choria-Identity") == "web1"
    assert header_value(HEADERS, b"Missing") == ""
    assert status_of(b"NATS/1.0 503 No Responders\r\n\r\n") == "503"
    assert status_of(HEADERS) == ""
