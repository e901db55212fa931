"""The digest of a stream: one value that changes with every message that is changed, left out, added or moved.

Each message is hashed together with the digest of all before it, so that two streams, or one stream at two times, can
be compared up to any sequence without keeping anything but 64 letters:

    digest(n) = SHA-256(digest(n-1), sequence, time in ns, subject, headers, payload)

each part with its length before it. Invariant: the digest depends on messages only, not on the server that keeps them:
a mirror, a restored backup and a fork have the digest of their origin.
"""

import hashlib
from collections.abc import Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import msgspec

from jetlake.client.api import Api, token
from jetlake.client.pulls import Start, read

if TYPE_CHECKING:
    from nats.aio.msg import Msg

START = bytes(32)
"""The digest of nothing."""


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """What was read of a stream, and whether it is what the stream says of itself."""

    stream: str
    digest: str
    messages: int
    first_sequence: int
    last_sequence: int
    # Each is one sentence; none = all is well.
    findings: list[str]


async def verify(
    api: Api, stream: str, *, last_sequence: int = 0, tell: Callable[[int], None] | None = None
) -> Verified:
    """Read a stream from its first message to its last, or to a sequence. Raises `ClientError`."""
    state: dict[str, Any] = (await api.request(f"STREAM.INFO.{token(stream)}"))["state"]
    until = min(last_sequence or state["last_seq"], state["last_seq"])
    digest, count, first, last = START, 0, 0, 0
    findings: list[str] = []
    if state["messages"]:
        async with aclosing(read(api, stream, start=Start(), to_end=True)) as messages:
            async for message in messages:
                sequence = message.metadata.sequence.stream
                if sequence > until:
                    break
                if sequence <= last:
                    findings.append(f"message {sequence:,} came after {last:,}")
                first, last, count = first or sequence, sequence, count + 1
                digest = _next(digest, sequence, message)
                if tell is not None:
                    tell(1)
    if not last_sequence:
        findings += _compared(state, count, first, last)
    return Verified(
        stream=stream,
        digest=digest.hex(),
        messages=count,
        first_sequence=first,
        last_sequence=last,
        findings=findings,
    )


SHORT_REPLY = 9
"""Tokens of a reply subject without domain and account: the time is the one before the last."""

TIME_OF_LONG_REPLY = 9
"""Its place in the longer form, which may have a random token at the end."""


def _next(before: bytes, sequence: int, message: "Msg") -> bytes:
    reply = message.reply.split(".")
    time_ns = reply[-2] if len(reply) == SHORT_REPLY else reply[TIME_OF_LONG_REPLY]
    headers = message.headers or {}
    hasher = hashlib.sha256(before)
    parts = [b"%d" % sequence, time_ns.encode(), message.subject.encode()]
    parts += [part.encode() for name in sorted(headers) for part in (name, headers[name])]
    for part in (*parts, message.data):
        hasher.update(b"%d:" % len(part) + part)
    return hasher.digest()


def _compared(state: dict[str, Any], count: int, first: int, last: int) -> list[str]:
    """Return what does not agree with what the stream says of itself; messages may come and go meanwhile."""
    findings = []
    if count < state["messages"]:
        findings.append(f"the stream says it has {state['messages']:,} messages; {count:,} could be read")
    if count and first < state["first_seq"]:
        findings.append(f"message {first:,} lies before the first sequence, {state['first_seq']:,}")
    if count and last < state["last_seq"] and not state.get("num_deleted"):
        findings.append(f"the last message should be {state['last_seq']:,}; it is {last:,}")
    if state.get("lost"):
        findings.append(f"the server has lost messages: {state['lost']}")
    return findings
