"""`download`: the contents of an object, chunk by chunk, verified.

Invariant: the generator ends without an error only if size, number of chunks and digest are those that were stored.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator

from jetlake.client.api import Api
from jetlake.client.ordered import OrderedReader, RawMessages
from jetlake.client.pulls import Start
from jetlake.errors import ClientError
from jetlake.objects.info import ObjectInfo
from jetlake.objects.names import STREAM_PREFIX, chunk_subject

__all__ = ["download"]

WINDOW_BYTES = 8 * 1024 * 1024
"""Bytes under way: what a server sends while we hash and write what came before."""

WINDOW_CHUNKS_MIN, WINDOW_CHUNKS_MAX = 4, 256
"""Chunks under way, whatever their size is said to be."""

CHUNK_BYTES = 128 * 1024
"""The size of chunks that clients use when they do not say one."""


async def download(api: Api, info: ObjectInfo) -> AsyncGenerator[list[bytes], None]:
    """Yield the contents of an object, some chunks at a time. Raises `ClientError`."""
    digest, size, chunks = hashlib.sha256(), 0, 0
    if info.chunks:
        window = min(WINDOW_CHUNKS_MAX, max(WINDOW_CHUNKS_MIN, WINDOW_BYTES // (info.chunk_bytes or CHUNK_BYTES)))
        subject = chunk_subject(info.bucket, info.nuid)
        stream = STREAM_PREFIX + info.bucket
        reader = OrderedReader(api, stream, subjects=[subject], start=Start(), window_messages=window)
        loop = asyncio.get_running_loop()
        try:
            await reader.open()
            while chunks < info.chunks and (raw := await reader.initial()):
                pieces = await loop.run_in_executor(None, _hashed, digest, raw)
                chunks += len(pieces)
                size += sum(map(len, pieces))
                yield pieces
        finally:
            await reader.close()
    if (chunks, size) != (info.chunks, info.size):
        raise ClientError(
            f"object {info.name} of {info.bucket} is incomplete: {size:,} of {info.size:,} bytes are there; "
            "it may have been replaced while it was read, try again"
        )
    if not info.has_digest(digest.digest()):
        raise ClientError(f"object {info.name} of {info.bucket} is damaged: its digest is not {info.digest}")


def _hashed(digest: "hashlib._Hash", raw: RawMessages) -> list[bytes]:
    pieces = [data for _, _, _, data in raw]
    for piece in pieces:
        digest.update(piece)
    return pieces
