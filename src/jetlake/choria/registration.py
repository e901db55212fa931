"""Registration: what a node says about itself, the body of a registration request.

| body                | has                                                                           |
|---------------------|-------------------------------------------------------------------------------|
| file content        | a file with its time of change, as base64, compressed with gzip unless told not |
| inventory content   | agents, classes, facts, collectives, machines: an object, or the same compressed |

Pure functions; `content_of` is the way back.
"""

import base64
import gzip
import zlib
from typing import Any

import msgspec

__all__ = ["FILE_CONTENT", "INVENTORY_CONTENT", "content_of", "file_content", "inventory_content"]

FILE_CONTENT = "choria:registration:filecontent:1"
INVENTORY_CONTENT = "choria:registration:inventorycontent:1"

GZIP_BITS = 31
"""Makes zlib read gzip."""

CONTENT_BYTES_MAX = 64 * 1024 * 1024
"""Of a body after decompression: a small message must not become all of the memory."""


def file_content(*, path: str, mtime_s: int, updated: bool, content: bytes, compress: bool = True) -> str:
    """Return the body for a file. `updated` says that it changed since the last time this process has sent it."""
    body: dict[str, Any] = {"mtime": mtime_s, "file": path, "updated": updated, "protocol": FILE_CONTENT}
    body |= {"zcontent": _packed(content)} if compress else {"content": base64.b64encode(content).decode()}
    return msgspec.json.encode(body).decode()


def inventory_content(inventory: dict[str, Any], *, compress: bool = True) -> str:
    """Return the body for an inventory."""
    body: dict[str, Any] = {"protocol": INVENTORY_CONTENT}
    body |= {"zcontent": _packed(msgspec.json.encode(inventory))} if compress else {"content": inventory}
    return msgspec.json.encode(body).decode()


def content_of(body: str | bytes) -> bytes:
    """Return what a registration carries: the file, or the inventory as JSON. Raises `ValueError`."""
    value = msgspec.json.decode(body)
    if not isinstance(value, dict) or value.get("protocol") not in (FILE_CONTENT, INVENTORY_CONTENT):
        raise ValueError("not a registration: the protocol is unknown")
    if "zcontent" in value:
        return _unpacked(base64.b64decode(str(value["zcontent"]), validate=True))
    content = value.get("content")
    if isinstance(content, dict):
        return msgspec.json.encode(content)
    if not isinstance(content, str):
        raise ValueError("not a registration: it has neither content nor zcontent")
    return base64.b64decode(content, validate=True)


def _packed(content: bytes) -> str:
    # Without the time of packing: equal content gives equal bodies.
    return base64.b64encode(gzip.compress(content, mtime=0)).decode()


def _unpacked(packed: bytes) -> bytes:
    content = b""
    while packed:
        # One member after the other: most have one, and it takes no file to read it.
        reader = zlib.decompressobj(wbits=GZIP_BITS)
        try:
            content += reader.decompress(packed, CONTENT_BYTES_MAX + 1 - len(content))
        except zlib.error as error:
            raise ValueError(f"not a registration: zcontent is not gzip: {error}") from error
        if len(content) > CONTENT_BYTES_MAX:
            raise ValueError(f"not a registration: it unpacks to more than {CONTENT_BYTES_MAX:,} bytes")
        if not reader.eof:
            raise ValueError("not a registration: zcontent is not gzip: it ends too early")
        packed = reader.unused_data.lstrip(b"\0")
    return content
