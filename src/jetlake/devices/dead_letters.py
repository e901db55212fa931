"""What could not be read, kept where `jetlake dead` finds it.

A dead letter has the bytes as they came, and says in headers where they came from and what was wrong with them. The
headers are those of clients: those of the server's own letters nobody else may set.

Invariant: a message becomes one dead letter, however often it is read; its message id is made of its stream sequence.
"""

import logging

from jetlake.client.api import Api
from jetlake.devices.publisher import MESSAGE_ID
from jetlake.errors import JetlakeError

CONSUMER = "devices"

REASON_LENGTH_MAX = 300
"""Characters of the reason: a header is one line."""

REQUEST_BYTES_MAX = 64 * 1024
"""Of a request that could not be read: enough to see what it was."""

_log = logging.getLogger("jetlake.devices")


class DeadLetterWriter:
    """Keeps what one reader could not read."""

    def __init__(self, api: Api, stream: str, consumer: str = CONSUMER) -> None:
        self._api = api
        self._stream = stream
        self._consumer = consumer
        self.count = 0

    async def dead_letter_message(self, subject: str, sequence: int, payload: bytes, reason: str) -> None:
        """Keep a message of the stream."""
        await self._publish(subject, sequence, payload, reason, f"dead/{self._stream}/{self._consumer}/{sequence}")

    async def dead_letter_request(self, method: str, payload: bytes, reason: str, request_id: str) -> None:
        """Keep a request that was not one; its subject is the method's name."""
        await self._publish(f"grpc.{method}", 0, payload[:REQUEST_BYTES_MAX], reason, f"dead/grpc/{request_id}")

    async def _publish(self, subject: str, sequence: int, payload: bytes, reason: str, message_id: str) -> None:
        from nats.errors import Error

        self.count += 1
        headers = {
            "Jetlake-Client-Dead-Reason": _one_line(reason),
            "Jetlake-Client-Dead-Stream": self._stream,
            "Jetlake-Client-Dead-Sequence": str(sequence),
            "Jetlake-Client-Dead-Subject": subject,
            "Jetlake-Client-Dead-Consumer": self._consumer,
            "Jetlake-Client-Dead-Deliveries": "1",
            MESSAGE_ID: message_id,
        }
        target = f"dead.{self._stream}.{self._consumer}.{subject}"
        try:
            await self._api.connection.request(target, payload, timeout=self._api.access.timeout_s, headers=headers)
        except (Error, TimeoutError, OSError, JetlakeError) as error:
            _log.warning("cannot keep a dead letter of %s: %s", subject, str(error) or type(error).__name__)


def _one_line(text: str) -> str:
    plain = "".join(letter if letter.isascii() and letter.isprintable() else "?" for letter in text)
    return plain[:REASON_LENGTH_MAX]
