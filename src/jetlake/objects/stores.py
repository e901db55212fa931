"""`Stores`: the object stores of one account, and `connect`, which opens a connection for them.

```python
async with objects.connect("nats://127.0.0.1:4222") as stores:
    store = await stores.create("FILES")
```
"""

import builtins
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from jetlake.client import archives
from jetlake.client.access import Access
from jetlake.client.api import Api, open_or_adopt
from jetlake.client.connection import HasUrl
from jetlake.errors import ApiError, ClientError, NotFoundError
from jetlake.objects.config import StoreConfig
from jetlake.objects.names import STREAM_PREFIX, check_store
from jetlake.objects.store import ObjectStore, StoreStatus, status_of

if TYPE_CHECKING:
    from nats.aio.client import Client

__all__ = ["Stores", "connect"]

NO_STREAM = 10059
NAME_IN_USE = 10058


class Stores:
    """Creates, opens, lists and removes object stores. Methods raise `ClientError`, and `ApiError` when refused."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def create(self, config: StoreConfig | str) -> ObjectStore:
        """Create an object store, or open the one that is there with the same configuration."""
        wanted = StoreConfig(store=config) if isinstance(config, str) else config
        stream = wanted.stream()
        try:
            await self._api.request(f"STREAM.CREATE.{stream['name']}", stream)
        except ApiError as error:
            if error.error_code != NAME_IN_USE:
                raise
            raise ApiError(
                error.code, error.error_code, f"object store {wanted.store} exists with another configuration: open it"
            ) from error
        return ObjectStore(self._api, wanted.store)

    async def open(self, name: str) -> ObjectStore:
        """Open an object store that is there. Raises `NotFoundError`."""
        await self.status(name)
        return ObjectStore(self._api, name)

    async def delete(self, name: str) -> None:
        """Remove an object store with everything in it. Raises `NotFoundError`."""
        try:
            await self._api.request(f"STREAM.DELETE.{STREAM_PREFIX}{check_store(name)}")
        except ApiError as error:
            raise _missing(name, error) from error

    async def names(self) -> builtins.list[str]:
        """Return the names of all object stores, sorted."""
        found = await self._api.stream_names()
        return [name.removeprefix(STREAM_PREFIX) for name in found if name.startswith(STREAM_PREFIX)]

    async def list(self) -> builtins.list[StoreStatus]:
        """Return how all object stores stand, sorted by name."""
        found = await self._api.streams()
        return [status_of(info) for info in found if info["config"]["name"].startswith(STREAM_PREFIX)]

    async def status(self, name: str) -> StoreStatus:
        """Return how an object store stands. Raises `NotFoundError`."""
        try:
            return status_of(await self._api.insist(f"STREAM.INFO.{STREAM_PREFIX}{check_store(name)}"))
        except ApiError as error:
            raise _missing(name, error) from error

    async def backup(self, name: str, folder: Path, *, tell: archives.Tell | None = None) -> int:
        """Write an object store to a folder, which NATS' own tools can restore too; return the archive's bytes."""
        await self.status(name)
        return await archives.backup(self._api, STREAM_PREFIX + name, folder, consumers=False, tell=tell)

    async def restore(self, folder: Path, *, tell: archives.Tell | None = None) -> StoreStatus:
        """Create an object store from a backup, under the name it had."""
        config = archives.read_backup(folder).config
        if not str(config.get("name", "")).startswith(STREAM_PREFIX):
            raise ClientError(f"{folder} is the backup of stream {config.get('name')}, not of an object store")
        return status_of(await archives.restore(self._api, folder, tell=tell))


def _missing(name: str, error: ApiError) -> ClientError:
    if error.error_code == NO_STREAM:
        return NotFoundError(f"object store {name} does not exist: `jetlake object ls` lists those there are")
    return error


@asynccontextmanager
async def connect(server: "Access | str | HasUrl | Client | None" = None) -> AsyncIterator[Stores]:
    """Connect to a server, or use a connection of nats-py, and give its object stores.

    Without an argument it is the server that the command line would take: NATS_URL, a context, or 127.0.0.1:4222. The
    connection comes back by itself when it is lost, and is closed at the end unless it was given.
    """
    async with open_or_adopt(server) as api:
        yield Stores(api)
