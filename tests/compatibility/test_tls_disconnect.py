"""Ends of TLS connections: what a client sent before it ended its side is still carried out and answered."""

from __future__ import annotations

import socket
import ssl
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

import pytest

from tests.compatibility.certificates import Authority
from tests.compatibility.server_process import ServerProcess, start_server_process

ATTEMPTS = 20
TIMEOUT_SECONDS = 60.0

CONNECT = b'CONNECT {"verbose":false}\r\n'

# More than a server reads at once.
MANY = 20_000


class TlsClient:
    """A client whose side of TLS and whose side of TCP can be ended apart, which the library's own socket cannot."""

    def __init__(self, server: ServerProcess, context: ssl.SSLContext, *, holds_finish: bool = False) -> None:
        """With `holds_finish`, the last words of the handshake leave with what is sent first."""
        self._socket = socket.create_connection((server.host, server.port), timeout=TIMEOUT_SECONDS)
        # INFO, and nothing of what follows.
        while self._socket.recv(1) not in {b"\n", b""}:
            pass
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname="localhost")
        self._repeat(self._tls.do_handshake)
        if not holds_finish:
            self._flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._socket.close()

    def send(self, data: bytes, *, goodbye: bool = False) -> None:
        """Send in one write, with the words that end TLS behind it if wanted."""
        self._tls.write(data)
        if goodbye:
            with pytest.raises(ssl.SSLWantReadError):
                self._tls.unwrap()
        self._socket.sendall(self._outgoing.read())

    def end(self) -> None:
        """End this side of TCP."""
        self._socket.shutdown(socket.SHUT_WR)

    def read(self, count: int) -> bytes:
        """Return so many bytes; fewer, where the server ends before."""
        received = b""
        while len(received) < count:
            try:
                plaintext = self._tls.read(min(count - len(received), 65_536))
                if not plaintext:
                    break
                # A server sends one two seconds after CONNECT, if the test has taken so long.
                received = (received + plaintext).replace(b"PING\r\n", b"")
            except ssl.SSLZeroReturnError:
                break
            except ssl.SSLWantReadError:
                records = self._receive()
                if not records:
                    break
                self._incoming.write(records)
        return received

    def read_to_end(self) -> bytes:
        return self.read(sys.maxsize)

    def _repeat(self, step: Callable[[], None]) -> None:
        while True:
            try:
                return step()
            except ssl.SSLWantReadError:
                self._flush()
                self._incoming.write(self._socket.recv(65_536))

    def _receive(self) -> bytes:
        try:
            return self._socket.recv(65_536)
        except ConnectionResetError:
            return b""

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._socket.sendall(self._outgoing.read())


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def server(server_kind: str, authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    files = authority.server()
    # There is time enough for a handshake: a machine may be busy.
    config = f'tls {{ cert_file: "{files.certificate_file}", key_file: "{files.key_file}", timeout: 60 }}'
    folder: Path = tmp_path_factory.mktemp(server_kind)
    process = start_server_process(server_kind, folder, config=config)
    yield process
    process.stop()


@pytest.fixture(params=[ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def context(request: pytest.FixtureRequest, authority: Authority) -> ssl.SSLContext:
    return authority.context(version=request.param)


def test_client_that_sends_and_half_closes_gets_its_answers(
    server: ServerProcess, context: ssl.SSLContext, subject: bytes
) -> None:
    for _ in range(ATTEMPTS):
        with TlsClient(server, context) as client:
            client.send(CONNECT + b"SUB %b 1\r\nPUB %b 2\r\nhi\r\nPING\r\n" % (subject, subject))
            client.end()

            assert client.read_to_end() == b"MSG %b 1 2\r\nhi\r\nPONG\r\n" % subject


@pytest.mark.parametrize("holds_finish", [False, True])
def test_what_a_client_published_before_its_goodbye_reaches_others(
    server: ServerProcess, context: ssl.SSLContext, subject: bytes, holds_finish: bool
) -> None:
    for _ in range(ATTEMPTS):
        with (
            TlsClient(server, context) as listener,
            TlsClient(server, context, holds_finish=holds_finish) as client,
        ):
            listener.send(CONNECT + b"SUB %b 1\r\nUNSUB 1 1\r\nPING\r\n" % subject)
            assert listener.read(len(b"PONG\r\n")) == b"PONG\r\n"

            client.send(CONNECT + b"PUB %b 2\r\nhi\r\n" % subject, goodbye=True)
            client.end()

            expected = b"MSG %b 1 2\r\nhi\r\n" % subject
            assert listener.read(len(expected)) == expected
            assert client.read_to_end() == b""


def test_nothing_is_lost_of_a_client_that_sends_much_and_half_closes(
    server: ServerProcess, context: ssl.SSLContext, subject: bytes
) -> None:
    with TlsClient(server, context) as client:
        client.send(CONNECT + b"SUB %b 1\r\n" % subject + b"PUB %b 2\r\nhi\r\n" % subject * MANY)
        client.end()

        assert client.read_to_end() == b"MSG %b 1 2\r\nhi\r\n" % subject * MANY
