"""Nodes that register, and the streams they end up in, over blocking connections."""

from __future__ import annotations

import base64
import json
import uuid
from typing import Any

from jetlake.choria.envelopes import make_request
from jetlake.client.raw_connection import ConnectionSettings, RawConnection
from jetlake.client.raw_streams import Streams

PIECE_BYTES = 64 * 1024


class Fleet:
    """Publishes what nodes would."""

    def __init__(self, url: str) -> None:
        self._connection = RawConnection(ConnectionSettings(url=url))

    def close(self) -> None:
        self._connection.close()

    def publish(self, subject: str, *payloads: bytes) -> None:
        """Send messages, and return when the server has them."""
        data = b"".join(b"PUB %b %d\r\n%b\r\n" % (subject.encode(), len(each), each) for each in payloads)
        for start in range(0, len(data), PIECE_BYTES):
            self._connection.send(data[start : start + PIECE_BYTES])
        # Nobody answers, which the server says after it has seen all the rest.
        self._connection.send(b"PING\r\n")
        received = b""
        # The server may have sent a PING of its own right behind it.
        while b"PONG\r\n" not in received:
            received += self._connection.receive()

    def register(self, subject: str, count: int, *, first: int = 0, body: str = "") -> list[str]:
        """Let nodes register, one message each, and return the bodies."""
        bodies = [body or json.dumps({"node": first + number}) for number in range(count)]
        self.publish(
            subject,
            *(
                make_request(
                    text,
                    sender=f"web{first + number}.example.net",
                    request_id=uuid.uuid4().hex,
                    time_s=1_520_088_557,
                )
                for number, text in enumerate(bodies)
            ),
        )
        return bodies


class Stored:
    """The streams of a server."""

    def __init__(self, url: str) -> None:
        self._connection = RawConnection(ConnectionSettings(url=url))
        self.streams = Streams(self._connection)

    def close(self) -> None:
        self._connection.close()

    def create(self, name: str, *subjects: str, **config: Any) -> None:
        self.streams.ask(
            f"STREAM.CREATE.{name}", {"name": name, "subjects": list(subjects), "storage": "file"} | config
        )

    def count(self, name: str) -> int:
        return self.streams.state(name).messages

    def message(self, name: str, sequence: int) -> dict[str, Any]:
        """Return one message with its payload as bytes under `data` and its headers as text under `hdrs`."""
        found = self.streams.ask(f"STREAM.MSG.GET.{name}", {"seq": sequence})["message"]
        found["data"] = base64.b64decode(found.get("data", ""))
        found["hdrs"] = base64.b64decode(found.get("hdrs", "")).decode()
        return dict(found)

    def documents(self, name: str) -> list[dict[str, Any]]:
        """Return all documents of a stream."""
        state = self.streams.state(name)
        return [
            json.loads(self.message(name, sequence)["data"])
            for sequence in range(state.first_sequence, state.last_sequence + 1)
        ]
