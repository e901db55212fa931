"""Ingest workers: receive messages as a member of the queue group, convert them, put them into the queue.

When the queue is full a worker stops reading, and the server holds what comes for it. It must not fall behind for
long: a server cuts off a client that does not read, and what it held is lost uncounted. How far a worker is behind is
known by its PINGs, because a PONG comes after everything that the server had sent before: one that is `queue_wait_s`
behind drops what has no room, and counts it, until it has caught up.

Invariant: a message that was read is in the queue, or counted as dropped or as unparsable. After a stop every message
that the server had sent to this worker has been read.
"""

import time

from jetlake.adapters.worker import Complaints, Worker, WorkerContext, raise_complaints
from jetlake.client.raw_connection import RawConnection
from jetlake.client.raw_frames import FrameReader
from jetlake.errors import ClientError

__all__ = ["IngestWorker"]

RECEIVE_WAIT_S = 0.2
"""How soon a worker without messages notices that it is to stop."""

PING_INTERVAL_S = 30.0
"""How often a quiet server is asked whether it is still there; after a second interval of silence it is not."""

LAG_INTERVAL_S = 0.2
"""How often a busy worker finds out how far it is behind."""

DRAIN_SHARE = 0.5
"""Of the time for a stop: for what is on its way when a worker unsubscribes; the rest is for delivering it."""


class IngestWorker(Worker):
    """One member of the queue group."""

    def __init__(self, context: WorkerContext, number: int) -> None:
        super().__init__(f"{context.options.name}.{number}", "input", context.report)
        self._options = context.options
        self._converter = context.converter
        self._queue = context.queue
        self._connect = context.connect
        self._ready = context.ready
        self.is_listening = False
        # When the last PING was sent, whether it is still unanswered, and up to when everything has been read.
        self._asked_s = self._heard_s = self._caught_up_s = 0.0
        self._is_asking = False
        # Messages of the last read.
        self._handled = 0
        self._unparsable = Complaints(context.report)
        self._full = Complaints(context.report)

    def _is_over(self) -> bool:
        return self.stopping.is_set()

    def _work(self) -> None:
        while not self._ready.wait(RECEIVE_WAIT_S):
            if self.stopping.is_set():
                return
        name = f"choria adapter {self.counters.name}"
        with self._connect(self._options.ingest.servers, name) as connection:
            subscription = connection.new_subscription()
            line = f"SUB {self._options.ingest.topic} {self._options.group} {subscription}\r\n"
            # The PONG says that the server has the subscription.
            connection.send(line.encode() + b"PING\r\n")
            reader = FrameReader(connection.take_unparsed())
            self.is_listening = False
            self._receive_until_stopped(connection, reader)
            self._drain(connection, reader, subscription)

    def _receive_until_stopped(self, connection: RawConnection, reader: FrameReader) -> None:
        # The first PING went out with the subscription.
        self._caught_up_s = self._asked_s = time.monotonic()
        self._is_asking = True
        while not self.stopping.is_set():
            data = connection.try_receive(RECEIVE_WAIT_S)
            now_s = time.monotonic()
            if data is not None:
                self._handle(connection, reader, data, self._wait_s(now_s))
                self._note_pongs(connection, reader)
                self._heard_s = now_s
                self._linger(self._handled)
                continue
            # Nothing is on its way, or the server is gone.
            self._caught_up_s = now_s
            if now_s - max(self._heard_s, self._asked_s) > PING_INTERVAL_S:
                if self._is_asking:
                    raise ClientError(f"{connection.url} did not answer for {PING_INTERVAL_S:g} s; connecting again")
                self._ask(connection)

    def _wait_s(self, now_s: float) -> float:
        """Return how long this worker may wait for room: until it is as far behind as it may be."""
        return min(max(self._caught_up_s + self._options.queue_wait_s - now_s, 0.0), self._options.queue_wait_s)

    def _note_pongs(self, connection: RawConnection, reader: FrameReader) -> None:
        if reader.pongs:
            reader.pongs = 0
            self._is_asking = False
            # Everything that was sent before the PING has been read.
            self._caught_up_s = self._asked_s
            if not self.is_listening:
                self.is_listening = True
                self._note_connected()
        if not self._is_asking and time.monotonic() - self._asked_s > LAG_INTERVAL_S:
            self._ask(connection)

    def _ask(self, connection: RawConnection) -> None:
        connection.send(b"PING\r\n")
        self._asked_s = time.monotonic()
        self._is_asking = True

    def _drain(self, connection: RawConnection, reader: FrameReader, subscription: int) -> None:
        """Unsubscribe, and take what the server had sent before it knew."""
        connection.send(f"UNSUB {subscription}\r\nPING\r\n".encode())
        reader.pongs = 0
        # The answer to an earlier PING is not the one that ends it.
        awaited = 2 if self._is_asking else 1
        deadline = time.monotonic() + self._options.drain_s * DRAIN_SHARE
        while reader.pongs < awaited and time.monotonic() < deadline:
            data = connection.try_receive(RECEIVE_WAIT_S)
            if data is not None:
                self._handle(connection, reader, data, self._options.drain_s)

    def _handle(self, connection: RawConnection, reader: FrameReader, data: bytes, wait_s: float) -> None:
        started_s = time.perf_counter()
        messages = reader.feed(data)
        self._handled = len(messages)
        if reader.pings:
            connection.send(b"PONG\r\n" * reader.pings)
            reader.pings = 0
        if messages:
            counters = self.counters
            counters.messages += len(messages)
            counters.bytes += sum(len(message[3]) for message in messages)
            publications, reasons = self._converter.convert(messages)
            if reasons:
                self._note_unparsable(reasons)
            counters.busy_s += time.perf_counter() - started_s
            accepted = self._queue.put(publications, wait_s)
            if accepted < len(publications):
                self._note_full(len(publications) - accepted)
        raise_complaints(reader.complaints)

    def _note_unparsable(self, reasons: list[str]) -> None:
        self.counters.errors += len(reasons)
        fate = "discarding"
        if self._options.dead_letters:
            self.counters.dead_letters += len(reasons)
            fate = f"keeping as dead letter on {self._options.dead_letters}"
        self._unparsable.note(f"adapter {self.counters.name}: {fate} a message: {reasons[0]}", len(reasons))

    def _note_full(self, count: int) -> None:
        self.counters.dropped += count
        self.counters.errors += count
        self._full.note(
            f"adapter {self.counters.name}: the queue of {len(self._queue):,} messages stayed full for "
            f"{self._options.queue_wait_s:g} s: {count:,} messages are dropped; see whether the stream is slow",
            count,
        )
