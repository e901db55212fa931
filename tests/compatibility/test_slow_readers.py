"""A reader that is behind slows its publishers down: everything arrives, if it reads again in time."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from tests.compatibility.certificates import Authority
from tests.compatibility.server_process import ServerProcess
from tests.compatibility.wire import RawClient, connect_line

PAYLOAD_BYTES = 1024
PAYLOAD = b"\x01" * PAYLOAD_BYTES
"""No protocol line has such a byte: counting them counts what arrived."""

MESSAGES_PER_SEND = 64

# More than the kernel's buffers and the 64 MiB that may wait for a client together hold.
MESSAGES = 128 * 1024

# Long enough for a publisher to fill what may wait; less than half of the time that both servers give the reader then.
PAUSE_SECONDS = 1.0

# A stalled publisher gets on slowly: a test machine may be busy besides.
TIMEOUT_SECONDS = 50.0


class Peer:
    """A client whose messages are published by one thread and read by another."""

    def __init__(self, server: ServerProcess, context: ssl.SSLContext | None = None) -> None:
        self.received_bytes = 0
        self._failures: list[Exception] = []
        self._socket: socket.socket = socket.create_connection((server.host, server.port), timeout=TIMEOUT_SECONDS)
        self._threads: list[threading.Thread] = []
        while self._socket.recv(1) != b"\n":
            pass
        if context is not None:
            self._socket = context.wrap_socket(self._socket, server_hostname="localhost")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        # The threads end with the socket, whatever they are waiting for.
        if self._socket.fileno() >= 0:
            self._socket.settimeout(0)
        self._socket.close()
        for thread in self._threads:
            thread.join()

    def say(self, lines: bytes) -> None:
        """Send lines and wait until the server has carried them out."""
        self._socket.sendall(connect_line(verbose=False) + lines + b"PING\r\n")
        received = b""
        while b"PONG\r\n" not in received:
            received += self._socket.recv(4096)

    def publish(self, subject: bytes, count: int = MESSAGES) -> None:
        """Publish in a thread; a PING behind the last message asks the server to mark the end."""
        batch = b"PUB %b %d\r\n%b\r\n" % (subject, PAYLOAD_BYTES, PAYLOAD) * MESSAGES_PER_SEND

        def send() -> None:
            for _ in range(count // MESSAGES_PER_SEND):
                self._socket.sendall(batch)
            self._socket.sendall(b"PING\r\n")

        self._start(send)

    def read(self, count: int = MESSAGES) -> None:
        """Pause, then read in a thread until `count` messages are there or the server has closed."""

        def receive() -> None:
            time.sleep(PAUSE_SECONDS)
            while self.received_bytes < count * PAYLOAD_BYTES:
                data = self._socket.recv(256 * 1024)
                if not data:
                    return
                self.received_bytes += data.count(b"\x01")

        self._start(receive)

    def finish(self) -> int:
        """Wait for both threads and return how many messages arrived."""
        for thread in self._threads:
            thread.join(TIMEOUT_SECONDS)
            assert not thread.is_alive(), "the connection got stuck"
        if self._failures:
            raise self._failures[0]
        return self.received_bytes // PAYLOAD_BYTES

    def _start(self, work: Callable[[], None]) -> None:
        def run() -> None:
            try:
                work()
            except OSError as failure:
                self._failures.append(failure)

        self._threads.append(threading.Thread(target=run, daemon=True))
        self._threads[-1].start()


def test_client_that_sends_to_itself_and_reads_late_gets_everything(server: ServerProcess, subject: bytes) -> None:
    with Peer(server) as peer:
        peer.say(b"SUB %b 1\r\n" % subject)

        peer.read()
        peer.publish(subject)

        assert peer.finish() == MESSAGES


def test_reader_that_pauses_gets_everything_another_client_sends(server: ServerProcess, subject: bytes) -> None:
    with Peer(server) as publisher, Peer(server) as reader:
        reader.say(b"SUB %b 1\r\n" % subject)
        publisher.say(b"")

        reader.read()
        publisher.publish(subject)

        assert reader.finish() == MESSAGES


def test_two_clients_that_send_to_each_other_and_read_late_get_everything(
    server: ServerProcess, subject: bytes
) -> None:
    with Peer(server) as one, Peer(server) as other:
        one.say(b"SUB %b.one 1\r\n" % subject)
        other.say(b"SUB %b.other 1\r\n" % subject)

        for peer, target in ((one, b".other"), (other, b".one")):
            peer.read()
            peer.publish(subject + target)

        assert (one.finish(), other.finish()) == (MESSAGES, MESSAGES)


def test_reader_over_tls_that_pauses_gets_everything(
    start_server: Callable[..., ServerProcess], tmp_path: Path, subject: bytes
) -> None:
    authority = Authority(tmp_path)
    certificate = authority.server()
    server = start_server(
        ["--tls", "--tlscert", str(certificate.certificate_file), "--tlskey", str(certificate.key_file)]
    )
    context = authority.context()

    with Peer(server, context) as publisher, Peer(server, context) as reader:
        reader.say(b"SUB %b 1\r\n" % subject)
        publisher.say(b"")

        reader.read()
        publisher.publish(subject)

        assert reader.finish() == MESSAGES


def test_client_that_sends_to_itself_and_never_reads_is_cut_off(start_server: Callable[..., ServerProcess]) -> None:
    server = start_server(config="max_pending: 4194304")

    with Peer(server) as peer, server.client() as other:
        other.connect()
        peer.say(b"SUB flood 1\r\n")

        peer.publish(b"flood")

        server.wait_for_log("Slow Consumer Detected: MaxPending of 4194304 Exceeded", seconds=TIMEOUT_SECONDS)
        other.expect_pong()


def test_without_stalling_a_reader_that_is_behind_misses_messages_and_stays(
    start_server: Callable[..., ServerProcess],
) -> None:
    server = start_server(config="max_pending: 4194304, no_fast_producer_stall: true")

    with server.client() as publisher, server.client() as reader:
        reader.connect()
        reader.send(b"SUB flood 1\r\n")
        reader.expect_pong()
        publisher.connect()
        batch = b"PUB flood %d\r\n%b\r\n" % (PAYLOAD_BYTES, PAYLOAD) * MESSAGES_PER_SEND

        for _ in range(MESSAGES // 2 // MESSAGES_PER_SEND):
            publisher.send(batch)
        publisher.expect_pong()
        received = count_until_pong(reader)

        assert 0 < received < MESSAGES // 2
        publisher.send(b"PUB flood 2\r\nok\r\n")
        reader.expect(b"MSG flood 1 2\r\nok\r\n")
        assert "Slow Consumer Detected" not in server.log()


def count_until_pong(client: RawClient) -> int:
    """Read everything that is on its way to a client and return how many messages that was."""
    client.send(b"PING\r\n")
    count = 0
    while (frame := client.read_frame()) != b"PONG\r\n":
        assert frame, "the server has closed the connection"
        count += frame.startswith(b"MSG ")
    return count
