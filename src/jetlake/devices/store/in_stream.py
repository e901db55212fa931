"""The stream as the event store: an event is stored by being published.

An event is published with the aggregate's last stream sequence, and the stream refuses it if there is a newer event on
any of the aggregate's subjects. So two writers never use the same version, without a lock between them.

An acknowledgement can be lost. The event is then found in the stream by its message id: the refusal of a second try
says only that the aggregate has changed, not that it was changed by us.

Invariants: `aggregate.sequence` is the stream sequence of the last event that was applied. Nothing is applied that the
stream has not acknowledged or shown.
"""

import base64
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any

from jetlake.client.api import Api
from jetlake.client.pulls import Start
from jetlake.devices.aggregate.model import Aggregate
from jetlake.devices.codec import Event, EventCodec
from jetlake.devices.consumer import read_events
from jetlake.devices.dead_letters import DeadLetterWriter
from jetlake.devices.publisher import MESSAGE_ID, WRONG_LAST_SEQUENCE, EventPublisher, ExpectedSequence, new_message_id
from jetlake.devices.store.contract import AggregateCache, EventFilter, Held, VersionConflictError
from jetlake.devices.subjects import AggregateKey, pattern
from jetlake.errors import ApiError, ClientError, DeviceError

CLOCK_DIFFERENCE_MAX = timedelta(minutes=5)
"""Between the clocks of aggregates and of the server: reading starts so much earlier, and events are then compared."""

_MICROSECOND_NS = 1000


class StreamStore:
    """The events of one account, over one connection."""

    def __init__(self, api: Api, stream: str, codec: EventCodec | None = None) -> None:
        self.stream = stream
        self._api = api
        self._codec = codec or EventCodec()
        self._publisher = EventPublisher(api, jetstream=True, codec=self._codec, stream=stream)
        self._dead_letters = DeadLetterWriter(api, stream)
        self._cache = AggregateCache()

    def hold(self, key: AggregateKey, href: str) -> Held:
        return self._cache.hold(key, href)

    async def load(self, held: Held) -> None:
        """Load an aggregate that is not at hand; one that is stays: the stream refuses an event if it is old."""
        if not held.is_loaded:
            await self._read_whole(held)

    async def refresh(self, held: Held) -> bool:
        """Read an aggregate once more if its last event is another one; it may have been deleted meanwhile."""
        last = await self._get({"last_by_subj": held.aggregate.key.pattern})
        if (0 if last is None else last["seq"]) == held.aggregate.sequence:
            return False
        await self._read_whole(held)
        return True

    async def append(self, held: Held, messages: Sequence[Any]) -> list[Any]:
        for message in messages:
            await self._append_one(held, message)
        return list(messages)

    async def events(self, wanted: EventFilter) -> AsyncGenerator[Event, None]:
        start = Start()
        if wanted.after_ns > 0:
            moment = datetime.fromtimestamp(wanted.after_ns / 1_000_000_000, UTC) - CLOCK_DIFFERENCE_MAX
            start = Start(time=moment.isoformat())
        reading = read_events(
            self._api,
            self.stream,
            wanted.patterns,
            start=start,
            to_end=True,
            codec=self._codec,
            dead_letters=self._dead_letters,
        )
        async with aclosing(reading) as found:
            async for event in found:
                if event.message is not None and event.timestamp_ns > wanted.after_ns:
                    yield event

    async def delete_device(self, device_id: str) -> bool:
        answer = await self._api.request(f"STREAM.PURGE.{self.stream}", {"filter": pattern(device_id)})
        self._cache.forget_device(device_id)
        return bool(answer.get("purged"))

    async def _append_one(self, held: Held, message: Any) -> None:
        aggregate = held.aggregate
        message_id = new_message_id()
        expected = ExpectedSequence(aggregate.key.pattern, aggregate.sequence)
        try:
            published = await self._publisher.publish_encoded(
                self._codec.encode(message), message_id=message_id, expected=expected
            )
        except ApiError as error:
            if error.error_code != WRONG_LAST_SEQUENCE:
                raise DeviceError("UNAVAILABLE", f"the stream refused the event: {error}") from error
            await self._resolve(held, message_id)
            return
        except ClientError as error:
            await self._resolve_unknown(held, message_id, error)
            return
        assert published is not None
        aggregate.apply(message)
        aggregate.sequence = published.sequence

    async def _resolve(self, held: Held, message_id: str) -> None:
        """Read what others stored; return if the event is among it, raise `VersionConflictError` if not."""
        before = held.aggregate.sequence
        try:
            if message_id in await self._read_on(held.aggregate):
                return
            is_deleted = held.aggregate.sequence == before
        except DeviceError:
            # The versions do not follow: the device was deleted and has started over, or a full read tells more.
            is_deleted = True
        if is_deleted:
            await self._read_whole(held)
        raise VersionConflictError

    async def _resolve_unknown(self, held: Held, message_id: str, cause: ClientError) -> None:
        """Find out whether an event without an acknowledgement was stored."""
        try:
            if message_id in await self._read_on(held.aggregate):
                return
        except (ClientError, DeviceError):
            pass
        self._cache.forget(held)
        raise DeviceError("UNAVAILABLE", f"the event was not acknowledged: {cause}; send the command again") from cause

    async def _read_whole(self, held: Held) -> None:
        """Read an aggregate from its last snapshot on; what an earlier reading left, complete or not, is forgotten."""
        self._cache.forget(held)
        aggregate = held.aggregate
        answer = await self._get({"last_by_subj": aggregate.key.snapshot_subject})
        if answer is not None:
            self._apply(aggregate, answer)
        await self._read_on(aggregate)
        held.is_loaded = True

    async def _read_on(self, aggregate: Aggregate) -> list[str]:
        """Apply what came after the last event that is known, and return the message ids."""
        found: list[str] = []
        while True:
            answer = await self._get({"seq": aggregate.sequence + 1, "next_by_subj": aggregate.key.pattern})
            if answer is None:
                return found
            found.append(self._apply(aggregate, answer))

    async def _get(self, request: dict[str, Any]) -> dict[str, Any] | None:
        answer = await self._api.find(f"STREAM.MSG.GET.{self.stream}", request)
        return None if answer is None else answer["message"]

    def _apply(self, aggregate: Aggregate, answer: dict[str, Any]) -> str:
        payload = base64.b64decode(answer.get("data", ""))
        try:
            event = self._codec.decode(payload, subject=answer["subject"], sequence=answer["seq"])
        except DeviceError:
            # Written by another program; readers of the stream make a dead letter of it.
            aggregate.sequence = answer["seq"]
            return ""
        if event.message is not None:
            aggregate.apply(event.current())
        aggregate.sequence = event.sequence
        return _message_id(base64.b64decode(answer.get("hdrs", "")))


def _message_id(headers: bytes) -> str:
    for line in headers.decode(errors="replace").split("\r\n"):
        name, _, value = line.partition(":")
        if name == MESSAGE_ID:
            return value.strip()
    return ""
