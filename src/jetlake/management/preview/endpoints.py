"""`Today`: today's endpoints, as the old dialects use them."""

import json
from collections.abc import Callable
from typing import Any

import msgspec

from jetlake.management.account_info import AccountEndpoints
from jetlake.management.calls import Call
from jetlake.management.catalog import Catalog
from jetlake.management.consumers import ConsumerEndpoints
from jetlake.management.error_codes import ApiError, ErrorCode
from jetlake.management.messages import MessageEndpoints
from jetlake.management.settings import ManagementSettings
from jetlake.management.streams import StreamEndpoints

NUMBER_DIGITS_MAX = 20
"""More digits than a sequence has."""


class Today(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that answers. `settings` returns those in force."""

    catalog: Catalog
    streams: StreamEndpoints
    consumers: ConsumerEndpoints
    messages: MessageEndpoints
    accounts: AccountEndpoints
    settings: Callable[[], ManagementSettings]


def asked(call: Call, *names: str, body: Any = None) -> Call:
    """Return a request of today's on behalf of an old one: about these names, with this value as JSON."""
    encoded = b"" if body is None else json.dumps(body).encode()
    return msgspec.structs.replace(call, names=names, body=encoded, header=b"", is_strict=False)


def read_object(body: bytes) -> dict[str, Any]:
    """Return what the body says, or raise `ApiError`: both dialects say no more than that a request is bad."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ApiError(ErrorCode.BAD_REQUEST)
    return value


def read_number(text: bytes) -> int:
    """Return a sequence that stands as text in a body, or raise `ApiError`."""
    stripped = text.strip()
    if not stripped.isdigit() or len(stripped) > NUMBER_DIGITS_MAX:
        raise ApiError(ErrorCode.BAD_REQUEST)
    return int(stripped)


def read_words(body: bytes, count: int) -> list[str]:
    """Return so many names that stand as text in a body, or raise `ApiError`."""
    words = body.decode(errors="replace").split()
    if len(words) != count:
        raise ApiError(ErrorCode.BAD_REQUEST)
    return words
