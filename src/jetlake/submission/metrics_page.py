"""The page of a sender for Prometheus: `GET /metrics` on the loopback address, and nothing else.

Invariant: a client that says nothing, or too much, is closed; it holds up neither the sender nor other clients.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from jetlake.errors import ConfigurationError, reason_of
from jetlake.submission.statistics import SenderStatistics, prometheus_text

HOST = "127.0.0.1"

REQUEST_S_MAX = 5.0
"""How long a request may take to come."""

LINES_MAX = 100
"""Lines of a request; Prometheus sends about ten."""

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@asynccontextmanager
async def serve_metrics(port: int, figures: Callable[[], SenderStatistics]) -> AsyncIterator[int]:
    """Serve the page, and give the port. Raises `ConfigurationError` if the port is taken."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, TimeoutError, asyncio.LimitOverrunError, ValueError):
            async with asyncio.timeout(REQUEST_S_MAX):
                writer.write(_response(await _path(reader), figures))
                await writer.drain()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    try:
        server = await asyncio.start_server(answer, HOST, port)
    except (OSError, OverflowError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else str(error)
        raise ConfigurationError(f"metrics cannot be served at port {port}: {reason}; choose another port") from error
    async with server:
        yield int(server.sockets[0].getsockname()[1])


async def _path(reader: asyncio.StreamReader) -> str:
    first = (await reader.readline()).decode("latin-1").split(" ")
    for _ in range(LINES_MAX):
        if (await reader.readline()).strip() == b"":
            break
    return first[1] if len(first) == 3 and first[0] == "GET" else ""


def _response(path: str, figures: Callable[[], SenderStatistics]) -> bytes:
    is_found = path.partition("?")[0] == "/metrics"
    status = "200 OK" if is_found else "404 Not Found"
    body = (prometheus_text(figures()) if is_found else "the figures are at /metrics\n").encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
