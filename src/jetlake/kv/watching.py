"""`Watcher`: the values of a bucket, and then every change of them.

```python
async with bucket.watch("auth.>") as watcher:
    async for entry in watcher:
        if entry is None:
            print("these were all values there are")
        else:
            print(entry.key, entry.operation, entry.value)
```

Invariant: entries come in the order of their revisions, and None comes exactly once: when everything that was there
has been handed out, at once if there was nothing.
"""

from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import msgspec

from jetlake.client.api import Api
from jetlake.client.channel import header_value
from jetlake.client.ordered import OrderedReader, RawMessages
from jetlake.client.pulls import Start
from jetlake.kv.codecs import Codec
from jetlake.kv.entry import MARKER_BYTES, OPERATION_BYTES, Entry, Operation, operation_of

__all__ = ["Layout", "WatchOptions", "Watcher", "entries_of"]

T = TypeVar("T")

PATIENCE_S = float("inf")
"""A watch goes on for as long as its connection is kept open; a server may be away for any time."""

_SIZE_HEADER = b"Nats-Msg-Size"


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """Where a bucket is: its name, its stream and the subjects of its keys."""

    bucket: str
    stream: str
    # With a final dot; keys of a mirror have that of its origin.
    read_prefix: str
    write_prefix: str
    allow_direct: bool


class WatchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a watch is to show."""

    # All revisions there are, instead of the last one of each key.
    include_history: bool = False
    # No deletes and purges.
    ignore_deletes: bool = False
    # Entries without their values.
    meta_only: bool = False
    # Only what comes from now on.
    updates_only: bool = False
    # All revisions from this one on.
    from_revision: int = 0

    def start(self) -> Start:
        if self.updates_only:
            return Start(new=True)
        if self.from_revision:
            return Start(sequence=self.from_revision)
        return Start() if self.include_history else Start(last_per_subject=True)


class Watcher(Generic[T]):
    """Iterates over entries; use it with `async with`, so that the server knows when the watch has ended."""

    def __init__(self, api: Api, layout: Layout, codec: Codec[T], patterns: list[str], options: WatchOptions) -> None:
        self._layout = layout
        self._codec = codec
        self._options = options
        self._reader = OrderedReader(
            api,
            layout.stream,
            subjects=[layout.read_prefix + pattern for pattern in patterns],
            start=options.start(),
            headers_only=options.meta_only,
            patience_s=PATIENCE_S,
        )
        self._waiting: list[Entry[T]] = []
        self._is_open = False
        self._is_initial = True

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Entry[T] | None:
        # The list is reversed, so that taking the next one is cheap.
        while not self._waiting:
            entries = await self.batch()
            if entries is None:
                return None
            entries.reverse()
            self._waiting = entries
        return self._waiting.pop()

    async def open(self) -> None:
        """Begin to watch; `async with` and the first entry do it too."""
        if not self._is_open:
            self._is_open = True
            await self._reader.open()

    async def batch(self) -> list[Entry[T]] | None:
        """Return the next entries, as many as have come; None once, after the last existing one."""
        await self.open()
        if self._is_initial:
            raw = await self._reader.initial()
            if not raw:
                self._is_initial = False
                if not self._options.updates_only:
                    self._reader.follow_all()
                return None
        else:
            raw = await self._reader.batch()
        return entries_of(raw, self._layout, self._codec, self._options)

    async def stop(self) -> None:
        """End the watch."""
        await self._reader.close()


_NO_OPTIONS = WatchOptions()


def entries_of(
    raw: RawMessages, layout: Layout, codec: Codec[T], options: WatchOptions = _NO_OPTIONS
) -> list[Entry[T]]:
    """Return the entries of messages, as the options want them."""
    skip, bucket = len(layout.read_prefix), layout.bucket
    with_values, ignore_deletes, put = not options.meta_only, options.ignore_deletes, Operation.PUT
    decode = None if codec.is_identity else codec.decode
    entries: list[Entry[T]] = []
    append = entries.append
    for subject, reply, headers, data in raw:
        operation = put
        if headers and (OPERATION_BYTES in headers or MARKER_BYTES in headers):
            operation = operation_of(headers)
            if ignore_deletes and operation is not put:
                continue
        value: Any = None
        if with_values and operation is put:
            value = data if decode is None else decode(data)
        size_bytes = len(data) if with_values else _size_of(headers)
        append(Entry(bucket, subject[skip:].decode(), value, operation, size_bytes, reply))
    return entries


def _size_of(headers: bytes) -> int | None:
    """Return the size that a server tells where it leaves the value out."""
    text = header_value(headers, _SIZE_HEADER)
    return int(text) if text else None
