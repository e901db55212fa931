"""The port of the pages: one thread that polls many connections, each for one request.

Nobody waits for anybody: a connection that sends its request one byte at a time, or does not read its response, costs
the others nothing. When there are too many, or when they hold too many bytes, those that have been at it the longest
make room.

Invariant: whatever bytes come, from whomever, each connection is closed by the end of its deadlines and the thread goes
on until `stop`.
"""

import contextlib
import resource
import selectors
import socket
import time
from collections.abc import Callable
from threading import Thread

from jetlake.monitoring.http_connection import HttpConnection
from jetlake.monitoring.http_request import BadRequestError, HttpRequest, Response

CONNECTIONS_MAX = 512
"""Connections at once. A poller has one, for milliseconds."""

DESCRIPTORS_PART = 16
"""This part of the process's file descriptors at most: the others are for clients and streams."""

CONNECTIONS_MIN = 8

ACCEPTS_PER_TURN_MAX = 64
"""Accepted before those that are there have their turn."""

ACCEPT_PAUSE_S = 0.1
"""After a failed accept, which mostly means that the process has no file descriptors left."""

HELD_BYTES_MAX = 64 * 1024 * 1024
"""Responses that wait to be read, together. A larger one is still sent, alone."""

BACKLOG = 128

WILDCARD_HOSTS = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - compared with; a server listens where it is told

Respond = Callable[[HttpRequest], Response]


class HttpListener:
    """A port on which pages are asked for. Made = the port is taken; `start` = requests are answered.

    `connection_of` makes the connection of an accepted socket: `http_connection.HttpConnection`, or one with TLS.
    """

    def __init__(
        self,
        host: str,
        port: int,
        respond: Respond,
        *,
        connection_of: Callable[[socket.socket], HttpConnection] = HttpConnection,
        on_failure: Callable[[str], None],
    ) -> None:
        """Take the port, 0 for any free one. Raises `OSError`."""
        self._respond = respond
        self._connection_of = connection_of
        self._on_failure = on_failure
        soft_limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        is_limited = soft_limit != resource.RLIM_INFINITY
        self._connections_max = max(CONNECTIONS_MIN, soft_limit // DESCRIPTORS_PART) if is_limited else CONNECTIONS_MAX
        self._socket = open_listener(host, port)
        self.port: int = self._socket.getsockname()[1]
        self._wake_receiver, self._wake_sender = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._thread = Thread(target=self._run, name="jetlake-monitor", daemon=True)
        # In the order in which they came: the first is the one that makes room.
        self._connections: dict[socket.socket, HttpConnection] = {}
        self._held_bytes = 0
        self._accept_again_at: float | None = None
        self._stopping = False

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Close the port and every connection, and wait for the thread. Harmless when repeated."""
        if self._stopping:
            return
        self._stopping = True
        if self._thread.ident is None:
            self._close_all()
            return
        # It fails when the thread has broken and closed everything.
        with contextlib.suppress(OSError):
            self._wake_sender.send(b"\0")
        self._thread.join()

    def _run(self) -> None:
        try:
            self._serve()
        except Exception:  # noqa: BLE001 - whatever it was, it is our bug; the server itself goes on
            self._report("the listener broke")
        finally:
            self._close_all()

    def _report(self, what: str) -> None:
        """Tell of the exception that is being handled."""
        import traceback

        self._on_failure(f"monitoring: {what}; this is a bug, please report it: {traceback.format_exc()}")

    def _serve(self) -> None:
        self._selector.register(self._wake_receiver, selectors.EVENT_READ)
        self._selector.register(self._socket, selectors.EVENT_READ)
        while not self._stopping:
            for key, _ in self._selector.select(self._seconds_to_wait()):
                if key.fileobj is self._socket:
                    self._accept()
                elif isinstance(key.fileobj, socket.socket) and key.fileobj in self._connections:
                    self._advance(self._connections[key.fileobj])
            self._keep_deadlines()

    def _close_all(self) -> None:
        for connection in list(self._connections.values()):
            self._close(connection)
        self._selector.close()
        for each in (self._socket, self._wake_receiver, self._wake_sender):
            each.close()

    def _seconds_to_wait(self) -> float | None:
        """Return until when nothing is due; None = for ever."""
        deadlines = [connection.deadline for connection in self._connections.values()]
        if self._accept_again_at is not None:
            deadlines.append(self._accept_again_at)
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

    def _keep_deadlines(self) -> None:
        now = time.monotonic()
        for connection in [each for each in self._connections.values() if each.deadline <= now]:
            self._close(connection)
        if self._accept_again_at is not None and self._accept_again_at <= now:
            self._accept_again_at = None
            self._selector.register(self._socket, selectors.EVENT_READ)

    def _accept(self) -> None:
        for _ in range(ACCEPTS_PER_TURN_MAX):
            try:
                accepted, _ = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:
                self._selector.unregister(self._socket)
                self._accept_again_at = time.monotonic() + ACCEPT_PAUSE_S
                return
            self._add(accepted)

    def _add(self, accepted: socket.socket) -> None:
        if len(self._connections) >= min(CONNECTIONS_MAX, self._connections_max):
            self._close(next(iter(self._connections.values())))
        try:
            accepted.setblocking(False)
            connection = self._connection_of(accepted)
        except OSError:
            # It has gone already.
            accepted.close()
            return
        self._connections[connection.socket] = connection
        self._selector.register(connection.socket, connection.waits_for)
        self._advance(connection)

    def _advance(self, connection: HttpConnection) -> None:
        """Go as far with a connection as goes without waiting."""
        try:
            received = connection.receive()
            if isinstance(received, HttpRequest):
                self._hold(connection, self._respond(received).to_bytes(with_body=received.method != "HEAD"))
            elif isinstance(received, BadRequestError):
                self._hold(connection, Response(status=received.status, body=str(received).encode()).to_bytes())
            finished = connection.send_and_leave(self._release)
        except (BlockingIOError, InterruptedError):
            finished = False
        except OSError:
            # Reset, broken pipe, or no TLS where there should be: there is nobody to answer.
            finished = True
        except Exception:  # noqa: BLE001 - our bug, which must not end monitoring for everybody else
            self._report("a request could not be answered")
            finished = True
        if finished:
            self._close(connection)
        else:
            self._selector.modify(connection.socket, connection.waits_for)

    def _hold(self, connection: HttpConnection, response: bytes) -> None:
        """Begin to send a response; others that have not read theirs make room for it."""
        connection.answer(response)
        self._held_bytes += len(response)
        for other in list(self._connections.values()):
            if self._held_bytes <= HELD_BYTES_MAX:
                return
            if other is not connection and other.unsent:
                self._close(other)

    def _release(self, count: int) -> None:
        self._held_bytes -= count

    def _close(self, connection: HttpConnection) -> None:
        self._held_bytes -= len(connection.unsent)
        del self._connections[connection.socket]
        # A socket that broke may be unknown to the poll already.
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(connection.socket)
        connection.socket.close()


def open_listener(host: str, port: int) -> socket.socket:
    """Return a listening socket. The wildcard address means both kinds of addresses, where the machine has both."""
    is_dual = host in WILDCARD_HOSTS and socket.has_dualstack_ipv6()
    family, _, _, _, address = socket.getaddrinfo("::" if is_dual else host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_dual:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind(address)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener
