"""A twin that follows a stream.

Invariant: what `current` returns contains every event that was acknowledged before it was called.
"""

import asyncio
import logging
from contextlib import aclosing
from typing import Any

from jetlake.client.api import Api
from jetlake.client.pulls import read
from jetlake.devices.codec import EventCodec
from jetlake.devices.consumer import decoded
from jetlake.devices.dead_letters import DeadLetterWriter
from jetlake.devices.failures import as_device_error
from jetlake.devices.subjects import ALL
from jetlake.devices.twin import Twin
from jetlake.errors import ClientError, DeviceError, JetlakeError
from jetlake.shared.cancellation import end

CATCH_UP_S_MAX = 60.0
"""To read what is in the stream; a first reading of millions of events takes this long."""

_log = logging.getLogger("jetlake.devices")


class LiveTwin:
    """Reads a stream in the background and keeps a twin of its devices."""

    def __init__(self, api: Api, stream: str, codec: EventCodec | None = None) -> None:
        self._api = api
        self._stream = stream
        self._codec = codec or EventCodec()
        self._dead_letters = DeadLetterWriter(api, stream)
        self._twin = Twin()
        self._sequence = 0
        self._has_advanced = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None
        # What was deleted from the stream when reading began: another value means that more is deleted now.
        self._deletions: tuple[int, int] = (0, 0)

    async def current(self) -> Twin:
        """Return the twin once it has everything that is in the stream now. Raises `DeviceError`."""
        try:
            await self._start_if_needed()
            last = await self._api.find(f"STREAM.MSG.GET.{self._stream}", {"last_by_subj": ALL})
        except ClientError as error:
            raise as_device_error(error) from error
        target = 0 if last is None else int(last["message"]["seq"])
        try:
            async with asyncio.timeout(CATCH_UP_S_MAX), self._has_advanced:
                await self._has_advanced.wait_for(lambda: self._sequence >= target or self._is_done())
        except TimeoutError as error:
            raise DeviceError(
                "UNAVAILABLE", f"stream {self._stream} could not be read to its end in {CATCH_UP_S_MAX:g} s: try again"
            ) from error
        if self._sequence < target:
            raise DeviceError("UNAVAILABLE", f"stream {self._stream} cannot be read: see the log")
        return self._twin

    async def close(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            await end(task)

    async def _start_if_needed(self) -> None:
        state = (await self._api.request(f"STREAM.INFO.{self._stream}"))["state"]
        # An empty stream begins with the message that comes next.
        first = int(state["first_seq"]) if state["messages"] else int(state["last_seq"]) + 1
        deletions = (first, int(state.get("num_deleted", 0)))
        if self._task is not None and self._deletions == deletions and not self._is_done():
            return
        # Devices were deleted, or reading ended: what is left in the stream is the truth.
        await self.close()
        self._twin, self._sequence, self._deletions = Twin(), 0, deletions
        self._task = asyncio.create_task(self._follow())

    def _is_done(self) -> bool:
        return self._task is None or self._task.done()

    async def _follow(self) -> None:
        from nats.errors import Error

        try:
            async with aclosing(read(self._api, self._stream, subjects=[ALL])) as messages:
                async for message in messages:
                    await self._apply(message)
        except (JetlakeError, Error, OSError) as error:
            _log.warning("reading stream %s ended: %s", self._stream, error)
        finally:
            async with self._has_advanced:
                self._has_advanced.notify_all()

    async def _apply(self, message: Any) -> None:
        metadata = message.metadata
        event = await decoded(self._codec, message, metadata.sequence.stream, self._dead_letters)
        if event is not None:
            try:
                await self._twin.apply(event)
            except DeviceError as error:
                _log.warning("event %d of %s was left out: %s", event.sequence, self._stream, error)
        self._sequence = metadata.sequence.stream
        # Waiters cannot be notified of each event; they check when there are no more for now.
        if metadata.num_pending == 0 or self._sequence % 1000 == 0:
            async with self._has_advanced:
                self._has_advanced.notify_all()
