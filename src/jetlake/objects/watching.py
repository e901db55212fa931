"""`ObjectWatcher`: what is known about the objects of a store, and then every change of it.

```python
async with store.watch() as watcher:
    async for info in watcher:
        if info is None:
            print("these were all objects there are")
        else:
            print(info.name, "deleted" if info.deleted else info.size)
```

Invariant: None comes exactly once, when everything that was there has been handed out.
"""

import logging
from types import TracebackType
from typing import Self

from jetlake.client.api import Api
from jetlake.client.ordered import OrderedReader, RawMessages, position_of
from jetlake.client.pulls import Start
from jetlake.errors import ClientError
from jetlake.objects.info import ObjectInfo
from jetlake.objects.names import STREAM_PREFIX, SUBJECT_PREFIX

__all__ = ["ObjectWatcher", "last_infos"]

LOG = logging.getLogger("jetlake.objects")

PATIENCE_S = float("inf")
"""A watch goes on for as long as its connection is kept open; a server may be away for any time."""


class ObjectWatcher:
    """Iterates over what is known about objects; use it with `async with`."""

    def __init__(
        self, api: Api, store: str, *, include_history: bool, ignore_deletes: bool, updates_only: bool
    ) -> None:
        start = Start(new=True) if updates_only else Start() if include_history else Start(last_per_subject=True)
        self._ignore_deletes = ignore_deletes
        self._updates_only = updates_only
        self._stream = STREAM_PREFIX + store
        self._reader = _reader(api, store, start, patience_s=PATIENCE_S)
        self._waiting: list[ObjectInfo] = []
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

    async def __anext__(self) -> ObjectInfo | None:
        while not self._waiting:
            await self.open()
            if self._is_initial:
                raw = await self._reader.initial()
                if not raw:
                    self._is_initial = False
                    if not self._updates_only:
                        self._reader.follow_all()
                    return None
            else:
                raw = await self._reader.batch()
            infos = [info for info in _infos(self._stream, raw) if not (self._ignore_deletes and info.deleted)]
            self._waiting = infos[::-1]
        return self._waiting.pop()

    async def open(self) -> None:
        """Begin to watch; `async with` and the first iteration do it too."""
        if not self._is_open:
            self._is_open = True
            await self._reader.open()

    async def stop(self) -> None:
        """End the watch."""
        await self._reader.close()


async def last_infos(api: Api, store: str) -> list[ObjectInfo]:
    """Return what is known about all objects of a store, deleted ones included."""
    found: dict[str, ObjectInfo] = {}
    reader = _reader(api, store, Start(last_per_subject=True))
    try:
        await reader.open()
        while raw := await reader.initial():
            found.update((info.name, info) for info in _infos(STREAM_PREFIX + store, raw))
    finally:
        await reader.close()
    return list(found.values())


def _reader(api: Api, store: str, start: Start, **options: float) -> OrderedReader:
    subjects = [f"{SUBJECT_PREFIX}{store}.M.>"]
    return OrderedReader(api, STREAM_PREFIX + store, subjects=subjects, start=start, **options)  # type: ignore[arg-type]


def _infos(stream: str, raw: RawMessages) -> list[ObjectInfo]:
    """Return what messages say about objects, without those that cannot be read: the others must stay visible."""
    infos = []
    for subject, reply, _, data in raw:
        position = position_of(reply)
        try:
            infos.append(ObjectInfo.read(data, modified_ns=position.created_ns, revision=position.sequence))
        except ClientError as error:
            removal = f"jetlake stream rm-msg {stream} {position.sequence}"
            # Another client chose the subject: `%r` keeps its control characters away from terminals.
            LOG.warning(
                "%r of %s is left out: %s; `%s` deletes it", subject.decode(errors="replace"), stream, error, removal
            )
    return infos
