"""`BreakingProxy`: a proxy that loses acknowledgements: it cuts a connection instead of passing one on.

Invariant: what it passes on it passes on unchanged and in order.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit


class BreakingProxy:
    """Between one client and a server. `cut_at` is what the server must not be heard to say, `cuts` how often."""

    def __init__(self, url: str, cut_at: bytes, cuts: int = 1) -> None:
        address = urlsplit(url)
        self._host, self._port = address.hostname, address.port
        self._cut_at = cut_at
        self.cuts_left = cuts
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(self._host, self._port)
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        upwards = asyncio.create_task(self._pass_on(reader, far_writer, may_cut=False))
        downwards = asyncio.create_task(self._pass_on(far_reader, writer, may_cut=True))
        try:
            await asyncio.wait((upwards, downwards), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in (upwards, downwards):
                each.cancel()
            await asyncio.gather(upwards, downwards, return_exceptions=True)
            for end in (writer, far_writer):
                end.close()
                with suppress(OSError):
                    await end.wait_closed()
            self._tasks.discard(task)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, may_cut: bool) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                if may_cut and self.cuts_left and self._cut_at in data:
                    self.cuts_left -= 1
                    return
                writer.write(data)
                await writer.drain()
