"""`Buckets`: the key-value buckets of one account, and `connect`, which opens a connection for them.

```python
async with kv.connect("nats://127.0.0.1:4222") as buckets:
    bucket = await buckets.create(BucketConfig(bucket="CFG", history=5), str)
```
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from jetlake.client import archives
from jetlake.client.access import DEFAULT_API_PREFIX, Access
from jetlake.client.api import Api, open_or_adopt
from jetlake.client.connection import HasUrl
from jetlake.errors import ApiError, ClientError, NotFoundError
from jetlake.kv.bucket import Bucket, BucketStatus, status_of
from jetlake.kv.codecs import Codec, codec_of
from jetlake.kv.config import BucketConfig, changed_stream
from jetlake.kv.names import STREAM_PREFIX, SUBJECT_PREFIX, check_bucket
from jetlake.kv.watching import Layout

if TYPE_CHECKING:
    from nats.aio.client import Client

__all__ = ["Buckets", "connect"]

T = TypeVar("T")

NO_STREAM = 10059
NAME_IN_USE = 10058


class Buckets:
    """Creates, opens, lists and removes buckets. Methods raise `ClientError`, and `ApiError` when a server refuses."""

    def __init__(self, api: Api) -> None:
        self._api = api

    @overload
    async def create(self, config: BucketConfig | str) -> Bucket[bytes]: ...
    @overload
    async def create(self, config: BucketConfig | str, kind: type[T] | Codec[T]) -> Bucket[T]: ...

    async def create(self, config: BucketConfig | str, kind: Any = bytes) -> Bucket[Any]:
        """Create a bucket, or open the one that is there with the same configuration."""
        codec = codec_of(kind)
        wanted = BucketConfig(bucket=config) if isinstance(config, str) else config
        stream = wanted.stream()
        try:
            made = await self._api.request(f"STREAM.CREATE.{stream['name']}", stream)
        except ApiError as error:
            if error.error_code != NAME_IN_USE:
                raise
            raise ApiError(
                error.code,
                error.error_code,
                f"bucket {wanted.bucket} exists with another configuration: open it, or change it with `update`",
            ) from error
        return self._bucket(made["config"], codec)

    @overload
    async def open(self, name: str) -> Bucket[bytes]: ...
    @overload
    async def open(self, name: str, kind: type[T] | Codec[T]) -> Bucket[T]: ...

    async def open(self, name: str, kind: Any = bytes) -> Bucket[Any]:
        """Open a bucket that is there, for values of a type. Raises `NotFoundError`."""
        codec = codec_of(kind)
        info = await self._info(name)
        return self._bucket(info["config"], codec)

    async def update(self, config: BucketConfig) -> BucketStatus:
        """Change a bucket that is there. What a `BucketConfig` cannot say stays as it is in the bucket's stream."""
        info = await self._info(config.bucket)
        wanted = changed_stream(info["config"], config)
        return status_of(await self._api.request(f"STREAM.UPDATE.{wanted['name']}", wanted))

    async def delete(self, name: str) -> None:
        """Remove a bucket with everything in it. Raises `NotFoundError`."""
        try:
            await self._api.request(f"STREAM.DELETE.{STREAM_PREFIX}{check_bucket(name)}")
        except ApiError as error:
            raise _missing(name, error) from error

    async def names(self) -> list[str]:
        """Return the names of all buckets, sorted."""
        found = await self._api.stream_names()
        return [name.removeprefix(STREAM_PREFIX) for name in found if name.startswith(STREAM_PREFIX)]

    async def list(self) -> list[BucketStatus]:
        """Return how all buckets stand, sorted by name."""
        return [
            status_of(info) for info in await self._api.streams() if info["config"]["name"].startswith(STREAM_PREFIX)
        ]

    async def status(self, name: str) -> BucketStatus:
        """Return how a bucket stands. Raises `NotFoundError`."""
        return status_of(await self._info(name))

    async def backup(self, name: str, folder: Path, *, tell: archives.Tell | None = None) -> int:
        """Write a bucket to a folder, which NATS' own tools can restore too, and return the bytes of the archive."""
        await self._info(name)
        return await archives.backup(self._api, STREAM_PREFIX + name, folder, consumers=False, tell=tell)

    async def restore(
        self, folder: Path, *, replicas: int | None = None, tell: archives.Tell | None = None
    ) -> BucketStatus:
        """Create a bucket from a backup, under the name it had. Raises `ClientError` if there is one of that name."""
        config = dict(archives.read_backup(folder).config)
        if not str(config.get("name", "")).startswith(STREAM_PREFIX):
            raise ClientError(f"{folder} is the backup of stream {config.get('name')}, not of a bucket")
        if replicas is not None:
            config["num_replicas"] = replicas
        return status_of(await archives.restore(self._api, folder, config=config, tell=tell))

    async def _info(self, name: str) -> dict[str, Any]:
        try:
            return await self._api.insist(f"STREAM.INFO.{STREAM_PREFIX}{check_bucket(name)}")
        except ApiError as error:
            raise _missing(name, error) from error

    def _bucket(self, config: dict[str, Any], codec: Codec[Any]) -> Bucket[Any]:
        return Bucket(self._api, layout_of(config, self._api.access), codec)


def layout_of(config: dict[str, Any], access: Access) -> Layout:
    """Return where the bucket of a stream is read and written."""
    name = str(config["name"]).removeprefix(STREAM_PREFIX)
    mirror = config.get("mirror") or {}
    # The keys of a mirror have the subjects of its origin, and are written there.
    owner = str(mirror.get("name", name)).removeprefix(STREAM_PREFIX)
    prefix = f"{SUBJECT_PREFIX}{owner}."
    own_prefix = access.api_subject("").rstrip(".")
    api_prefix = str((mirror.get("external") or {}).get("api", "")).rstrip(".")
    if not api_prefix and own_prefix != DEFAULT_API_PREFIX:
        # In another domain, messages to a stream take the way of its API.
        api_prefix = own_prefix
    return Layout(
        bucket=name,
        stream=str(config["name"]),
        read_prefix=prefix,
        write_prefix=f"{api_prefix}.{prefix}" if api_prefix else prefix,
        allow_direct=bool(config.get("allow_direct")),
    )


def _missing(name: str, error: ApiError) -> ClientError:
    if error.error_code == NO_STREAM:
        return NotFoundError(f"bucket {name} does not exist: `jetlake kv ls` lists those there are")
    return error


@asynccontextmanager
async def connect(server: "Access | str | HasUrl | Client | None" = None) -> AsyncIterator[Buckets]:
    """Connect to a server, or use a connection of nats-py, and give its buckets.

    Without an argument it is the server that the command line would take: NATS_URL, a context, or 127.0.0.1:4222. The
    connection comes back by itself when it is lost, and is closed at the end unless it was given.
    """
    async with open_or_adopt(server) as api:
        yield Buckets(api)
