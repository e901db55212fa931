"""`heard_nodes`: which nodes were heard from lately, from the events that streams keep, for a fleet without a lake.

Invariant: at most `EVENTS_MAX` events of each stream are read, the newest.
"""

from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any, NamedTuple

from jetlake.choria.events import LIFECYCLE_SUBJECT, MACHINE_SUBJECT, decode, describe, is_lifecycle
from jetlake.client.api import Api, token
from jetlake.client.pulls import Start, read

__all__ = ["HeardNode", "event_streams", "heard_nodes"]

EVENTS_MAX = 2_000
"""Of each stream: some minutes of a large fleet, an hour of a small one; half a second to read."""

TEXT_LETTERS_MAX = 200
"""Of an event in words, and of the name of a node."""

SUBJECTS = (f"{LIFECYCLE_SUBJECT}.>", f"{MACHINE_SUBJECT}.>")


class HeardNode(NamedTuple):
    """One node, as its last event tells."""

    identity: str
    heard: str
    event: str
    version: str
    event_count: int


async def event_streams(api: Api) -> list[str]:
    """Return the streams that keep events of nodes. Raises `ClientError`."""
    found: set[str] = set()
    for subject in SUBJECTS:
        found |= set(await api.stream_names(subject))
    return sorted(found)


async def heard_nodes(api: Api, streams: list[str]) -> list[HeardNode]:
    """Return the nodes that the newest events are about, the one heard last first."""
    nodes: dict[str, HeardNode] = {}
    for stream in streams:
        info = await api.request(f"STREAM.INFO.{token(stream)}")
        state = info["state"]
        start = max(int(state["first_seq"]), int(state["last_seq"]) - EVENTS_MAX + 1, 1)
        if not state["messages"]:
            continue
        async with aclosing(read(api, stream, start=Start(sequence=start), to_end=True)) as messages:
            async for message in messages:
                body = decode(message.data)
                if body is not None and isinstance(body.get("identity"), str):
                    _record_event(nodes, body)
    return sorted(nodes.values(), key=lambda node: (node.heard, node.identity), reverse=True)


def _record_event(nodes: dict[str, HeardNode], body: dict[str, Any]) -> None:
    identity = body["identity"][:TEXT_LETTERS_MAX]
    before = nodes.get(identity)
    heard = _timestamp(body.get("timestamp"))
    version = str(body.get("version", ""))[:TEXT_LETTERS_MAX] if is_lifecycle(body) else ""
    count = 1 if before is None else before.event_count + 1
    if before is not None and before.heard > heard:
        nodes[identity] = before._replace(event_count=count, version=before.version or version)
        return
    known = version or ("" if before is None else before.version)
    nodes[identity] = HeardNode(identity, heard, describe(body)[:TEXT_LETTERS_MAX], known, count)


def _timestamp(seconds: Any) -> str:
    try:
        return datetime.fromtimestamp(int(seconds), UTC).isoformat()
    except (TypeError, ValueError, OverflowError, OSError):
        return ""
