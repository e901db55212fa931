"""`upload`: the contents of an object into a stream, several chunks under way, in constant memory.

Chunks must be stored in order, and each once. Each has an id made of the object's and its number. When an
acknowledgement is missing, nothing more is sent until it is known which chunks the stream has; if they are the
first ones without a gap, all unacknowledged chunks are sent again, which the stream recognises by the ids.

Invariants: `acknowledged ≤ sent ≤ acknowledged + window`, and exactly the chunks between the two are held in memory;
the sequences of acknowledged chunks rise with their numbers, so a chunk stored out of order never counts as stored.
"""

import asyncio
import hashlib
from base64 import b64decode
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from jetlake.client.api import TEMPORARY, Api
from jetlake.client.channel import Channel, Payload, Reply, header_block, header_value
from jetlake.client.publishing import MESSAGE_ID, Publisher
from jetlake.errors import ApiError
from jetlake.objects.sources import Source, chunks_of
from jetlake.shared.cancellation import cancel

__all__ = ["Contents", "LostChunkError", "upload"]

WINDOW_BYTES = 8 * 1024 * 1024
"""Bytes that are sent and not acknowledged: enough to keep a server busy, little enough to hold."""

WINDOW_CHUNKS_MAX = 32
"""With small chunks the window is this many."""

RESUME_S_MAX = 60.0
"""A cluster elects a leader within some ten seconds; a server that stays away for longer ends the upload."""

_NO_MESSAGE = 10037

Tell = Callable[[int], None]


class Contents(NamedTuple):
    """What was stored."""

    size: int
    chunks: int
    digest: bytes


class LostChunkError(Exception):
    """Is raised inside this package when a chunk is missing or not in its place: the upload must start over."""


class _Chunk(NamedTuple):
    number: int
    payload: Payload
    answer: "asyncio.Future[Reply]"


async def upload(
    api: Api, stream: str, subject: str, identity: str, source: Source, *, chunk_bytes: int, tell: Tell | None = None
) -> Contents:
    """Store a source as chunks on a subject. Raises `ClientError`, with nothing removed."""
    sender = _Sender(api, stream, subject, identity, max(1, min(WINDOW_CHUNKS_MAX, WINDOW_BYTES // chunk_bytes)))
    digest, size, number = hashlib.sha256(), 0, 0
    hashing: asyncio.Future[None] | None = None
    loop = asyncio.get_running_loop()
    chunks = chunks_of(source, chunk_bytes)
    # The next chunk is read while this one is sent.
    upcoming = asyncio.ensure_future(anext(chunks, None))
    try:
        while (payload := await upcoming) is not None:
            upcoming = asyncio.ensure_future(anext(chunks, None))
            if hashing is not None:
                await hashing
            # The digest is computed beside the sending: both take their time.
            hashing = loop.run_in_executor(None, digest.update, payload)
            await sender.send(number, payload)
            number += 1
            size += len(payload)
            if tell is not None:
                tell(len(payload))
        if hashing is not None:
            await hashing
        await sender.finish()
    except BaseException:
        # Also when it is cancelled: chunks under way would be stored after the caller has cleaned up.
        await sender.wait_until_idle()
        raise
    finally:
        sender.cancel()
        await cancel(upcoming)
        await chunks.aclose()
    return Contents(size, number, digest.digest())


class _Sender:
    """Sends chunks in order, with a window of those that are not acknowledged."""

    def __init__(self, api: Api, stream: str, subject: str, identity: str, window: int) -> None:
        self._api = api
        self._channel = Channel.of(api.connection)
        self._publisher = Publisher(api, stream)
        self._stream = stream
        self._subject = subject
        self._identity = identity
        self._window = window
        self._sent: deque[_Chunk] = deque()
        self._last_sequence = 0

    async def send(self, number: int, payload: Payload) -> None:
        while len(self._sent) >= self._window:
            await self._confirm_first()
        self._sent.append(await self._begin(number, payload))

    async def finish(self) -> None:
        while self._sent:
            await self._confirm_first()

    async def wait_until_idle(self) -> None:
        """Wait until nothing is under way, whatever becomes of it."""
        await asyncio.gather(*(chunk.answer for chunk in self._sent), return_exceptions=True)

    def cancel(self) -> None:
        for chunk in self._sent:
            chunk.answer.cancel()

    async def _begin(self, number: int, payload: Payload) -> _Chunk:
        headers = header_block({MESSAGE_ID: f"{self._identity}.{number}"})
        answer = await self._channel.begin(
            self._subject, payload, headers=headers, timeout_s=self._api.access.timeout_s
        )
        return _Chunk(number, payload, answer)

    async def _confirm_first(self) -> None:
        """Wait until the oldest chunk is stored."""
        sequence = await self._sequence(self._sent[0])
        if sequence is None:
            await self._resume()
        elif sequence <= self._last_sequence:
            # A connection that was cut may deliver held-back chunks after those that were sent later.
            raise LostChunkError
        else:
            self._last_sequence = sequence
            self._sent.popleft()

    async def _sequence(self, chunk: _Chunk) -> int | None:
        """Wait for an acknowledgement; None if it stays away. Raises `ApiError` when the chunk is refused."""
        try:
            reply = await chunk.answer
        except TimeoutError:
            return None
        if reply.nobody_answers:
            return None
        try:
            return self._publisher.sequence_of(reply, self._subject)
        except ApiError as error:
            if error.error_code in TEMPORARY:
                return None
            raise

    async def _resume(self) -> None:
        """Send the unacknowledged chunks again; for those that the stream has, it returns their sequences."""
        held = list(self._sent)
        # Chunks in flight must not arrive after those that are sent again.
        await self.wait_until_idle()
        await self._check_stored()
        self._sent.clear()
        for chunk in held:
            self._sent.append(await self._begin(chunk.number, chunk.payload))

    async def _check_stored(self) -> None:
        """Wait until the server is there. Raises `LostChunkError` if there is a gap between the chunks it has."""
        info = await self._api.insist(
            f"STREAM.INFO.{self._stream}", {"subjects_filter": self._subject}, patience_s=RESUME_S_MAX
        )
        count = int((info["state"].get("subjects") or {}).get(self._subject, 0))
        if not count:
            return
        try:
            answer = await self._api.insist(f"STREAM.MSG.GET.{self._stream}", {"last_by_subj": self._subject})
        except ApiError as error:
            if error.error_code == _NO_MESSAGE:
                return
            raise
        last = header_value(b64decode(answer["message"].get("hdrs", "")), MESSAGE_ID.encode()) or b""
        if last != f"{self._identity}.{count - 1}".encode():
            raise LostChunkError
