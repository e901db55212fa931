"""Messages of a stream, one page at a time, forwards and backwards, by subject, sequence and time.

```python
page = await page_from(api, "ORDERS", 1000, "orders.eu.>")
page = await page_before(api, "ORDERS", 1000, "orders.eu.>", first_sequence=1)
```

They are read by `STREAM.MSG.GET`, which work queues allow as well, and which leaves no consumer behind.

Invariant: a page costs at most `REQUESTS_MAX` requests and little more than `PAGE_BYTES_MAX`, however many messages
there are; of each message it keeps `KEPT_BYTES_MAX`.
"""

import base64
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import msgspec

from jetlake.client.api import Api, token
from jetlake.errors import ApiError, ConfigurationError
from jetlake.units import SECOND

__all__ = [
    "MessagePage",
    "StoredMessage",
    "check_pattern",
    "count_from",
    "message_at",
    "next_message",
    "page_before",
    "page_from",
    "sequence_at",
]

ROWS_MAX = 25
"""Messages of one page: each costs one request."""

REQUESTS_MAX = 400
"""For one page backwards: servers find the next message of a subject, not the one before, so it is searched for."""

PAGE_BYTES_MAX = 8 * 1024 * 1024
"""Of payloads read for one page; with larger messages a page has fewer rows."""

KEPT_BYTES_MAX = 1024
"""Of a payload in a list: one line of it is shown."""

GROWTH = 4
"""How much further each look back goes: a rare subject is found after a dozen looks."""

COUNT_S = 5
"""The server removes a consumer that was made to count after this time, if we cannot."""

EVERYTHING = ">"


class StoredMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a stream."""

    subject: str
    sequence: int
    # RFC 3339.
    time: str
    headers: tuple[tuple[str, str], ...]
    payload: bytes
    # Of the whole payload.
    size: int

    def shortened(self) -> "StoredMessage":
        """Return it as a list keeps it."""
        return msgspec.structs.replace(self, payload=self.payload[:KEPT_BYTES_MAX])


class MessagePage(msgspec.Struct, frozen=True, kw_only=True):
    """Some messages in the order of the stream; their payloads are cut."""

    messages: tuple[StoredMessage, ...]
    # Whether there may be messages before and after them.
    has_older: bool
    has_newer: bool


async def message_at(api: Api, stream: str, sequence: int) -> StoredMessage | None:
    """Return the message with a sequence, or None if there is none."""
    return await _get(api, stream, {"seq": sequence})


async def next_message(api: Api, stream: str, sequence: int, pattern: str = "") -> StoredMessage | None:
    """Return the first message from a sequence on whose subject matches, or None."""
    return await _get(api, stream, {"seq": max(1, sequence), "next_by_subj": pattern or EVERYTHING})


async def sequence_at(api: Api, stream: str, time: str) -> int | None:
    """Return the sequence of the first message that was stored at a time or later, or None."""
    found = await _get(api, stream, {"start_time": time, "next_by_subj": EVERYTHING})
    return None if found is None else found.sequence


async def page_from(api: Api, stream: str, sequence: int, pattern: str = "", *, first_sequence: int = 1) -> MessagePage:
    """Return the messages from a sequence on."""
    found: list[StoredMessage] = []
    size, is_end = 0, False
    while len(found) < ROWS_MAX and size < PAGE_BYTES_MAX and not is_end:
        message = await next_message(api, stream, found[-1].sequence + 1 if found else sequence, pattern)
        if message is None:
            is_end = True
        else:
            size += message.size
            found.append(message.shortened())
    begin = found[0].sequence if found else sequence
    return MessagePage(messages=tuple(found), has_older=begin > first_sequence, has_newer=not is_end)


async def page_before(
    api: Api, stream: str, sequence: int, pattern: str = "", *, first_sequence: int = 1
) -> MessagePage:
    """Return the last messages before a sequence. Looks back further and further until the page is full."""
    found: list[StoredMessage] = []
    high, window = sequence, ROWS_MAX
    requests = size = 0
    while len(found) < ROWS_MAX and high > first_sequence and requests < REQUESTS_MAX and size < PAGE_BYTES_MAX:
        low = max(first_sequence, high - window)
        here: list[StoredMessage] = []
        at = low
        while at < high and len(here) <= 2 * ROWS_MAX and size < PAGE_BYTES_MAX:
            message = await next_message(api, stream, at, pattern)
            requests += 1
            if message is None or message.sequence >= high:
                break
            size += message.size
            here.append(message.shortened())
            at = message.sequence + 1
        if len(here) > 2 * ROWS_MAX:
            # Too many: the last ones are wanted, so a shorter look back will do.
            window = max(ROWS_MAX, window // (2 * GROWTH))
            continue
        found = here + found
        high, window = low, window * GROWTH
    kept = found[-ROWS_MAX:]
    begin = kept[0].sequence if kept else high
    return MessagePage(messages=tuple(kept), has_older=begin > first_sequence, has_newer=True)


async def count_from(api: Api, stream: str, sequence: int, patterns: Sequence[str] = ()) -> int | None:
    """Return how many messages from a sequence on match, or None if the server cannot tell.

    No request counts them but that for a consumer, which a work queue may refuse.
    """
    name = f"jetlake_{uuid4().hex[:12]}"
    config: dict[str, Any] = {
        "name": name,
        "ack_policy": "none",
        "headers_only": True,
        "mem_storage": True,
        "num_replicas": 1,
        "inactive_threshold": COUNT_S * SECOND,
        "deliver_policy": "by_start_sequence",
        "opt_start_seq": max(1, sequence),
    }
    if len(patterns) == 1:
        config["filter_subject"] = patterns[0]
    elif patterns:
        config["filter_subjects"] = list(patterns)
    subject = f"CONSUMER.CREATE.{token(stream)}.{name}"
    try:
        made = await api.request(subject, {"stream_name": stream, "config": config})
    except ApiError:
        return None
    await api.find(f"CONSUMER.DELETE.{token(stream)}.{name}")
    return int(made["num_pending"])


def check_pattern(text: str) -> str:
    """Return a subject that may have wildcards. Raises `ConfigurationError` for one that cannot match anything."""
    tokens = text.split(".")
    is_wrong = any(not each or not each.isprintable() or " " in each for each in tokens) or EVERYTHING in tokens[:-1]
    if text and is_wrong:
        raise ConfigurationError(
            f"{text!r} is not a subject: write tokens with dots between them, * for any token, and > at the end for "
            "any number of them."
        )
    return text


async def _get(api: Api, stream: str, body: dict[str, Any]) -> StoredMessage | None:
    answer = await api.find(f"STREAM.MSG.GET.{token(stream)}", body)
    if answer is None:
        return None
    message = answer["message"]
    payload = base64.b64decode(message.get("data") or "")
    return StoredMessage(
        subject=str(message["subject"]),
        sequence=int(message["seq"]),
        time=str(message["time"]),
        headers=_headers(base64.b64decode(message.get("hdrs") or "")),
        payload=payload,
        size=len(payload),
    )


def _headers(block: bytes) -> tuple[tuple[str, str], ...]:
    lines = block.decode(errors="replace").split("\r\n")[1:]
    pairs = (line.partition(":") for line in lines if ":" in line)
    return tuple((name, value.strip()) for name, _, value in pairs)
