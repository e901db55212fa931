"""Conversion: one received message becomes one publication, a document or a dead letter. No sockets.

Invariant: every message gives exactly one publication, or one reason why there is none.
"""

import itertools
import secrets
import time
from collections.abc import Callable, Iterable

import msgspec

from jetlake.adapters.options import AdapterOptions
from jetlake.choria import documents
from jetlake.choria.envelopes import REASON_LETTERS_MAX, EnvelopeError, Received, parse, parse_raw
from jetlake.choria.signatures import Verifier
from jetlake.choria.subjects import PLACE, expand
from jetlake.client.raw_frames import Message, header_value

__all__ = ["Converter", "Publication"]

OVERHEAD_BYTES = 300
"""What a publication takes in memory besides its bytes."""


class Publication(msgspec.Struct, gc=False):
    """One message to publish. `headers` is a whole block; `tries` counts how often it was refused or not answered."""

    subject: bytes
    headers: bytes
    body: bytes
    # What it takes in memory, about.
    memory_bytes: int
    is_dead_letter: bool = False
    tries: int = 0


class Converter:
    """Converts for one adapter. Several threads may use it at once."""

    def __init__(
        self, options: AdapterOptions, verifier: Verifier | None = None, clock_ns: Callable[[], int] = time.time_ns
    ) -> None:
        self._options = options
        self._verifier = verifier
        self._clock_ns = clock_ns
        self._protocol = documents.output_protocol(options.kind)
        self._topic = options.stream.topic
        # Without a place for the sender all subjects are the same.
        self._subject = None if PLACE in self._topic else self._topic.encode()
        self._run = secrets.token_hex(8)
        self._numbers = itertools.count(1)

    def convert(self, messages: Iterable[Message]) -> tuple[list[Publication], list[str]]:
        """Return the publications, and the reasons why messages could not be converted.

        A message that could not is among the publications too, as a dead letter, if the adapter keeps them.
        """
        publications: list[Publication] = []
        reasons: list[str] = []
        for message in messages:
            try:
                received = self._receive(message)
                body = documents.encode(received, self._protocol)
            except EnvelopeError as error:
                reasons.append(str(error))
                if self._options.dead_letters:
                    publications.append(self.dead_letter(message[3], message[0], str(error)))
                continue
            subject = self._subject or expand(self._topic, received.sender).encode()
            headers = f"NATS/1.0\r\nNats-Msg-Id: {documents.header_id_of(received)}\r\n\r\n".encode()
            publications.append(Publication(subject, headers, body, len(body) + len(headers) + OVERHEAD_BYTES))
        return publications, reasons

    def dead_letter(self, payload: bytes, subject: bytes, reason: str) -> Publication:
        """Return the dead letter for a message: the payload as it is, and in headers where it came from and why."""
        topic = expand(self._options.dead_letters, self._options.name)
        fields = (
            ("Nats-Msg-Id", self._new_id()),
            ("Jetlake-Adapter", self._options.name),
            ("Jetlake-Adapter-Subject", subject.decode(errors="replace")),
            ("Jetlake-Adapter-Reason", reason),
        )
        block = "".join(f"{name}: {_header_text(value)}\r\n" for name, value in fields)
        headers = f"NATS/1.0\r\n{block}\r\n".encode()
        size = len(payload) + len(headers) + OVERHEAD_BYTES
        return Publication(topic.encode(), headers, payload, size, is_dead_letter=True)

    def _receive(self, message: Message) -> Received:
        subject, _, headers, payload = message
        protocol = self._options.ingest.protocol
        if protocol == "raw":
            return self._receive_raw(subject, headers, payload)
        if self._verifier is None:
            return parse(payload, protocol)
        received = parse(payload, protocol, keep_signature=True)
        self._verifier.check(received)
        return received

    def _receive_raw(self, subject: bytes, headers: bytes, payload: bytes) -> Received:
        """Take a message without an envelope; what Choria's submission says in headers is used."""
        sender = header_value(headers, b"Choria-Identity") or header_value(headers, b"Choria-Sender")
        created = header_value(headers, b"Choria-Created")
        try:
            return parse_raw(
                payload,
                sender=sender or subject.decode(errors="replace"),
                time_ns=int(created) if created.isdecimal() else self._clock_ns(),
                request_id=header_value(headers, b"Nats-Msg-Id") or self._new_id(),
            )
        except EnvelopeError:
            raise
        except ValueError as error:
            raise EnvelopeError(str(error)) from error

    def _new_id(self) -> str:
        return f"{self._run}-{next(self._numbers)}"


def _header_text(text: str) -> str:
    """Return a text as a header can have it: one line, not too long."""
    line = "".join(letter if letter.isprintable() else " " for letter in text[:REASON_LETTERS_MAX])
    return line.strip()
