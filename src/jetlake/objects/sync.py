"""The blocking form of `jetlake.objects`, for programs without an event loop.

```python
from jetlake.objects import sync

with sync.connect("nats://127.0.0.1:4222") as stores:
    store = stores.create("FILES")
    store.put_file(Path("report.pdf"))
    store.get_file("report.pdf", Path("copy.pdf"))
```

Each method is the asynchronous one of the same name, waited for; its documentation applies.
"""

import builtins
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jetlake.client.access import Access
from jetlake.client.blocking import Background
from jetlake.client.connection import HasUrl
from jetlake.objects import store as asynchronous
from jetlake.objects.config import StoreConfig
from jetlake.objects.info import ObjectInfo
from jetlake.objects.sources import Source
from jetlake.objects.store import StoreStatus
from jetlake.objects.stores import Stores as AsynchronousStores
from jetlake.objects.stores import connect as connect_asynchronously

__all__ = ["ObjectStore", "Stores", "connect"]


class ObjectStore:
    """One object store; see `jetlake.objects.ObjectStore`."""

    def __init__(self, background: Background, store: asynchronous.ObjectStore) -> None:
        self._run = background.run
        self._background = background
        self._store = store

    @property
    def name(self) -> str:
        return self._store.name

    def put(self, name: str, source: Source, **options: Any) -> ObjectInfo:
        return self._run(self._store.put(name, source, **options))

    def put_file(self, path: Path, name: str = "", **options: Any) -> ObjectInfo:
        return self._run(self._store.put_file(path, name, **options))

    def get(self, name: str) -> bytes:
        return self._run(self._store.get(name))

    def read(self, name: str) -> Iterator[bytes]:
        return self._background.iterate(self._store.read(name))

    def get_file(self, name: str, path: Path) -> ObjectInfo:
        return self._run(self._store.get_file(name, path))

    def info(self, name: str) -> ObjectInfo:
        return self._run(self._store.info(name))

    def find(self, name: str, *, deleted: bool = False) -> ObjectInfo | None:
        return self._run(self._store.find(name, deleted=deleted))

    def list(self, *, deleted: bool = False) -> builtins.list[ObjectInfo]:
        return self._run(self._store.list(deleted=deleted))

    def delete(self, name: str) -> ObjectInfo:
        return self._run(self._store.delete(name))

    def update_meta(self, name: str, **changes: Any) -> ObjectInfo:
        return self._run(self._store.update_meta(name, **changes))

    def add_link(self, name: str, target: ObjectInfo) -> ObjectInfo:
        return self._run(self._store.add_link(name, target))

    def add_store_link(self, name: str, store: str) -> ObjectInfo:
        return self._run(self._store.add_store_link(name, store))

    def seal(self) -> None:
        self._run(self._store.seal())

    @contextmanager
    def watch(self, **options: Any) -> Iterator[Iterator[ObjectInfo | None]]:
        """Watch objects, with the options of the asynchronous form; None comes after the last existing object."""
        watcher = self._store.watch(**options)
        self._run(watcher.open())
        try:
            yield self._background.iterate(watcher)
        finally:
            self._run(watcher.stop())

    def status(self) -> StoreStatus:
        return self._run(self._store.status())


class Stores:
    """The object stores of one account; see `jetlake.objects.Stores`."""

    def __init__(self, background: Background, stores: AsynchronousStores) -> None:
        self._run = background.run
        self._background = background
        self._stores = stores

    def create(self, config: StoreConfig | str) -> ObjectStore:
        return ObjectStore(self._background, self._run(self._stores.create(config)))

    def open(self, name: str) -> ObjectStore:
        return ObjectStore(self._background, self._run(self._stores.open(name)))

    def delete(self, name: str) -> None:
        self._run(self._stores.delete(name))

    def names(self) -> builtins.list[str]:
        return self._run(self._stores.names())

    def list(self) -> builtins.list[StoreStatus]:
        return self._run(self._stores.list())

    def status(self, name: str) -> StoreStatus:
        return self._run(self._stores.status(name))

    def backup(self, name: str, folder: Path) -> int:
        return self._run(self._stores.backup(name, folder))

    def restore(self, folder: Path) -> StoreStatus:
        return self._run(self._stores.restore(folder))


@contextmanager
def connect(server: Access | str | HasUrl | None = None) -> Iterator[Stores]:
    """Connect to a server and give its object stores; the connection is closed at the end."""
    background = Background()
    try:
        yield Stores(background, background.enter(connect_asynchronously(server)))
    finally:
        background.close()
