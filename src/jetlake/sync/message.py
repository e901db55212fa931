"""`SyncMessage`: one message of a blocking client, and how payloads are encoded.

Payloads go out as they are if they are bytes, as UTF-8 if they are text, and as JSON otherwise: dictionaries, lists,
numbers, dataclasses, msgspec structs.
"""

from typing import TYPE_CHECKING, Any

import msgspec

from jetlake.errors import ClientError

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from jetlake.sync.waiting import Waiting

__all__ = ["SyncMessage", "encode"]


def encode(data: object) -> bytes:
    """Return a payload as it is sent. Raises `ClientError` for a value that has no JSON."""
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    if isinstance(data, str):
        return data.encode()
    try:
        return msgspec.json.encode(data)
    except (TypeError, msgspec.MsgspecError) as error:
        raise ClientError(
            f"a payload of type {type(data).__name__} cannot be sent: give bytes, text or JSON"
        ) from error


class SyncMessage:
    """A message that was received."""

    def __init__(self, message: "Msg", waiting: "Waiting") -> None:
        self._message = message
        self._waiting = waiting

    @property
    def subject(self) -> str:
        return self._message.subject

    @property
    def data(self) -> bytes:
        return self._message.data

    @property
    def headers(self) -> dict[str, str]:
        return dict(self._message.headers or {})

    @property
    def reply(self) -> str:
        """Where an answer goes; empty if none is expected."""
        return self._message.reply

    @property
    def sequence(self) -> int:
        """The sequence in its stream; 0 for a message that did not come from a stream."""
        is_stored = self._message.reply.startswith("$JS.ACK.")
        return int(self._message.metadata.sequence.stream) if is_stored else 0

    def text(self) -> str:
        """Return the payload as text."""
        return self.data.decode()

    def json(self) -> Any:
        """Return the payload as the JSON value it is. Raises `ClientError` if it is not JSON."""
        try:
            return msgspec.json.decode(self.data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ClientError(f"the message on {self.subject!r} is not JSON: {error}") from error

    def respond(self, data: object = b"") -> None:
        """Answer a request. Raises `ClientError` if no answer is expected."""
        if not self.reply:
            raise ClientError(f"the message on {self.subject!r} is not a request: it has no reply subject")
        self._waiting.run(self._message.respond(encode(data)), what=f"answer on {self.reply!r}")

    def ack(self) -> None:
        """Acknowledge: the message is done. Returns when the server has confirmed it."""
        self._waiting.run(self._message.ack_sync(), what=f"acknowledge a message on {self.subject!r}")

    def nak(self, delay_s: float | None = None) -> None:
        """Refuse: the message is delivered again, after `delay_s` if given."""
        self._waiting.run(self._message.nak(delay=delay_s), what=f"refuse a message on {self.subject!r}")

    def term(self) -> None:
        """Give up on the message: it is not delivered again."""
        self._waiting.run(self._message.term(), what=f"terminate a message on {self.subject!r}")

    def in_progress(self) -> None:
        """Ask for more time to work on the message."""
        self._waiting.run(self._message.in_progress(), what=f"extend the time of a message on {self.subject!r}")

    def __repr__(self) -> str:
        number = f" sequence {self.sequence}" if self.sequence else ""
        return f"<message{number} on {self.subject}: {self.data[:60]!r}>"
