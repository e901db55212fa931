"""`chunks_of`: anything that has bytes, as pieces of one size.

Invariant: all pieces but the last have exactly the size asked for, and at most one piece is held.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable
from typing import Any, BinaryIO

from jetlake.client.channel import Payload
from jetlake.errors import ClientError, ConfigurationError, reason_of

__all__ = ["Source", "can_restart", "chunks_of", "restart"]

Source = bytes | bytearray | memoryview | BinaryIO | AsyncIterable[bytes] | Iterable[bytes]
"""What an object can be made of: bytes, a file open for reading, or an iterator of bytes."""


async def chunks_of(source: Source, chunk_bytes: int) -> AsyncGenerator[Payload, None]:
    """Yield a source in pieces; reading a file does not hold up the event loop. Raises `ClientError`."""
    if isinstance(source, str):
        raise ConfigurationError("an object cannot be made of str: encode it, or open the file that it names")
    if isinstance(source, bytes | bytearray | memoryview):
        view = memoryview(source).cast("B")
        for start in range(0, len(view), chunk_bytes):
            yield view[start : start + chunk_bytes]
    elif hasattr(source, "read"):
        while piece := await asyncio.to_thread(_read, source, chunk_bytes):
            yield piece
    elif hasattr(source, "__aiter__") or hasattr(source, "__iter__"):
        async for piece in _joined(source, chunk_bytes):
            yield piece
    else:
        raise ConfigurationError(f"an object cannot be made of {type(source).__name__}: give bytes or a binary file")


def can_restart(source: Source) -> bool:
    """Tell whether a source can be read a second time."""
    if isinstance(source, bytes | bytearray | memoryview):
        return True
    seekable = getattr(source, "seekable", None)
    return bool(seekable and seekable())


def restart(source: Source, position: int) -> None:
    """Go back to where reading a source began."""
    if hasattr(source, "seek"):
        source.seek(position)


def _read(file: Any, chunk_bytes: int) -> bytes:
    """Read a whole piece; a pipe gives less at once than is asked for."""
    piece: bytes | str | None
    try:
        piece = file.read(chunk_bytes)
        if isinstance(piece, str):
            raise ConfigurationError("the file is open as text: open it in binary mode, with 'rb'")
        if not piece or len(piece) == chunk_bytes:
            return piece or b""
        parts, missing = [piece], chunk_bytes - len(piece)
        while missing and (piece := file.read(missing)):
            parts.append(piece)
            missing -= len(piece)
    except OSError as error:
        raise ClientError(f"the source cannot be read: {reason_of(error)}") from error
    return b"".join(parts)


async def _joined(source: AsyncIterable[bytes] | Iterable[bytes], chunk_bytes: int) -> AsyncIterator[bytes]:
    held = bytearray()
    async for piece in _asynchronous(source):
        held += piece
        while len(held) >= chunk_bytes:
            yield bytes(held[:chunk_bytes])
            del held[:chunk_bytes]
    if held:
        yield bytes(held)


async def _asynchronous(source: AsyncIterable[bytes] | Iterable[bytes]) -> AsyncIterator[bytes]:
    if hasattr(source, "__aiter__"):
        async for piece in source:
            yield piece
    else:
        for piece in source:
            yield piece
