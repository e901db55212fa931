"""`Publisher`: stores a message exactly once, also when an acknowledgement is lost or a cluster elects a leader.

```python
publisher = Publisher(api, "KV_CFG")
revision = await publisher.publish("$KV.CFG.a", b"1", expected_sequence=0)
```

Each message has an id. One that is not acknowledged in time is sent again with the same id, which the stream knows. A
conditional message that was stored fails its own condition the second time; then the publisher reads the message that
follows the expected one, and its id shows whether it is ours.

Invariant: `publish` returns the sequence of the one message that was stored, or raises; a `ConflictError` means that
another writer's message came first.
"""

import asyncio
import secrets
from base64 import b64decode
from itertools import count
from typing import Any

import msgspec

from jetlake.client.api import TEMPORARY, Api, token
from jetlake.client.channel import Channel, Reply, header_block, header_value
from jetlake.errors import ApiError, ClientError, ConflictError

__all__ = ["EXPECTED_SEQUENCE", "MESSAGE_ID", "Publisher"]

MESSAGE_ID = "Nats-Msg-Id"
EXPECTED_SEQUENCE = "Nats-Expected-Last-Subject-Sequence"

RETRY_S_MAX = 30.0
"""Longer than an election in a cluster takes, and shorter than any stream forgets ids, unless its TTL is shorter."""

PAUSE_S_FIRST, PAUSE_S_MAX = 0.05, 1.0
"""Between two attempts while nobody answers."""

WRONG_SEQUENCE = (10071, 10164)
"""Refusals of a message whose condition does not hold: on one server, and before replication."""

NO_MESSAGE = 10037


class Acknowledgement(msgspec.Struct):
    """What a stream answers to a publish."""

    seq: int = 0
    error: dict[str, Any] | None = None


_DECODER = msgspec.json.Decoder(Acknowledgement)


class Publisher:
    """Publishes to one stream."""

    def __init__(self, api: Api, stream: str) -> None:
        self._api = api
        self._channel = Channel.of(api.connection)
        self._stream = stream
        self._session = secrets.token_hex(8)
        self._numbers = count(1)

    async def publish(
        self,
        subject: str,
        payload: bytes = b"",
        headers: dict[str, str] | None = None,
        *,
        expected_sequence: int | None = None,
    ) -> int:
        """Store a message and return its sequence.

        With `expected_sequence` only if the last message of the subject has that sequence; 0 = there is none.
        """
        message_id = self.new_id()
        fields = {MESSAGE_ID: message_id, **(headers or {})}
        if expected_sequence is not None:
            fields[EXPECTED_SEQUENCE] = str(expected_sequence)
        block = header_block(fields)
        try:
            reply = await self._channel.request(subject, payload, headers=block, timeout_s=self._api.access.timeout_s)
        except TimeoutError:
            return await self._insist(subject, payload, block, message_id, expected_sequence)
        if reply.nobody_answers:
            return await self._insist(subject, payload, block, message_id, expected_sequence)
        try:
            return self.sequence_of(reply, subject)
        except ApiError as error:
            if error.error_code in WRONG_SEQUENCE:
                raise ConflictError(error.code, error.error_code, error.description) from error
            if error.error_code not in TEMPORARY:
                raise
        return await self._insist(subject, payload, block, message_id, expected_sequence)

    def new_id(self) -> str:
        """Return an id that no other message has."""
        return f"{self._session}.{next(self._numbers):x}"

    @staticmethod
    def sequence_of(reply: Reply, subject: str) -> int:
        """Return the sequence of an acknowledgement. Raises `ApiError`."""
        try:
            answer = _DECODER.decode(reply.data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ClientError(f"{subject} was answered by something that is not a stream") from error
        if answer.error is not None:
            raise ApiError(
                int(answer.error.get("code", 0)),
                int(answer.error.get("err_code", 0)),
                str(answer.error.get("description", "refused")),
            )
        return answer.seq

    async def _insist(
        self, subject: str, payload: bytes, block: bytes, message_id: str, expected_sequence: int | None
    ) -> int:
        """Send a message again whose fate is unknown, until the stream says what became of it."""
        loop = asyncio.get_running_loop()
        deadline, pause_s = loop.time() + RETRY_S_MAX, PAUSE_S_FIRST
        while loop.time() < deadline:
            await self.require_stream()
            try:
                reply = await self._channel.request(
                    subject, payload, headers=block, timeout_s=self._api.access.timeout_s
                )
                if not reply.nobody_answers:
                    return self.sequence_of(reply, subject)
            except TimeoutError:
                pass
            except ApiError as error:
                if error.error_code in WRONG_SEQUENCE:
                    found = await self._find(subject, message_id, expected_sequence or 0)
                    if found:
                        return found
                    raise ConflictError(error.code, error.error_code, error.description) from error
                if error.error_code not in TEMPORARY:
                    raise
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, PAUSE_S_MAX)
        raise ClientError(
            f"{self._stream} did not acknowledge a message on {subject} within {RETRY_S_MAX:g} s: it may or may not be "
            "stored; check the server and try again"
        )

    async def require_stream(self) -> None:
        """Raise `ApiError` if the stream is gone; a cluster that is electing a leader is not asked twice."""
        try:
            await self._api.request(f"STREAM.INFO.{token(self._stream)}")
        except ClientError as error:
            if not self._api.is_temporary(error):
                raise

    async def _find(self, subject: str, message_id: str, expected_sequence: int) -> int:
        """Return the sequence of our message if it is the one that followed the expected one; 0 = it is not."""
        request = {"seq": expected_sequence + 1, "next_by_subj": subject}
        try:
            answer = await self._api.insist(f"STREAM.MSG.GET.{token(self._stream)}", request)
        except ApiError as error:
            if error.error_code == NO_MESSAGE:
                return 0
            raise
        message = answer["message"]
        found = header_value(b64decode(message.get("hdrs", "")), MESSAGE_ID.encode())
        return int(message["seq"]) if found == message_id.encode() else 0
