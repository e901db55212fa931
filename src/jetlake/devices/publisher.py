"""Events to a server, one at a time.

In core mode an event is sent and flushed: the current subscribers get it, and it is stored only if a stream happens to
listen. In JetStream mode the publisher waits for the stream's acknowledgement, and each event has a message id, so that
sending it again stores it once.

```python
publisher = Publisher(api, jetstream=True)
published = await publisher.publish(changed)
```

Invariant: in JetStream mode `publish` returns only what a stream has acknowledged.
"""

import asyncio
import math
from typing import Any, NamedTuple
from uuid import uuid4

import msgspec

from jetlake.client.api import Api
from jetlake.devices.codec import Encoded, EventCodec
from jetlake.devices.stream import SERVER_VERSION_MIN, check_version
from jetlake.errors import ApiError, ClientError, DeviceError

MESSAGE_ID = "Nats-Msg-Id"
EXPECTED_STREAM = "Nats-Expected-Stream"
EXPECTED_SEQUENCE = "Nats-Expected-Last-Subject-Sequence"
EXPECTED_SUBJECT = "Nats-Expected-Last-Subject-Sequence-Subject"

ATTEMPTS_MAX = 3
"""Tries of one event: a server that lost its connection twice in a row has a problem that waiting does not solve."""

LOOK_S = 0.1
"""How often a publisher that waits for an acknowledgement checks whether the server has reported an error instead."""

WRONG_LAST_SEQUENCE = 10071


class ExpectedSequence(NamedTuple):
    """What a writer believes the aggregate's last sequence is."""

    pattern: str
    sequence: int


class PublishedEvent(NamedTuple):
    """What a stream says it has stored."""

    stream: str
    sequence: int
    # It had the message id already.
    is_duplicate: bool


class EventPublisher:
    """Publishes the events of one connection."""

    def __init__(
        self,
        api: Api,
        *,
        jetstream: bool,
        codec: EventCodec | None = None,
        stream: str = "",
        flush_timeout_s: float = 30.0,
    ) -> None:
        if jetstream:
            check_version(api.connection.connected_server_version, SERVER_VERSION_MIN, "JetStream")
        self.jetstream = jetstream
        self.codec = codec or EventCodec()
        self._api = api
        self._stream = stream
        self._flush_timeout_s = flush_timeout_s

    async def publish(self, message: Any, *, message_id: str = "") -> PublishedEvent | None:
        """Publish an event; None in core mode, where nobody says whether it was stored. Raises `ClientError`."""
        return await self.publish_encoded(self.codec.encode(message), message_id=message_id)

    async def publish_encoded(
        self, event: Encoded, *, message_id: str = "", expected: ExpectedSequence | None = None
    ) -> PublishedEvent | None:
        """Publish what a codec made; with `expected`, raise `ApiError` 10071 if the aggregate has changed since."""
        if not self.jetstream:
            await self._send(event)
            return None
        headers = {MESSAGE_ID: message_id or new_message_id()}
        if self._stream:
            headers[EXPECTED_STREAM] = self._stream
        if expected is not None:
            headers |= {EXPECTED_SEQUENCE: str(expected.sequence), EXPECTED_SUBJECT: expected.pattern}
        return await self._store(event, headers)

    async def _send(self, event: Encoded) -> None:
        from nats.errors import Error

        try:
            await self._api.connection.publish(event.subject, event.payload)
            await self._api.connection.flush(timeout=math.ceil(self._flush_timeout_s))
        except (Error, TimeoutError, OSError) as error:
            raise ClientError(f"cannot publish {event.subject}: {str(error) or type(error).__name__}") from error

    async def _store(self, event: Encoded, headers: dict[str, str]) -> PublishedEvent:
        from nats.errors import Error, MaxPayloadError, NoRespondersError

        failure: BaseException | None = None
        for _ in range(ATTEMPTS_MAX):
            try:
                answer = await self._request(event, headers)
            except NoRespondersError as error:
                raise ClientError(
                    f"no stream is listening on subject {event.subject!r}: create one with the subject events.>"
                ) from error
            except MaxPayloadError as error:
                raise DeviceError(
                    "INVALID_ARGUMENT",
                    f"the event has {len(event.payload):,} bytes, more than the server takes: send less content, "
                    "or raise max_payload",
                ) from error
            except (TimeoutError, Error, OSError) as error:
                failure = error
                continue
            return acknowledged(answer.data)
        raise ClientError(
            f"no acknowledgement for {event.subject}: {str(failure) or type(failure).__name__}; "
            "check that the server runs and that its stream is not full"
        ) from failure

    async def _request(self, event: Encoded, headers: dict[str, str]) -> Any:
        """Send an event and return the answer. A server that forbids it says so elsewhere and does not answer."""
        request = asyncio.ensure_future(
            self._api.connection.request(
                event.subject, event.payload, timeout=self._api.access.timeout_s, headers=headers
            )
        )
        try:
            while not (await asyncio.wait({request}, timeout=LOOK_S))[0]:
                denied = [complaint for complaint in self._api.complaints if event.subject in complaint]
                if denied:
                    self._api.complaints.clear()
                    raise DeviceError("PERMISSION_DENIED", f"the server refused the event: {denied[-1]}")
        finally:
            if not request.done():
                request.cancel()
        return request.result()


def new_message_id() -> str:
    """Return a message id for one event. It is not made of aggregate and version, which two writers may share."""
    return uuid4().hex


def acknowledged(data: bytes) -> PublishedEvent:
    """Read the acknowledgement of a stream. Raises `ApiError` for a refusal, `ClientError` for something else."""
    try:
        answer = msgspec.json.decode(data, type=dict[str, Any])
        refusal = answer.get("error")
        if refusal is None:
            return PublishedEvent(answer["stream"], int(answer["seq"]), bool(answer.get("duplicate", False)))
    except (msgspec.DecodeError, KeyError, TypeError, ValueError) as error:
        raise ClientError(f"the reply did not come from a stream: {data[:100]!r}") from error
    raise ApiError(int(refusal.get("code", 0)), int(refusal.get("err_code", 0)), str(refusal.get("description", "")))
