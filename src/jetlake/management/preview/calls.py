"""Requests of the old dialects: their bodies read, and made into requests of today's."""

import json
from typing import Any

import msgspec

from jetlake.management.requests.calls import Call
from jetlake.management.wire.error_codes import ErrorCode, RequestError

NUMBER_DIGITS_MAX = 20
"""More digits than a sequence has."""


def asked(call: Call, *names: str, body: Any = None) -> Call:
    """Return a request of today's on behalf of an old one: about these names, with this value as JSON."""
    encoded = b"" if body is None else json.dumps(body).encode()
    return msgspec.structs.replace(call, names=names, body=encoded, header=b"", is_strict=False)


def read_object(body: bytes) -> dict[str, Any]:
    """Return what the body says, or raise `RequestError`: both dialects say no more than that a request is bad."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise RequestError(ErrorCode.BAD_REQUEST)
    return value


def read_number(text: bytes) -> int:
    """Return a sequence that stands as text in a body, or raise `RequestError`."""
    stripped = text.strip()
    if not stripped.isdigit() or len(stripped) > NUMBER_DIGITS_MAX:
        raise RequestError(ErrorCode.BAD_REQUEST)
    return int(stripped)


def read_words(body: bytes, count: int) -> list[str]:
    """Return `count` names from the text of a body, or raise `RequestError`."""
    words = body.decode(errors="replace").split()
    if len(words) != count:
        raise RequestError(ErrorCode.BAD_REQUEST)
    return words
