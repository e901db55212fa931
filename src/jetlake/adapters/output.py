"""Stream workers: publish documents with an id, and hold each until the stream has acknowledged it.

A batch is written at once and its answers are awaited together. A document that is not answered in time, or is refused
for now, is sent again with the same id, so the stream keeps one copy; after `tries` the worker gives up, and the
document becomes a dead letter or is counted as failed. A lost connection does not count as a try: the batch waits for
the server to come back, and the queue in front of it fills up.

Invariant: a publication that was taken from the queue is acknowledged, given up and counted, or still held here.
"""

import re
import secrets
import time
from collections.abc import Iterable
from threading import Event

import msgspec

from jetlake.adapters.conversion import Publication
from jetlake.adapters.worker import Complaints, Worker, WorkerContext, pause_s
from jetlake.client.raw_connection import RawConnection
from jetlake.client.raw_frames import FrameReader, Message, status_of
from jetlake.errors import ClientError

__all__ = ["StreamWorker"]

BATCH_MESSAGES_MAX = 256
"""Publications of one worker without an answer: enough to share a sync of the disk, few enough to send again."""

BATCH_BYTES_MAX = 4 * 1024 * 1024
"""Of one batch: ten workers hold forty megabytes at most."""

TAKE_WAIT_S = 0.2
"""How soon an idle worker notices the end."""

RECEIVE_WAIT_S = 0.2
SERVER_FAULT = 500
"""An answer with such a code or a higher one may be another one later; below it is final."""

NO_RESPONDERS = "503"


class _Refusal(msgspec.Struct, gc=False):
    code: int = 0
    err_code: int = 0
    description: str = "refused"


class _Acknowledgement(msgspec.Struct, gc=False):
    stream: str = ""
    seq: int = 0
    duplicate: bool = False
    error: _Refusal | None = None


_decode = msgspec.json.Decoder(_Acknowledgement).decode

_PLAIN_ANSWER = re.compile(rb'MSG \S+\.(\d{1,18}) \d+ \d+\r\n\{"stream":"[^"\\]*", ?"seq":\d+\}\r\n')
"""A whole frame on the inbox: the number of a publication, and that a stream has stored it."""


class StreamWorker(Worker):
    """One publisher. `abandoning` set = give up what is held, the time to drain is over."""

    def __init__(self, context: WorkerContext, number: int) -> None:
        super().__init__(f"{context.options.name}.{number}", "output", context.report)
        self._options = context.options
        self._converter = context.converter
        self._queue = context.queue
        self._connect = context.connect
        self._ready = context.ready
        self._client_name = f"{context.options.name}_{number}-{secrets.token_hex(16)}"
        self._connection: RawConnection | None = None
        self._reader = FrameReader()
        self._inbox = ""
        self._refused = Complaints(context.report)
        self._number = 0
        # Publications of the last batch.
        self._batch = 0
        # By number: what has no answer yet. The numbers stay the same when something is sent again.
        self.pending: dict[int, Publication] = {}
        # Dead letters of the batch that is under way; they follow it.
        self._letters: list[Publication] = []
        self.abandoning = Event()

    @property
    def in_flight(self) -> int:
        """Taken from the queue, and not acknowledged yet."""
        return len(self.pending) + len(self._letters)

    def _is_over(self) -> bool:
        return self.abandoning.is_set() or (not self.in_flight and self._queue.is_drained)

    def _pause(self, seconds: float) -> None:
        # A stop does not end it: what is held is still to be delivered.
        self.abandoning.wait(seconds)

    def _work(self) -> None:
        connection = self._open()
        try:
            while not self._is_over():
                if self._letters:
                    letters, self._letters = self._letters, []
                    self._hold(letters, connection.payload_bytes_max)
                if not self.pending:
                    self._fetch_batch(connection)
                else:
                    self._deliver(connection)
                    self._linger(self._batch)
        finally:
            self._connection = None
            connection.close()

    def _open(self) -> RawConnection:
        connection = self._connect(self._options.stream.servers, self._client_name)
        self._note_connected()
        self._inbox = connection.new_inbox()
        try:
            connection.send(f"SUB {self._inbox}.* {connection.new_subscription()}\r\n".encode())
        except BaseException:
            connection.close()
            raise
        self._reader = FrameReader(connection.take_unparsed())
        self._connection = connection
        self._ready.set()
        return connection

    def _fetch_batch(self, connection: RawConnection) -> None:
        batch = self._queue.remove_batch(BATCH_MESSAGES_MAX, BATCH_BYTES_MAX, TAKE_WAIT_S)
        if not batch:
            # PINGs want an answer, and a server that has gone is noticed before there is something to send.
            while (data := connection.try_receive(0.001)) is not None:
                self._reader.feed(data)
                self._answer_pings(connection)
            return
        self._hold(batch, connection.payload_bytes_max)
        self._batch = len(batch)

    def _hold(self, batch: Iterable[Publication], payload_bytes_max: int) -> None:
        for publication in batch:
            size = len(publication.headers) + len(publication.body)
            if size > payload_bytes_max:
                reason = f"a message of {size:,} bytes is larger than the server's max_payload of {payload_bytes_max:,}"
                self._give_up(publication, reason, may_be_kept=False)
                continue
            self._number += 1
            self.pending[self._number] = publication

    def _deliver(self, connection: RawConnection) -> None:
        """Publish all that is pending, and wait for the answers."""
        started_s = time.perf_counter()
        self._send(connection, self.pending)
        refused = self._await(connection, self._options.stream.acknowledgement_s)
        self.counters.busy_s += time.perf_counter() - started_s
        if not self.pending:
            return
        unanswered = f"no acknowledgement within {self._options.stream.acknowledgement_s:g} s"
        tries = 0
        for number in list(self.pending):
            publication = self.pending[number]
            publication.tries += 1
            tries = max(tries, publication.tries)
            reason = refused.get(number, unanswered)
            self._refused.note(f"adapter {self.counters.name}: {publication.subject.decode()}: {reason}; trying again")
            self.counters.errors += 1
            if publication.tries >= self._options.stream.tries:
                del self.pending[number]
                self._give_up(publication, f"{reason}, {publication.tries} tries")
        if self.pending:
            self.counters.retried += len(self.pending)
            self._pause(pause_s(tries))

    def _send(self, connection: RawConnection, pending: dict[int, Publication]) -> None:
        parts: list[bytes] = []
        for number, publication in pending.items():
            head = len(publication.headers)
            parts.append(
                b"HPUB %b %b.%d %d %d\r\n"
                % (publication.subject, self._inbox.encode(), number, head, head + len(publication.body))
            )
            parts += (publication.headers, publication.body, b"\r\n")
        connection.send(b"".join(parts))

    def _await(self, connection: RawConnection, wait_s: float) -> dict[int, str]:
        """Take answers until all are there or it is time; return why some were refused for now."""
        deadline = time.monotonic() + wait_s
        refused: dict[int, str] = {}
        while len(refused) < len(self.pending) and not self.abandoning.is_set():
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                break
            data = connection.try_receive(min(left_s, RECEIVE_WAIT_S))
            if data is None:
                continue
            messages = self._reader.feed(self._record_plain_answers(data, refused))
            self._answer_pings(connection)
            for message in messages:
                self._record_answer(message, refused)
        return refused

    def _record_plain_answers(self, data: bytes, refused: dict[int, str]) -> bytes:
        """Note the answers at the beginning that say nothing but stream and sequence, and return the rest.

        Nearly all answers are of this kind; taking each apart as a frame and as JSON would cost three times as much.
        """
        data = self._reader.take_rest() + data
        match, pending, counters = _PLAIN_ANSWER.match, self.pending, self.counters
        position = 0
        while found := match(data, position):
            position = found.end()
            publication = pending.pop(int(found[1]), None)
            if publication is not None:
                counters.messages += 1
                counters.bytes += len(publication.body)
                if refused:
                    refused.pop(int(found[1]), None)
        return data[position:] if position else data

    def _answer_pings(self, connection: RawConnection) -> None:
        """Answer what the server asks of every client, and report what it complains of."""
        reader = self._reader
        if reader.pings:
            connection.send(b"PONG\r\n" * reader.pings)
            reader.pings = 0
        for complaint in reader.complaints:
            self._refused.note(f"adapter {self.counters.name}: the server says: {complaint}")
        reader.complaints.clear()

    def _record_answer(self, message: Message, refused: dict[int, str]) -> None:
        """Note one answer."""
        subject, _, headers, payload = message
        number = int(subject[subject.rfind(b".") + 1 :])
        publication = self.pending.get(number)
        if publication is None:
            # A second answer to something that was sent twice.
            return
        if headers and status_of(headers) == NO_RESPONDERS:
            refused[number] = "no stream is listening on this subject"
            return
        try:
            answer = _decode(payload)
        except ValueError as error:
            raise ClientError(f"the reply on {publication.subject.decode()} did not come from a stream") from error
        if answer.error is None and answer.stream:
            del self.pending[number]
            refused.pop(number, None)
            counters = self.counters
            counters.messages += 1
            counters.bytes += len(publication.body)
            counters.duplicates += answer.duplicate
            return
        refusal = answer.error or _Refusal(description="the reply did not come from a stream")
        reason = f"{refusal.description} ({refusal.err_code})"
        if 0 < refusal.code < SERVER_FAULT:
            del self.pending[number]
            refused.pop(number, None)
            self._give_up(publication, reason)
        else:
            refused[number] = reason

    def _give_up(self, publication: Publication, reason: str, *, may_be_kept: bool = True) -> None:
        """Make a dead letter of what cannot be published, or drop it."""
        subject = publication.subject.decode()
        self.counters.errors += 1
        if self._options.dead_letters and may_be_kept and not publication.is_dead_letter:
            self.counters.dead_letters += 1
            letter = self._converter.dead_letter(publication.body, publication.subject, reason)
            self._letters.append(letter)
            self._refused.note(f"adapter {self.counters.name}: {subject}: {reason}; kept as dead letter")
        else:
            self.counters.failed += 1
            self._refused.note(f"adapter {self.counters.name}: {subject}: {reason}; discarded")
