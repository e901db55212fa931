"""`Call`: one request to the API with its subject taken apart, and the ways a body is read.

| a body                                   | read by         |
|------------------------------------------|-----------------|
| is needed                                | `read_needed`   |
| is read if it begins like an object      | `read_optional` |
| must not be there                        | `check_empty`   |

Invariant: reading returns or raises `RequestError`, whatever the bytes.
"""

import re
from collections.abc import Callable, Generator
from typing import Any

import msgspec

from jetlake.management.requests.requester import NOBODY, Requester
from jetlake.management.wire.api_level import API_LEVEL
from jetlake.management.wire.error_codes import ErrorCode, RequestError
from jetlake.management.wire.json_dialect import read_request
from jetlake.management.wire.json_types import Record

API_PREFIX = "$JS.API."

Steps = Generator[None, None, None]
"""Work that is too long for one turn of a lane: each step is one. It is closed if the server stops before its end."""

_LEVEL_KEY = "Nats-Required-Api-Level"
_LEVEL = re.compile(r"[+-]?[0-9]{1,18}")
_EMPTY_OBJECT = re.compile(rb"[ \t\r\n]*\{[ \t\r\n]*\}[ \t\r\n]*")
_OBJECT_OR_LIST = re.compile(rb"[ \t\r\n]*[{\[]")


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One request: its sender, its stream and consumer, and its body."""

    account: str
    # As it is below `$JS.API`, whatever domain the request named.
    subject: str
    # The tokens in the places of the names; the last one may be a filter with dots.
    names: tuple[str, ...] = ()
    header: bytes = b""
    body: bytes = b""
    is_strict: bool = True
    connection_id: int = 0
    # What the sender may do.
    requester: Requester = NOBODY

    @property
    def stream(self) -> str:
        return self.names[0]

    @property
    def is_empty(self) -> bool:
        """Whether there is no body, or an object without keys."""
        return not self.body or _EMPTY_OBJECT.fullmatch(self.body) is not None

    def check_level(self) -> None:
        """Raise `RequestError` when the request needs a newer server than this one."""
        level = self.header_value(_LEVEL_KEY)
        if level and (_LEVEL.fullmatch(level) is None or int(level) > API_LEVEL):
            raise RequestError(ErrorCode.REQUIRED_API_LEVEL)

    def header_value(self, key: str) -> str | None:
        """Return what the header says under a key the first time; None = nothing."""
        _, found, after_key = self.header.partition(f"\r\n{key}:".encode())
        return after_key.partition(b"\r\n")[0].lstrip(b" ").decode(errors="replace") if found else None

    def check_empty(self) -> None:
        """Raise `RequestError` when there is a body."""
        if not self.is_empty:
            raise RequestError(ErrorCode.NOT_EMPTY_REQUEST)

    def read_needed(self, record: Record) -> Any:
        """Return what the body says, which must say something."""
        if self.is_empty:
            raise RequestError(ErrorCode.BAD_REQUEST)
        return self.read(record)

    def read_optional(self, record: Record) -> Any:
        """Return what the body says, or the defaults when it does not even begin like an object."""
        return self.read(record) if _OBJECT_OR_LIST.match(self.body) else record.make()

    def read(self, record: Record) -> Any:
        """Return what the body says."""
        return read_request(record, self.body, is_strict=self.is_strict).value


class Granted(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of an answer, its header, and the work to do once it has been sent."""

    fields: dict[str, Any]
    header: bytes | None = None
    # Account, stream and name of a consumer to make durable before the answer is sent.
    created: tuple[str, str, str] | None = None
    # What is too long for one turn is returned, step by step.
    then: Callable[[], Steps | None] | None = None
