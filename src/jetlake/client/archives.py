"""Backups of streams as folders that NATS' own command line reads and writes too.

```text
FOLDER/
├── backup.json        configuration and state of the stream
└── stream.tar.s2      the archive, byte for byte as the server sent it
```

Invariant: `backup.json` is written last; a folder without it is not a backup.
"""

import asyncio
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from jetlake.client.api import Api, token
from jetlake.errors import ClientError, reason_of

DESCRIPTION = "backup.json"
ARCHIVE = "stream.tar.s2"

CHUNK_BYTES = 128 * 1024
"""What is sent at once; the server confirms each piece."""

SILENCE_S_MAX = 30.0
"""A server that sends nothing for this long, in the middle of an archive, is considered gone."""

FINISH_S_MAX = 600.0
"""After the last piece the server opens what it got, which takes as long as it is large."""

Tell = Callable[[int], None]


class Backup(msgspec.Struct, frozen=True, kw_only=True):
    """What `backup.json` says."""

    config: dict[str, Any]
    state: dict[str, Any]


async def backup(
    api: Api, stream: str, folder: Path, *, consumers: bool = True, check: bool = False, tell: Tell | None = None
) -> int:
    """Write a backup of a stream to a folder and return the bytes of its archive. Raises `ClientError`.

    `tell` is called with the bytes of each piece that came.
    """
    inbox = api.connection.new_inbox()
    subscription = await api.connection.subscribe(inbox)
    request = {"deliver_subject": inbox, "no_consumers": not consumers, "jsck": check}
    answer = await api.request(f"STREAM.SNAPSHOT.{token(stream)}", request)
    partial, partial_description = folder / f".{ARCHIVE}.partial", folder / f".{DESCRIPTION}.partial"
    received = 0
    try:
        await asyncio.to_thread(folder.mkdir, mode=0o700, parents=True, exist_ok=True)
        with _create(partial) as file:
            while True:
                chunk = await subscription.next_msg(SILENCE_S_MAX)
                if not chunk.data:
                    _check_end(stream, chunk.headers or {})
                    break
                file.write(chunk.data)
                received += len(chunk.data)
                if chunk.reply:
                    await api.connection.publish(chunk.reply, b"")
                if tell is not None:
                    tell(len(chunk.data))
            file.flush()
            os.fsync(file.fileno())
        partial.replace(folder / ARCHIVE)
        described = Backup(config=answer["config"], state=answer["state"])
        text = msgspec.json.format(msgspec.json.encode(described), indent=2)
        with _create(partial_description) as file:
            file.write(text)
        partial_description.replace(folder / DESCRIPTION)
    except TimeoutError as error:
        raise ClientError(f"the archive of {stream} stopped after {received:,} bytes; try again") from error
    except OSError as error:
        raise ClientError(f"cannot write to {folder}: {reason_of(error)}") from error
    finally:
        partial.unlink(missing_ok=True)
        if api.connection.is_connected:
            await subscription.unsubscribe()
    return received


def read_backup(folder: Path) -> Backup:
    """Return what a backup says of its stream. Raises `ClientError`."""
    try:
        with _open(folder / DESCRIPTION) as file:
            return msgspec.json.decode(file.read(), type=Backup)
    except OSError as error:
        raise ClientError(f"{folder} holds no backup: {DESCRIPTION} cannot be read, {reason_of(error)}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ClientError(f"{folder / DESCRIPTION} is not a description of a backup: {error}") from error


async def restore(
    api: Api, folder: Path, *, config: dict[str, Any] | None = None, tell: Tell | None = None
) -> dict[str, Any]:
    """Make a stream of a backup, under the name its configuration has, and return its description.

    `config` replaces the configuration of the backup. Raises `ClientError`.
    """
    described = read_backup(folder)
    wanted = config or described.config
    name = token(str(wanted.get("name", "")))
    try:
        with _open(folder / ARCHIVE) as file:
            body = {"config": wanted, "state": described.state}
            answer = await api.request(f"STREAM.RESTORE.{name}", body)
            subject = str(answer["deliver_subject"])
            while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
                await _send(api, subject, chunk)
                if tell is not None:
                    tell(len(chunk))
    except OSError as error:
        raise ClientError(f"cannot read {folder / ARCHIVE}: {reason_of(error)}") from error
    made = await api.ask(subject, b"", timeout_s=FINISH_S_MAX)
    refusal = made.get("error")
    if isinstance(refusal, dict):
        raise ClientError(f"{name} was not restored: {refusal.get('description')} ({refusal.get('err_code')})")
    return made


def _create(path: Path) -> BinaryIO:
    """Open a new file that nobody else reads: messages are in it. What was there, perhaps a link, goes."""
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _open(path: Path) -> BinaryIO:
    """Open a file of a backup. Devices and pipes, which may never end, are refused."""
    # Opening a pipe would wait for a writer.
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb")
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise ClientError(f"{path} is not a regular file, so it is not part of a backup: choose the folder of a backup")


async def _send(api: Api, subject: str, chunk: bytes) -> None:
    from nats.errors import Error

    try:
        message = await api.connection.request(subject, chunk, timeout=SILENCE_S_MAX)
    except (Error, TimeoutError) as error:
        raise ClientError("the server does not take the archive any more; its log says why") from error
    if message.data:
        answer = msgspec.json.decode(message.data, type=dict[str, Any])
        raise ClientError(f"the archive is refused: {answer.get('error', {}).get('description', 'no reason is given')}")


def _check_end(stream: str, headers: dict[str, str]) -> None:
    """The last words of an archive have no status, or 204; everything else is a failure."""
    status = headers.get("Status", "204")
    if not status.startswith("204"):
        words = headers.get("Description", "")
        raise ClientError(f"the archive of {stream} is not whole: {status} {words}; try again")
