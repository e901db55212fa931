"""Requests and responses as bytes."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetlake.monitoring.http_request import (
    BadRequestError,
    HttpRequest,
    Response,
    check_first_line,
    find_end,
    read_head,
)


def read(first_line: str, *headers: str) -> HttpRequest:
    return read_head("\r\n".join([first_line, *(headers or ["Host: x"]), "", ""]).encode())


def test_a_request_is_read():
    assert read("GET /connz?sort=subs&limit=1 HTTP/1.1") == HttpRequest(
        method="GET", path="/connz", query="sort=subs&limit=1"
    )
    assert read("GET /a%20b HTTP/1.1").path == "/a b"
    assert read("GET http://host:8222/varz?x=1 HTTP/1.1") == HttpRequest(method="GET", path="/varz", query="x=1")
    assert read("GET http://host HTTP/1.1").path == "/"
    assert read_head(b"GET / HTTP/1.0\n\n").path == "/"


@pytest.mark.parametrize(
    "head",
    [
        b"GET /\r\n\r\n",
        b"GET  / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1 x\r\nHost: x\r\n\r\n",
        b"G\x00T / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET varz HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET ftp://x/varz HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /%4 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /\x7f HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.x\r\nHost: x\r\n\r\n",
        b"GET / HTTPS/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n: no name\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        b"\x00\x01\x02\r\n\r\n",
        b"\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused(head):
    with pytest.raises(BadRequestError) as refusal:
        read_head(head)

    assert (refusal.value.status, str(refusal.value)) == (400, "400 Bad Request")


@pytest.mark.parametrize(
    ("head", "status", "text"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 400, "400 Bad Request: missing required Host header"),
        (b"GET / HTTP/2.0\r\n\r\n", 505, "505 HTTP Version Not Supported: unsupported protocol version"),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 101 + b"\r\n", 431, "431 Request Header Fields Too Large"),
    ],
)
def test_special_refusals_have_the_words_of_nats_server(head, status, text):
    with pytest.raises(BadRequestError) as refusal:
        read_head(head)

    assert (refusal.value.status, str(refusal.value)) == (status, text)


def test_a_wrong_first_line_is_refused_before_the_rest_comes():
    check_first_line(b"GET / HT")
    check_first_line(b"GET / HTTP/1.1\r\nHo")
    with pytest.raises(BadRequestError):
        check_first_line(b"CONNECT {}\r\n")


@pytest.mark.parametrize(
    ("received", "end"),
    [
        (b"", -1),
        (b"a\r\n", -1),
        (b"a\r\n\r\nrest", 5),
        (b"a\n\nrest", 3),
        (b"a\n\r\nrest", 4),
        (b"a\r\nb\n\nc\r\n\r\n", 6),
    ],
)
def test_the_end_of_a_head_is_found(received, end):
    assert find_end(received) == end
    assert find_end(bytearray(received)) == end


def test_parameters_are_decoded_and_the_first_counts():
    request = HttpRequest(method="GET", path="/", query="a=1&a=2&b=x+y%20z&c&%64=4&bad=%zz&semi=1;2&=empty")

    assert request.parameters() == {"a": "1", "b": "x y z", "c": "", "d": "4", "": "empty"}


def test_endless_parameters_are_cut():
    assert (
        len(HttpRequest(method="GET", path="/", query="&".join(f"p{n}=1" for n in range(100_000))).parameters()) == 100
    )


def test_a_header_may_have_any_text():
    response = Response(status=307, headers=(("Location", "http://b\xfcro.例え:8280/\udcff"),))

    head = response.to_bytes()

    assert "Location: http://büro.例え:8280/?\r\n".encode() in head


def test_a_response_says_its_length_and_that_it_is_the_last():
    response = Response(status=404, headers=(("X-Y", "z"),), body="é".encode())

    head, _, body = response.to_bytes().partition(b"\r\n\r\n")

    lines = head.decode().split("\r\n")
    assert lines[0] == "HTTP/1.1 404 Not Found"
    assert "X-Y: z" in lines
    assert "Content-Length: 2" in lines
    assert "Connection: close" in lines
    assert body.decode() == "é"
    assert response.to_bytes(with_body=False).endswith(b"\r\n\r\n")


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(received):
    head = received + b"\r\n\r\n"

    # Any other exception is a failure.
    with contextlib.suppress(BadRequestError):
        check_first_line(head)
        read_head(head[: find_end(head)]).parameters()


@given(st.text(max_size=100), st.text(max_size=100))
def test_any_target_is_read_or_refused(path, query):
    line = f"GET /{path}?{query} HTTP/1.1\r\nHost: x\r\n\r\n".encode(errors="replace")

    with contextlib.suppress(BadRequestError):
        read_head(line).parameters()
