"""The envelope of an answer: its type, and then what was asked for, or an error and the fields that stay.

| answer  | form                                                            |
|---------|-----------------------------------------------------------------|
| success | `{"type": "io.nats.jetstream.api.v1.…", …}`                     |
| failure | `{"type": …, "error": {"code", "err_code", "description"}, …}`  |

Clients decode an error into the type of the success, so fields that are never left out stand in errors too, with
zeros.

Invariant: every type that an endpoint answers with has its zero fields here, if it has any.
"""

from collections.abc import Mapping
from typing import Any

from jetlake.management.wire.error_codes import RequestError
from jetlake.management.wire.json_dialect import write_json

TYPE_PREFIX = "io.nats.jetstream.api.v1."

ZERO_TIME = "0001-01-01T00:00:00Z"
"""What stands where no time is known."""

_PAGE: dict[str, Any] = {"total": 0, "offset": 0, "limit": 0}

ZERO_FIELDS: Mapping[str, dict[str, Any]] = {
    "stream_names_response": {**_PAGE, "streams": None},
    "stream_list_response": {**_PAGE, "streams": []},
    "stream_info_response": _PAGE,
    "stream_purge_response": {"purged": 0},
    "stream_restore_response": {"deliver_subject": ""},
    "consumer_names_response": {**_PAGE, "consumers": []},
    "consumer_list_response": {**_PAGE, "consumers": []},
    "consumer_pause_response": {"paused": False, "pause_until": ZERO_TIME},
    "consumer_reset_response": {"reset_seq": 0},
    "account_purge_response": {"initiated": False},
}
"""What stays in an error, by type; nothing where a type is not listed."""

NO_RESPONDERS_HEADER = b"NATS/1.0 503\r\nNats-Subject: %s\r\n\r\n"


def success(kind: str, fields: Mapping[str, Any]) -> bytes:
    """Return the answer to a request that was granted."""
    return write_json({"type": TYPE_PREFIX + kind, **fields})


def failure(kind: str, error: RequestError) -> bytes:
    """Return the answer to a request that was refused."""
    return write_json({"type": TYPE_PREFIX + kind, "error": error.to_json(), **ZERO_FIELDS.get(kind, {})})
