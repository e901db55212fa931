"""The options in a request: a JSON object, or nothing for the defaults.

Invariant: `read_options` returns a value or raises `UnreadableOptionsError`, for any bytes.
"""

from typing import TypeVar

import msgspec

from jetlake.monitoring.parameters import UnreadableOptionsError

Options = TypeVar("Options", bound=msgspec.Struct)


def read_options(payload: bytes, kind: type[Options]) -> Options:
    """Return the options of this kind that a request holds; fields it does not know belong to others."""
    try:
        return msgspec.json.decode(payload, type=kind) if payload.strip() else kind()
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableOptionsError(f"the options of the request cannot be read: {error}") from error
