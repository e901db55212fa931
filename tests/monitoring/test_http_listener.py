"""The port of the pages: raw bytes in, raw bytes out, and clients that mean no good."""

import contextlib
import random
import socket
import threading
import time

import pytest

from jetlake.monitoring import http_connection, http_listener
from jetlake.monitoring.http_listener import HttpListener
from jetlake.monitoring.http_request import Response

TIMEOUT_S = 60.0


class Served:
    """A listener that answers with the path it was asked for, and what it complained about."""

    def __init__(self, respond=None, **options):
        self.failures = []
        self.listener = HttpListener(
            "127.0.0.1",
            0,
            respond or (lambda request: Response(body=request.path.encode())),
            on_failure=self.failures.append,
            **options,
        )
        self.listener.start()

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.listener.port), timeout=TIMEOUT_S)

    def exchange(self, data):
        """Send bytes and return all that comes until the server closes."""
        with self.connect() as client:
            # The server may answer and hang up before all is sent.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                client.sendall(data)
            return read_all(client)

    def get(self, path):
        return self.exchange(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())

    def connection_count(self):
        return len(self.listener._connections)


def read_all(client):
    received = b""
    # A reset is an end too: the sender of nonsense may get one.
    with contextlib.suppress(ConnectionResetError):
        while piece := client.recv(65_536):
            received += piece
    return received


def wait_until(condition, what):
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


@pytest.fixture
def served():
    served = Served()
    yield served
    served.listener.stop()
    assert served.failures == []


def test_a_request_is_answered_and_the_connection_closed(served):
    answer = served.get("/varz")

    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"\r\n\r\n/varz")


def test_head_gets_no_body(served):
    answer = served.exchange(b"HEAD /varz HTTP/1.1\r\nHost: x\r\n\r\n")

    assert b"Content-Length: 5\r\n" in answer
    assert answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("method", [b"POST", b"OPTIONS", b"FOO"])
def test_any_method_is_answered_as_get(served, method):
    answer = served.exchange(method + b" /x HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi")

    assert answer.endswith(b"/x")


def test_a_request_may_come_in_pieces(served):
    with served.connect() as client:
        for byte in b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n":
            client.sendall(bytes([byte]))
        assert read_all(client).endswith(b"/slow")


def test_only_the_first_request_of_a_connection_is_answered(served):
    answer = served.exchange(b"GET /one HTTP/1.1\r\nHost: x\r\n\r\nGET /two HTTP/1.1\r\nHost: x\r\n\r\n")

    assert answer.endswith(b"/one")


def test_a_large_body_behind_the_request_does_not_lose_the_response(served):
    answer = served.exchange(b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 500000\r\n\r\n" + b"b" * 500_000)

    assert answer.endswith(b"/x")


def test_a_large_response_arrives_whole():
    served = Served(lambda _: Response(body=b"x" * 20_000_000))
    try:
        assert len(served.get("/").partition(b"\r\n\r\n")[2]) == 20_000_000
        assert served.listener._held_bytes == 0
    finally:
        served.listener.stop()


@pytest.mark.parametrize(
    ("data", "start"),
    [
        (b"GET /\r\n\r\n", b"HTTP/1.1 400 Bad Request\r\n"),
        (b"CONNECT {}\r\n", b"HTTP/1.1 400 Bad Request\r\n"),
        (b"\x16\x03\x01\x02\x00\x01\n", b"HTTP/1.1 400 Bad Request\r\n"),
        (b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 400 Bad Request\r\n"),
        (b"GET / HTTP/3.0\r\nHost: x\r\n\r\n", b"HTTP/1.1 505 HTTP Version Not Supported\r\n"),
        (b"GET /" + b"a" * 100_000, b"HTTP/1.1 431 Request Header Fields Too Large\r\n"),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 100_000, b"HTTP/1.1 431 Request Header Fields Too Large\r\n"),
        (b"a" * 100_000, b"HTTP/1.1 431 Request Header Fields Too Large\r\n"),
    ],
)
def test_what_is_no_request_is_told_so(served, data, start):
    assert served.exchange(data).startswith(start)
    assert served.get("/still").endswith(b"/still")


def test_random_bytes_do_no_harm(served):
    chance = random.Random(1)
    words = [b"GET ", b" HTTP/1.1", b"\r\n", b"\n", b"Host: x", b":", b"/", b"?", b"%", b"\x00", b"\xff", b" "]
    for _ in range(1_500):
        data = b"".join(
            chance.choice(words) if chance.random() < 0.7 else chance.randbytes(chance.randrange(40))
            for _ in range(chance.randrange(12))
        )
        with served.connect() as client:
            # The server may have hung up already.
            with contextlib.suppress(OSError):
                client.sendall(data)
                client.shutdown(socket.SHUT_WR)
            answer = read_all(client)
            assert answer == b"" or answer.startswith(b"HTTP/1.1 ")

    assert served.get("/still").endswith(b"/still")
    wait_until(lambda: served.connection_count() == 0, "connections are left")


def test_clients_that_vanish_do_no_harm(served):
    linger_none = b"\x01\x00\x00\x00\x00\x00\x00\x00"
    for data in (b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n") * 50:
        with served.connect() as client:
            client.sendall(data)
            # Closing now sends a reset.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_none)

    assert served.get("/still").endswith(b"/still")


def test_two_hundred_slow_clients_do_not_slow_down_another(served):
    slow = [served.connect() for _ in range(200)]
    stop = threading.Event()

    def drip():
        while not stop.wait(0.05):
            for client in slow:
                with contextlib.suppress(OSError):
                    client.sendall(b"X")

    for client in slow:
        client.sendall(b"GET / HTTP/1.1\r\n")
    dripping = threading.Thread(target=drip)
    dripping.start()
    try:
        for _ in range(20):
            assert served.get("/quick").endswith(b"/quick")
    finally:
        stop.set()
        dripping.join()
        for client in slow:
            client.close()


def test_slow_clients_are_cut_off_at_the_deadline(monkeypatch):
    monkeypatch.setattr(http_connection, "RECEIVE_S_MAX", 0.3)
    served = Served()
    try:
        begun = time.monotonic()
        with served.connect() as client:
            client.sendall(b"GET / HT")
            assert read_all(client) == b""
            assert time.monotonic() - begun > 0.2
    finally:
        served.listener.stop()


def test_clients_that_do_not_read_are_cut_off_at_the_deadline(monkeypatch):
    monkeypatch.setattr(http_connection, "SEND_S_MAX", 0.3)
    has_come = threading.Event()

    def answer(_):
        has_come.set()
        return Response(body=b"x" * 20_000_000)

    served = Served(answer)
    try:
        with served.connect() as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert has_come.wait(TIMEOUT_S), "it never came"
            wait_until(lambda: served.connection_count() == 0, "it was not cut off")
        assert served.listener._held_bytes == 0
    finally:
        served.listener.stop()


def test_the_oldest_makes_room_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr(http_listener, "CONNECTIONS_MAX", 3)
    served = Served()
    try:
        waiting = []
        for expected in (1, 2, 3):
            waiting.append(served.connect())
            wait_until(lambda expected=expected: served.connection_count() == expected, "it was not accepted")

        assert served.get("/new").endswith(b"/new")

        assert read_all(waiting[0]) == b""
        waiting[2].sendall(b"GET /third HTTP/1.1\r\nHost: x\r\n\r\n")
        assert read_all(waiting[2]).endswith(b"/third")
        for client in waiting:
            client.close()
    finally:
        served.listener.stop()


def test_unread_responses_make_room_for_new_ones(monkeypatch):
    monkeypatch.setattr(http_listener, "HELD_BYTES_MAX", 30_000_000)
    served = Served(lambda _: Response(body=b"x" * 20_000_000))
    try:
        clients = [served.connect() for _ in range(3)]
        for client in clients:
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            # Some bytes are in the sockets' buffers; the rest is held here.
            assert client.recv(1)
        wait_until(lambda: served.connection_count() == 1, "those that do not read were kept")

        assert served.listener._held_bytes <= 30_000_000
        assert len(read_all(clients[2])) > 20_000_000
        for client in clients:
            client.close()
    finally:
        served.listener.stop()


def test_a_stop_ends_connections_and_frees_the_port():
    served = Served()
    client = served.connect()
    wait_until(lambda: served.connection_count() == 1, "it was not accepted")

    served.listener.stop()
    served.listener.stop()

    assert read_all(client) == b""
    client.close()
    HttpListener("127.0.0.1", served.listener.port, served.listener._respond, on_failure=print).stop()


def test_a_taken_port_is_refused(served):
    with pytest.raises(OSError, match="already in use"):
        HttpListener("127.0.0.1", served.listener.port, served.listener._respond, on_failure=print)


def test_the_wildcard_takes_both_kinds_of_addresses():
    listener = http_listener.open_listener("0.0.0.0", 0)
    port = listener.getsockname()[1]

    socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S).close()
    if socket.has_dualstack_ipv6():
        socket.create_connection(("::1", port), timeout=TIMEOUT_S).close()
    listener.close()


def test_a_bug_of_ours_is_told_and_the_next_request_is_answered():
    def broken(request):
        if request.path == "/broken":
            raise RuntimeError("a bug")
        return Response(body=b"fine")

    served = Served(broken)
    assert served.get("/broken") == b""
    wait_until(lambda: served.failures, "nobody was told")

    assert "RuntimeError: a bug" in served.failures[0]
    assert served.get("/").endswith(b"\r\n\r\nfine")
    wait_until(lambda: not served.connection_count(), "a connection was left")
    served.listener.stop()
