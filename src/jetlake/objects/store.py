"""`ObjectStore`: files of any size in a stream.

```python
info = await store.put("report.pdf", file)
async for chunk in store.read("report.pdf"):
    ...
```

Methods raise `NotFoundError` for an object that is not there, `ConfigurationError` for names and sources that cannot
be, `ApiError` when the server refuses, and `ClientError` when it cannot be reached.

Invariant: an object is visible only after all of its chunks are stored, and a reader gets either all of one version or
an error.
"""

import asyncio
import builtins
import os
import secrets
import time
from base64 import b64decode
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from jetlake.client.api import Api
from jetlake.client.channel import Channel
from jetlake.client.publishing import Publisher
from jetlake.client.timestamps import read_time
from jetlake.errors import ApiError, ClientError, ConfigurationError, ConflictError, NotFoundError, reason_of
from jetlake.objects.config import StoreConfig
from jetlake.objects.downloading import download
from jetlake.objects.info import Link, ObjectInfo, shown_digest
from jetlake.objects.names import STREAM_PREFIX, check_name, check_store, chunk_subject, meta_subject
from jetlake.objects.sources import Source, can_restart, restart
from jetlake.objects.uploading import LostChunkError, upload
from jetlake.objects.watching import ObjectWatcher, last_infos

__all__ = ["ObjectStore", "StoreStatus"]

CHUNK_BYTES = 1000 * 1024
"""The size of chunks unless given: with its headers just below 1 MiB, the largest message servers take by default."""

HEADERS_BYTES_MAX = 256
"""What the headers of a chunk take of the largest message a server accepts."""

UPLOADS_MAX = 3
"""How often an upload is tried when a chunk was lost on its way."""

REPLACEMENTS_MAX = 10
"""How often a change is tried when others change an object of the same name at the same time."""

LINKS_MAX = 8
"""Links that are followed one after the other: they may lead in a circle."""

_ROLLUP = {"Nats-Rollup": "sub"}
_NO_MESSAGE = 10037

Tell = Callable[[int], None]


class StoreStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How an object store stands."""

    store: str
    config: StoreConfig
    sealed: bool
    # Of everything that is stored, descriptions included.
    bytes: int
    # The description of the stream, as the server gives it.
    stream: dict[str, Any]


class ObjectStore:
    """One object store; `Stores.open` and `Stores.create` make it."""

    def __init__(self, api: Api, name: str) -> None:
        self._api = api
        self._channel = Channel.of(api.connection)
        self._name = check_store(name)
        self._stream = STREAM_PREFIX + name
        self._publisher = Publisher(api, self._stream)

    @property
    def name(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"ObjectStore({self._name!r})"

    # Writing.

    async def put(
        self,
        name: str,
        source: Source,
        *,
        description: str = "",
        headers: dict[str, builtins.list[str]] | None = None,
        metadata: dict[str, str] | None = None,
        chunk_bytes: int = CHUNK_BYTES,
        tell: Tell | None = None,
    ) -> ObjectInfo:
        """Store an object, in place of the one of that name, and return what is known about it.

        `source` is bytes, a binary file, or an iterator of bytes. `tell` is called with the bytes of each chunk sent.
        """
        largest = self._channel.payload_bytes_max - HEADERS_BYTES_MAX
        if chunk_bytes < 1:
            raise ConfigurationError(f"chunk_bytes is {chunk_bytes}: it must be at least 1")
        wanted = ObjectInfo(
            name=check_name(name),
            bucket=self._name,
            description=description,
            headers=headers or {},
            metadata=metadata or {},
            chunk_bytes=min(chunk_bytes, largest),
        )
        stored = await self._upload(wanted, source, tell)
        try:
            return await self._describe(stored)
        except ApiError:
            # Refused; after any other failure the object may be visible, and keeps its contents.
            await self._purge(stored.nuid)
            raise

    async def put_file(self, path: Path, name: str = "", **options: Any) -> ObjectInfo:
        """Store a file, under its own name unless another is given, with the options of `put`."""
        try:
            with path.open("rb") as file:
                return await self.put(name or path.name, file, **options)
        except OSError as error:
            raise ClientError(f"cannot read {path}: {reason_of(error)}") from error

    async def delete(self, name: str) -> ObjectInfo:
        """Delete an object and return what was known about it."""
        for _ in range(REPLACEMENTS_MAX):
            info = await self.info(name)
            gone = msgspec.structs.replace(info, size=0, chunks=0, digest="", deleted=True)
            try:
                await self._publisher.publish(
                    meta_subject(self._name, name), gone.stored(), _ROLLUP, expected_sequence=info.revision
                )
            except ConflictError:
                continue
            await self._purge(info.nuid)
            return info
        raise ClientError(f"object {name} of {self._name} is changed by others all the time: try again")

    async def update_meta(
        self,
        name: str,
        *,
        new_name: str = "",
        description: str | None = None,
        headers: dict[str, builtins.list[str]] | None = None,
        metadata: dict[str, str] | None = None,
    ) -> ObjectInfo:
        """Change what is known about an object, its name included; what is not given stays."""
        info = await self.info(name)
        changes: dict[str, Any] = {"description": description, "headers": headers, "metadata": metadata}
        changed = msgspec.structs.replace(
            info,
            name=check_name(new_name or name),
            **{field: value for field, value in changes.items() if value is not None},
        )
        if changed.name == name:
            return await self._store_meta(changed, info.revision)
        other = await self.find(changed.name, deleted=True)
        if other is not None and not other.deleted:
            raise ClientError(f"object {changed.name} of {self._name} exists: delete it, or choose another name")
        stored = await self._store_meta(changed, other.revision if other else 0)
        # Only the description that was moved: another client may have put an object of the old name since.
        moved = {"filter": meta_subject(self._name, name), "seq": info.revision + 1}
        await self._api.insist(f"STREAM.PURGE.{self._stream}", moved)
        return stored

    async def add_link(self, name: str, target: ObjectInfo) -> ObjectInfo:
        """Add a link to an object of this store or another one."""
        if target.deleted:
            raise ClientError(f"object {target.name} of {target.bucket} is deleted: there is nothing to link to")
        if target.is_link:
            raise ClientError(f"{target.name} of {target.bucket} is a link: link to the object that it leads to")
        return await self._link(name, Link(bucket=target.bucket, name=target.name))

    async def add_store_link(self, name: str, store: str) -> ObjectInfo:
        """Add a link to a whole object store."""
        return await self._link(name, Link(bucket=check_store(store)))

    async def seal(self) -> None:
        """Make the store read-only, for ever."""
        info = await self._api.insist(f"STREAM.INFO.{self._stream}")
        await self._api.request(f"STREAM.UPDATE.{self._stream}", info["config"] | {"sealed": True})

    # Reading.

    async def get(self, name: str) -> bytes:
        """Return the contents of an object; `read` and `get_file` need no memory for all of it."""
        info = await self.resolve(name)
        parts = [piece async for pieces in download(self._api, info) for piece in pieces]
        return b"".join(parts)

    async def read(self, name: str) -> AsyncGenerator[bytes, None]:
        """Yield the contents of an object, chunk by chunk; links are followed.

        What was yielded is verified only when the generator ends without an error.
        """
        info = await self.resolve(name)
        async with aclosing(download(self._api, info)) as found:
            async for pieces in found:
                for piece in pieces:
                    yield piece

    async def get_into(self, name: str, file: BinaryIO, *, tell: Tell | None = None) -> ObjectInfo:
        """Write the contents of an object to a binary file that is open."""
        info = await self.resolve(name)
        loop = asyncio.get_running_loop()
        writing: asyncio.Future[None] | None = None
        try:
            async with aclosing(download(self._api, info)) as found:
                async for pieces in found:
                    if writing is not None:
                        await writing
                    writing = loop.run_in_executor(None, _write, file, pieces)
                    if tell is not None:
                        tell(sum(map(len, pieces)))
            if writing is not None:
                await writing
        except OSError as error:
            raise ClientError(f"object {name} cannot be written: {reason_of(error)}") from error
        return info

    async def get_file(self, name: str, path: Path, *, tell: Tell | None = None) -> ObjectInfo:
        """Write an object to a file, which appears when it is complete and verified."""
        unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
        try:
            with unfinished.open("wb") as file:
                info = await self.get_into(name, file, tell=tell)
                file.flush()
                await asyncio.to_thread(os.fsync, file.fileno())
            unfinished.replace(path)
        except OSError as error:
            raise ClientError(f"cannot write {path}: {reason_of(error)}") from error
        finally:
            unfinished.unlink(missing_ok=True)
        return info

    async def info(self, name: str) -> ObjectInfo:
        """Return what is known about an object. Raises `NotFoundError`."""
        info = await self.find(name)
        if info is None:
            raise NotFoundError(
                f"object {name!r} of {self._name} does not exist: `jetlake object ls {self._name}` lists all objects"
            )
        return info

    async def find(self, name: str, *, deleted: bool = False) -> ObjectInfo | None:
        """Return what is known about an object, None if there is none; also of a deleted one if asked for."""
        request = {"last_by_subj": meta_subject(self._name, name)}
        try:
            answer = await self._api.insist(f"STREAM.MSG.GET.{self._stream}", request)
        except ApiError as error:
            if error.error_code == _NO_MESSAGE:
                return None
            raise
        message = answer["message"]
        info = ObjectInfo.read(
            b64decode(message.get("data", "")), modified_ns=read_time(message["time"]), revision=message["seq"]
        )
        return None if info.deleted and not deleted else info

    async def resolve(self, name: str) -> ObjectInfo:
        """Return what is known about an object, after following all links."""
        info = await self.info(name)
        for _ in range(LINKS_MAX):
            if info.link is None:
                return info
            if not info.link.name:
                raise ClientError(f"{name} of {self._name} is a link to the whole store {info.link.bucket}: read that")
            info = await self.sibling(info.link.bucket).info(info.link.name)
        raise ClientError(f"{name} of {self._name} leads through more than {LINKS_MAX} links: they are a circle")

    async def list(self, *, deleted: bool = False) -> builtins.list[ObjectInfo]:
        """Return what is known about all objects, sorted by name; also about deleted ones if asked for."""
        found = await last_infos(self._api, self._name)
        return sorted((info for info in found if deleted or not info.deleted), key=lambda info: info.name)

    def watch(
        self, *, include_history: bool = False, ignore_deletes: bool = False, updates_only: bool = False
    ) -> ObjectWatcher:
        """Watch what objects come, change and go; see `ObjectWatcher`."""
        return ObjectWatcher(
            self._api,
            self._name,
            include_history=include_history,
            ignore_deletes=ignore_deletes,
            updates_only=updates_only,
        )

    def sibling(self, name: str) -> "ObjectStore":
        """Return another store of the same account, which is not asked whether it is there."""
        return ObjectStore(self._api, name)

    async def status(self) -> StoreStatus:
        """Return how the store stands."""
        return status_of(await self._api.insist(f"STREAM.INFO.{self._stream}"))

    # How it is done.

    async def _upload(self, wanted: ObjectInfo, source: Source, tell: Tell | None) -> ObjectInfo:
        begin = source.tell() if hasattr(source, "tell") and can_restart(source) else 0
        given_up: builtins.list[str] = []
        for attempt in range(UPLOADS_MAX):
            identity = secrets.token_hex(11)
            subject = chunk_subject(self._name, identity)
            try:
                contents = await upload(
                    self._api,
                    self._stream,
                    subject,
                    identity,
                    source,
                    chunk_bytes=wanted.chunk_bytes,
                    tell=tell if attempt == 0 else None,
                )
            except LostChunkError as error:
                await self._purge(identity)
                if not can_restart(source):
                    raise ClientError(
                        f"the upload of {wanted.name} was interrupted, and its source cannot be read again: try again"
                    ) from error
                restart(source, begin)
                given_up.append(identity)
            except BaseException:
                await self._purge(identity)
                raise
            else:
                # A connection that was cut may have brought what it held back since.
                for earlier in given_up:
                    await self._purge(earlier)
                return msgspec.structs.replace(
                    wanted,
                    nuid=identity,
                    size=contents.size,
                    chunks=contents.chunks,
                    digest=shown_digest(contents.digest),
                )
        raise ClientError(f"the upload of {wanted.name} was interrupted {UPLOADS_MAX} times: check the servers")

    async def _describe(self, info: ObjectInfo) -> ObjectInfo:
        """Make an object visible, and remove the contents of the one that it replaces."""
        for _ in range(REPLACEMENTS_MAX):
            before = await self.find(info.name, deleted=True)
            try:
                stored = await self._store_meta(info, before.revision if before else 0)
            except ConflictError:
                continue
            if before is not None and not before.deleted and not before.is_link:
                await self._purge(before.nuid)
            return stored
        raise ClientError(f"object {info.name} of {self._name} is changed by others all the time: try again")

    async def _store_meta(self, info: ObjectInfo, expected: int) -> ObjectInfo:
        subject = meta_subject(self._name, info.name)
        revision = await self._publisher.publish(subject, info.stored(), _ROLLUP, expected_sequence=expected)
        # The server's own time comes with the next reading; the specification takes ours until then.
        return msgspec.structs.replace(info, revision=revision, modified_ns=time.time_ns())

    async def _link(self, name: str, link: Link) -> ObjectInfo:
        before = await self.find(name)
        if before is not None and not before.is_link:
            raise ClientError(f"object {name} of {self._name} exists: delete it, or give the link another name")
        info = ObjectInfo(name=check_name(name), bucket=self._name, nuid=secrets.token_hex(11), link=link)
        return await self._describe(info)

    async def _purge(self, identity: str) -> None:
        """Remove the contents of one version of an object; what is left of them is only space."""
        if not identity or self._channel.is_closed:
            return
        try:
            await self._api.insist(f"STREAM.PURGE.{self._stream}", {"filter": chunk_subject(self._name, identity)})
        except ClientError:
            return


def _write(file: BinaryIO, pieces: builtins.list[bytes]) -> None:
    file.writelines(pieces)


def status_of(info: dict[str, Any]) -> StoreStatus:
    """Return how the object store of a stream stands."""
    config = StoreConfig.of(info["config"])
    return StoreStatus(
        store=config.store,
        config=config,
        sealed=bool(info["config"].get("sealed")),
        bytes=info["state"]["bytes"],
        stream=info,
    )
