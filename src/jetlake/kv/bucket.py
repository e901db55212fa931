"""`Bucket`: one key-value bucket, with values of one type.

```python
revision = await bucket.put("auth.username", "bob")
entry = await bucket.get("auth.username")
await bucket.update("auth.username", "alice", entry.revision)
```

Methods raise `NotFoundError` for a key that is not there, `ConflictError` when another client has written first,
`ConfigurationError` for invalid keys and values, `ApiError` when the server refuses, and `ClientError` when it cannot
be reached.

Invariant: a write that returns is stored exactly once, and its revision is the one returned.
"""

import asyncio
import time
from base64 import b64decode
from typing import Any, Generic, TypeVar

import msgspec

from jetlake.client.api import Api, encoded
from jetlake.client.channel import Channel, header_value
from jetlake.client.ordered import MessagePosition, OrderedReader, position_of
from jetlake.client.publishing import Publisher
from jetlake.client.pulls import Start
from jetlake.client.timestamps import read_time
from jetlake.errors import ApiError, ClientError, ConflictError, NotFoundError
from jetlake.kv.codecs import Codec
from jetlake.kv.config import BucketConfig
from jetlake.kv.entry import (
    MARKER_BYTES,
    OPERATION_BYTES,
    OPERATION_HEADER,
    ROLLUP_HEADER,
    ROLLUP_SUBJECT,
    TTL_HEADER,
    Entry,
    Operation,
    operation_of,
)
from jetlake.kv.names import check_filter, check_key, check_new_key
from jetlake.kv.watching import Layout, Watcher, WatchOptions, entries_of

__all__ = ["Bucket", "BucketStatus"]

T = TypeVar("T")

COMPACT_AGE_S = 1800.0
"""Markers of deleted keys are kept half an hour, so that watchers which were away see them."""

PURGES_MAX = 32
"""Keys purged at once by `compact`."""

READ_S_MAX = 30.0
"""A cluster that elects a leader does not answer for some seconds; reads are retried for this long."""

PAUSE_S = 0.2
"""Between two attempts to read."""

SECOND = 1_000_000_000

_NOT_FOUND = b"404"
_SUBJECT, _SEQUENCE, _TIME = b"Nats-Subject", b"Nats-Sequence", b"Nats-Time-Stamp"
_NO_MESSAGE = 10037


class BucketStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How a bucket stands."""

    bucket: str
    config: BucketConfig
    # Stored messages: all revisions, and markers of deleted keys.
    values: int
    # Keys, deleted ones included as long as their marker is kept.
    keys: int
    bytes: int
    last_revision: int
    # The description of the stream, as the server gives it.
    stream: dict[str, Any]


class Bucket(Generic[T]):
    """One bucket; `Buckets.open` and `Buckets.create` make it."""

    def __init__(self, api: Api, layout: Layout, codec: Codec[T]) -> None:
        self._api = api
        self._channel = Channel.of(api.connection)
        self._publisher = Publisher(api, layout.stream)
        self._layout = layout
        self._codec = codec
        self._direct = api.access.api_subject(f"DIRECT.GET.{layout.stream}")

    @property
    def name(self) -> str:
        return self._layout.bucket

    def __repr__(self) -> str:
        return f"Bucket({self.name!r}, {self._codec.name})"

    # Writing.

    async def put(self, key: str, value: T) -> int:
        """Set a key and return the revision."""
        return await self._publisher.publish(self._subject(key), self._codec.encode(value))

    async def create(self, key: str, value: T, *, ttl_s: float | None = None) -> int:
        """Set a key that has no value, and return the revision. With `ttl_s` the key is removed after that time."""
        subject, data = self._subject(key), self._codec.encode(value)
        headers = _ttl(ttl_s)
        try:
            return await self._publisher.publish(subject, data, headers, expected_sequence=0)
        except ConflictError:
            last = await self._last(key, consistent=True)
            if last is not None and not last.is_deleted:
                raise self._conflict(key, f"it has revision {last.revision}", "exists already") from None
        # A marker is in the way; without one the key was purged a moment ago.
        expected = 0 if last is None else last.revision
        return await self._conditional(key, data, headers, expected)

    async def update(self, key: str, value: T, revision: int) -> int:
        """Set a key whose last revision is the given one, and return the new revision."""
        return await self._conditional(check_new_key(key), self._codec.encode(value), {}, revision)

    async def delete(self, key: str, *, revision: int | None = None) -> int:
        """Delete a key and return the revision of the marker; its history stays.

        With `revision` only if that is its last one.
        """
        return await self._conditional(key, b"", {OPERATION_HEADER: Operation.DELETE}, revision)

    async def purge(self, key: str, *, revision: int | None = None, ttl_s: float | None = None) -> int:
        """Delete a key with its history and return the revision of the marker, which goes away after `ttl_s`."""
        headers = {OPERATION_HEADER: str(Operation.PURGE), ROLLUP_HEADER: ROLLUP_SUBJECT, **_ttl(ttl_s)}
        return await self._conditional(key, b"", headers, revision)

    async def revert(self, key: str, revision: int) -> int:
        """Give a key the value it had at an earlier revision, and return the new revision."""
        earlier = await self._at(key, revision)
        if earlier.is_deleted:
            raise NotFoundError(f"{self._named(key)} was deleted in revision {revision}: choose one with a value")
        assert earlier.value is not None
        last = await self._last(key, consistent=True)
        return await self._conditional(key, self._codec.encode(earlier.value), {}, 0 if last is None else last.revision)

    # Reading.

    async def get(self, key: str, *, revision: int | None = None, consistent: bool = False) -> Entry[T]:
        """Return a key's last entry, or that of a revision.

        In a cluster a server may answer that does not have the very last write yet. With `consistent` the leader
        answers.
        """
        entry = await self._at(key, revision) if revision else await self._last(key, consistent=consistent)
        if entry is None or entry.is_deleted:
            raise NotFoundError(f"{self._named(key)} does not exist" + (f" in revision {revision}" if revision else ""))
        return entry

    async def find(self, key: str, *, consistent: bool = False) -> Entry[T] | None:
        """Return a key's last entry, None if it has no value."""
        entry = await self._last(key, consistent=consistent)
        return None if entry is None or entry.is_deleted else entry

    async def history(self, key: str) -> list[Entry[T]]:
        """Return the revisions there are of a key, the oldest first, deletes included."""
        found: list[Entry[T]] = []
        reader = self._reader([check_key(key)], Start())
        async for raw in _all_of(reader):
            found += entries_of(raw, self._layout, self._codec)
        return found

    async def keys(self, *patterns: str) -> list[str]:
        """Return the keys that have a value, those that match one of the patterns if some are given."""
        # A key may come twice if it is changed while we read, so the last word counts.
        found: dict[bytes, bool] = {}
        reader = self._reader(self._checked(patterns), Start(last_per_subject=True), headers_only=True)
        async for raw in _all_of(reader):
            for subject, _, headers, _ in raw:
                is_value = OPERATION_BYTES not in headers and MARKER_BYTES not in headers
                found[subject] = is_value or operation_of(headers) is Operation.PUT
        skip = len(self._layout.read_prefix)
        return [subject[skip:].decode() for subject, is_there in found.items() if is_there]

    async def entries(self, *patterns: str) -> list[Entry[T]]:
        """Return the last entry of each key that has a value."""
        found: dict[str, Entry[T]] = {}
        reader = self._reader(self._checked(patterns), Start(last_per_subject=True))
        async for raw in _all_of(reader):
            found.update((entry.key, entry) for entry in entries_of(raw, self._layout, self._codec))
        return [entry for entry in found.values() if not entry.is_deleted]

    def watch(
        self,
        *patterns: str,
        include_history: bool = False,
        ignore_deletes: bool = False,
        meta_only: bool = False,
        updates_only: bool = False,
        from_revision: int = 0,
    ) -> Watcher[T]:
        """Watch keys, all of them unless patterns are given; see `Watcher`."""
        options = WatchOptions(
            include_history=include_history,
            ignore_deletes=ignore_deletes,
            meta_only=meta_only,
            updates_only=updates_only,
            from_revision=from_revision,
        )
        return Watcher(self._api, self._layout, self._codec, self._checked(patterns), options)

    async def status(self) -> BucketStatus:
        """Return how the bucket stands."""
        info = await self._api.insist(f"STREAM.INFO.{self._layout.stream}")
        return status_of(info)

    # Cleaning up.

    async def compact(self, *, older_than_s: float = COMPACT_AGE_S) -> int:
        """Remove what is left of deleted keys, and return how many there were.

        Markers younger than `older_than_s` stay, without the values before them. A value that is set meanwhile stays.
        """
        markers: dict[bytes, MessagePosition] = {}
        reader = self._reader([">"], Start(last_per_subject=True), headers_only=True)
        async for raw in _all_of(reader):
            for subject, reply, headers, _ in raw:
                markers.pop(subject, None)
                if operation_of(headers) is not Operation.PUT:
                    markers[subject] = position_of(reply)
        limit_ns = time.time_ns() - round(older_than_s * SECOND)
        places = asyncio.Semaphore(PURGES_MAX)

        async def purge(subject: bytes, marker: MessagePosition) -> None:
            # Only what is older than the first one that stays: the key may have a new value by now.
            first = marker.sequence if marker.created_ns > limit_ns else marker.sequence + 1
            body = {"filter": subject.decode(), "seq": first}
            async with places:
                await self._api.insist(f"STREAM.PURGE.{self._layout.stream}", body)

        await asyncio.gather(*(purge(*marker) for marker in markers.items()))
        return len(markers)

    async def clear(self) -> int:
        """Remove all values of all keys, and return how many there were. Watchers do not see it."""
        answer = await self._api.request(f"STREAM.PURGE.{self._layout.stream}", {})
        return int(answer["purged"])

    # How it is done.

    def _subject(self, key: str) -> str:
        return self._layout.write_prefix + check_new_key(key)

    def _named(self, key: str) -> str:
        return f"key {key!r} of bucket {self.name}"

    def _checked(self, patterns: tuple[str, ...]) -> list[str]:
        return [check_filter(pattern) for pattern in patterns] or [">"]

    def _conflict(self, key: str, why: str, what: str) -> ConflictError:
        return ConflictError(400, 10071, f"{self._named(key)} {what}: {why}")

    async def _conditional(self, key: str, data: bytes, headers: dict[str, str], revision: int | None) -> int:
        subject = self._layout.write_prefix + check_key(key)
        try:
            return await self._publisher.publish(subject, data, headers, expected_sequence=revision)
        except ConflictError as error:
            last = await self._last(key, consistent=True)
            now = "it is not there" if last is None else f"its last revision is {last.revision}"
            raise self._conflict(key, f"{now}, not {revision}", "was changed by another client") from error

    def _reader(self, patterns: list[str], start: Start, *, headers_only: bool = False) -> OrderedReader:
        subjects = [self._layout.read_prefix + pattern for pattern in patterns]
        return OrderedReader(self._api, self._layout.stream, subjects=subjects, start=start, headers_only=headers_only)

    async def _last(self, key: str, *, consistent: bool) -> Entry[T] | None:
        subject = self._layout.read_prefix + check_key(key)
        if consistent or not self._layout.allow_direct:
            return await self._from_leader({"last_by_subj": subject})
        return await self._from_any(key, f"{self._direct}.{subject}", b"")

    async def _at(self, key: str, revision: int) -> Entry[T]:
        check_key(key)
        request = {"seq": revision}
        if self._layout.allow_direct:
            entry = await self._from_any(key, self._direct, encoded(request))
        else:
            entry = await self._from_leader(request)
        if entry is None or entry.key != key:
            raise NotFoundError(f"{self._named(key)} has no revision {revision}: `history` lists those there are")
        return entry

    async def _from_any(self, key: str, subject: str, payload: bytes) -> Entry[T] | None:
        """Read a message from whichever server has it."""
        deadline = 0.0
        while True:
            try:
                reply = await self._channel.request(subject, payload, timeout_s=self._api.access.timeout_s)
                if not reply.nobody_answers:
                    break
            except TimeoutError:
                pass
            now = asyncio.get_running_loop().time()
            deadline = deadline or now + READ_S_MAX
            await self._publisher.require_stream()
            if now > deadline:
                raise ClientError(f"{self._named(key)} cannot be read: the bucket does not answer; try again later")
            await asyncio.sleep(PAUSE_S)
        headers = reply.headers
        if reply.status:
            if reply.status == _NOT_FOUND:
                return None
            words = headers[9:].split(b"\r\n", 1)[0].decode(errors="replace")
            raise ClientError(f"{self._named(key)} cannot be read: {words}")
        found, sequence, created = (header_value(headers, name) for name in (_SUBJECT, _SEQUENCE, _TIME))
        assert found is not None
        assert sequence is not None
        assert created is not None
        return self._entry(found.decode(), reply.data, headers, int(sequence), created.decode())

    async def _from_leader(self, request: dict[str, Any]) -> Entry[T] | None:
        """Read a message from the server that has the last word."""
        try:
            answer = await self._api.insist(f"STREAM.MSG.GET.{self._layout.stream}", request)
        except ApiError as error:
            if error.error_code == _NO_MESSAGE:
                return None
            raise
        message = answer["message"]
        data, headers = b64decode(message.get("data", "")), b64decode(message.get("hdrs", ""))
        return self._entry(message["subject"], data, headers, message["seq"], message["time"])

    def _entry(self, subject: str, data: bytes, headers: bytes, sequence: int, created: str) -> Entry[T]:
        operation = operation_of(headers)
        key = subject.removeprefix(self._layout.read_prefix)
        value = self._codec.decode(data) if operation is Operation.PUT else None
        position = MessagePosition(sequence, 0, read_time(created), 0)
        return Entry(self.name, key, value, operation, len(data), position)


async def _all_of(reader: OrderedReader) -> Any:
    """Yield what is there, and close the reader."""
    try:
        await reader.open()
        while raw := await reader.initial():
            yield raw
    finally:
        await reader.close()


def _ttl(ttl_s: float | None) -> dict[str, str]:
    """Return the header of a key's own TTL, which servers want in whole seconds."""
    if ttl_s is None:
        return {}
    if ttl_s < 1:
        from jetlake.errors import ConfigurationError

        raise ConfigurationError(f"ttl_s is {ttl_s:g}: a key lives at least one second")
    return {TTL_HEADER: f"{round(ttl_s)}s"}


def status_of(info: dict[str, Any]) -> BucketStatus:
    """Return how the bucket of a stream stands."""
    config, state = BucketConfig.of(info["config"]), info["state"]
    return BucketStatus(
        bucket=config.bucket,
        config=config,
        values=state["messages"],
        keys=state.get("num_subjects", 0),
        bytes=state["bytes"],
        last_revision=state["last_seq"],
        stream=info,
    )
