"""A connection of the HTTP listener under TLS. Loaded only by servers with an HTTPS port, because OpenSSL is large.

TLS may want to read in order to write and the other way round; each want becomes a `BlockingIOError` with the right
`waits_for`, so that the listener need not know of it.
"""

import contextlib
import selectors
import socket
import ssl
from collections.abc import Iterator

from jetlake.monitoring.http_connection import READ_BYTES, HttpConnection


def make_context(certificate_file: str, key_file: str) -> ssl.SSLContext:
    """Return how the HTTPS port speaks TLS. Clients need no certificate here, as on nats-server. Raises `OSError`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate_file, key_file)
    return context


class TlsConnection(HttpConnection):
    """A connection that begins with a handshake."""

    def __init__(self, accepted: socket.socket, context: ssl.SSLContext) -> None:
        secured = context.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)
        super().__init__(secured)
        self._secured = secured
        self._hands_shaken = False

    def _shake_hands(self) -> None:
        if not self._hands_shaken:
            with self._wants_translated():
                self._secured.do_handshake()
            self._hands_shaken = True

    def _read(self) -> bytes:
        with self._wants_translated():
            return self._secured.recv(READ_BYTES)

    def _write(self, piece: memoryview) -> int:
        with self._wants_translated():
            return self._secured.send(piece)

    def _say_goodbye(self) -> None:
        # The goodbye goes out at once; ignore the error that the peer has not sent its own yet.
        with contextlib.suppress(OSError):
            self._secured.unwrap()

    @contextlib.contextmanager
    def _wants_translated(self) -> Iterator[None]:
        try:
            yield
        except ssl.SSLWantReadError as want:
            self.waits_for = selectors.EVENT_READ
            raise BlockingIOError from want
        except ssl.SSLWantWriteError as want:
            self.waits_for = selectors.EVENT_WRITE
            raise BlockingIOError from want
