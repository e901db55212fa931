"""The blocking form of `jetlake.kv`, for programs without an event loop.

```python
from jetlake.kv import sync

with sync.connect("nats://127.0.0.1:4222") as buckets:
    bucket = buckets.create("CFG", str)
    bucket.put("auth.username", "bob")
    print(bucket.get("auth.username").value)
```

Each method is the asynchronous one of the same name, waited for; its documentation applies.
"""

import builtins
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from jetlake.client.access import Access
from jetlake.client.blocking import Background
from jetlake.client.connection import HasUrl
from jetlake.kv import bucket as asynchronous
from jetlake.kv.bucket import COMPACT_AGE_S, BucketStatus
from jetlake.kv.buckets import Buckets as AsynchronousBuckets
from jetlake.kv.buckets import connect as connect_asynchronously
from jetlake.kv.codecs import Codec
from jetlake.kv.config import BucketConfig
from jetlake.kv.entry import Entry

if TYPE_CHECKING:
    from jetlake.kv.watching import Watcher

__all__ = ["Bucket", "Buckets", "connect"]

T = TypeVar("T")


class Bucket(Generic[T]):
    """One bucket; see `jetlake.kv.Bucket`."""

    def __init__(self, background: Background, bucket: asynchronous.Bucket[T]) -> None:
        self._run = background.run
        self._background = background
        self._bucket = bucket

    @property
    def name(self) -> str:
        return self._bucket.name

    def put(self, key: str, value: T) -> int:
        return self._run(self._bucket.put(key, value))

    def create(self, key: str, value: T, *, ttl_s: float | None = None) -> int:
        return self._run(self._bucket.create(key, value, ttl_s=ttl_s))

    def update(self, key: str, value: T, revision: int) -> int:
        return self._run(self._bucket.update(key, value, revision))

    def delete(self, key: str, *, revision: int | None = None) -> int:
        return self._run(self._bucket.delete(key, revision=revision))

    def purge(self, key: str, *, revision: int | None = None, ttl_s: float | None = None) -> int:
        return self._run(self._bucket.purge(key, revision=revision, ttl_s=ttl_s))

    def revert(self, key: str, revision: int) -> int:
        return self._run(self._bucket.revert(key, revision))

    def get(self, key: str, *, revision: int | None = None, consistent: bool = False) -> Entry[T]:
        return self._run(self._bucket.get(key, revision=revision, consistent=consistent))

    def find(self, key: str, *, consistent: bool = False) -> Entry[T] | None:
        return self._run(self._bucket.find(key, consistent=consistent))

    def history(self, key: str) -> list[Entry[T]]:
        return self._run(self._bucket.history(key))

    def keys(self, *patterns: str) -> list[str]:
        return self._run(self._bucket.keys(*patterns))

    def entries(self, *patterns: str) -> list[Entry[T]]:
        return self._run(self._bucket.entries(*patterns))

    @contextmanager
    def watch(self, *patterns: str, **options: Any) -> Iterator[Iterator[Entry[T] | None]]:
        """Watch keys, with the options of the asynchronous form; None comes after the last existing entry."""
        watcher: Watcher[T] = self._bucket.watch(*patterns, **options)
        self._run(watcher.open())
        try:
            yield self._background.iterate(watcher)
        finally:
            self._run(watcher.stop())

    def status(self) -> BucketStatus:
        return self._run(self._bucket.status())

    def compact(self, *, older_than_s: float = COMPACT_AGE_S) -> int:
        return self._run(self._bucket.compact(older_than_s=older_than_s))

    def clear(self) -> int:
        return self._run(self._bucket.clear())


class Buckets:
    """The buckets of one account; see `jetlake.kv.Buckets`."""

    def __init__(self, background: Background, buckets: AsynchronousBuckets) -> None:
        self._run = background.run
        self._background = background
        self._buckets = buckets

    @overload
    def create(self, config: BucketConfig | str) -> Bucket[bytes]: ...
    @overload
    def create(self, config: BucketConfig | str, kind: type[T] | Codec[T]) -> Bucket[T]: ...

    def create(self, config: BucketConfig | str, kind: Any = bytes) -> Bucket[Any]:
        return Bucket(self._background, self._run(self._buckets.create(config, kind)))

    @overload
    def open(self, name: str) -> Bucket[bytes]: ...
    @overload
    def open(self, name: str, kind: type[T] | Codec[T]) -> Bucket[T]: ...

    def open(self, name: str, kind: Any = bytes) -> Bucket[Any]:
        return Bucket(self._background, self._run(self._buckets.open(name, kind)))

    def update(self, config: BucketConfig) -> BucketStatus:
        return self._run(self._buckets.update(config))

    def delete(self, name: str) -> None:
        self._run(self._buckets.delete(name))

    def names(self) -> builtins.list[str]:
        return self._run(self._buckets.names())

    def list(self) -> builtins.list[BucketStatus]:
        return self._run(self._buckets.list())

    def status(self, name: str) -> BucketStatus:
        return self._run(self._buckets.status(name))

    def backup(self, name: str, folder: Path) -> int:
        return self._run(self._buckets.backup(name, folder))

    def restore(self, folder: Path, *, replicas: int | None = None) -> BucketStatus:
        return self._run(self._buckets.restore(folder, replicas=replicas))


@contextmanager
def connect(server: Access | str | HasUrl | None = None) -> Iterator[Buckets]:
    """Connect to a server and give its buckets; the connection is closed at the end."""
    background = Background()
    try:
        yield Buckets(background, background.enter(connect_asynchronously(server)))
    finally:
        background.close()
