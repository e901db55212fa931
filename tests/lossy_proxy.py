"""`LossyProxy`: stands between a client and a server, and loses what either sends when a test says so.

```python
async with LossyProxy(url) as proxy:
    connection = await nats.connect(proxy.url)
    proxy.lose = lambda frame: b'"seq"' in frame
```

Invariant: frames that are not lost arrive whole and in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit

from tests.compatibility.frames import split_frame

READ_BYTES = 65536


class LossyProxy:
    """Forwards connections to one server."""

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        self._host, self._port = address.hostname, address.port
        # Whether a frame from the server gets lost.
        self.lose: Callable[[bytes], bool] = lambda _frame: False
        # Whether a frame from the client gets lost.
        self.lose_sent: Callable[[bytes], bool] = lambda _frame: False
        self.lost: list[bytes] = []
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"nats://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """End all connections; clients may come again."""
        for writer in self._writers:
            writer.close()
        self._writers.clear()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream_reader, upstream_writer = await asyncio.open_connection(self._host, self._port)
        self._writers |= {writer, upstream_writer}
        for work in (self._forward(reader, upstream_writer), self._filter(upstream_reader, writer)):
            task = asyncio.create_task(work)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        buffer = b""
        with suppress(OSError):
            while data := await reader.read(READ_BYTES):
                buffer += data
                while cut := _split_sent(buffer):
                    frame, buffer = cut
                    if self.lose_sent(frame):
                        self.lost.append(frame)
                    else:
                        writer.write(frame)
                await writer.drain()
        writer.close()

    async def _filter(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        buffer = b""
        with suppress(OSError):
            while data := await reader.read(READ_BYTES):
                buffer += data
                while cut := split_frame(buffer):
                    frame, buffer = cut
                    if self.lose(frame):
                        self.lost.append(frame)
                    else:
                        writer.write(frame)
                await writer.drain()
        writer.close()


def _split_sent(buffer: bytes) -> tuple[bytes, bytes] | None:
    """Return the first frame that a client sends and the rest, or None while the frame is incomplete."""
    line_end = buffer.find(b"\r\n")
    if line_end < 0:
        return None
    end = line_end + 2
    if buffer.startswith((b"PUB ", b"HPUB ")):
        end += int(buffer[:line_end].rsplit(b" ", 1)[1]) + 2
    return (buffer[:end], buffer[end:]) if len(buffer) >= end else None
