"""The streams a Choria broker makes by itself, and how long each keeps what it holds.

| stream                      | subjects                                   | retention                  |
|-----------------------------|--------------------------------------------|----------------------------|
| `CHORIA_EVENTS`             | `choria.lifecycle.>`                       | `event_retention` 24h      |
| `CHORIA_MACHINE`            | `choria.machine.>`                         | `machine_retention` 24h    |
| `CHORIA_STREAM_ADVISORIES`  | `$JS.EVENT.ADVISORY.>`                     | `advisory_retention` 168h  |
| `KV_CHORIA_LEADER_ELECTION` | `$KV.CHORIA_LEADER_ELECTION.>`             | `leader_election_ttl` 1m   |
| `CHORIA_EXECUTOR`           | `choria.submission.in.choria.executor.>`   | `executor_retention` 24h   |

A retention of 0 leaves its stream out.
"""

from typing import Any

import msgspec

__all__ = ["StreamRetention", "broker_streams"]

HOUR_S = 3600.0
NANOSECONDS_PER_SECOND = 1_000_000_000

DUPLICATE_WINDOW_NS = 120 * NANOSECONDS_PER_SECOND
"""The server's default; it may not be longer than what a stream keeps."""

ELECTION_VALUE_BYTES_MAX = 1024
"""Of a vote in the election of a leader."""


class StreamRetention(msgspec.Struct, frozen=True, kw_only=True):
    """How long the streams keep what they hold, in seconds; 0 = the stream is not made."""

    event_retention: float = 24 * HOUR_S
    machine_retention: float = 24 * HOUR_S
    advisory_retention: float = 7 * 24 * HOUR_S
    leader_election_ttl: float = 60.0
    executor_retention: float = 24 * HOUR_S


def broker_streams(retention: StreamRetention) -> list[dict[str, Any]]:
    """Return the configurations of the streams, as the API takes them."""
    plain = (
        ("CHORIA_EVENTS", "choria.lifecycle.>", retention.event_retention, "Choria Lifecycle Events"),
        ("CHORIA_MACHINE", "choria.machine.>", retention.machine_retention, "Choria Autonomous Agent Events"),
        ("CHORIA_STREAM_ADVISORIES", "$JS.EVENT.ADVISORY.>", retention.advisory_retention, "Stream Advisories"),
    )
    found = [
        _stream(name, [subject], age_s, description=description) for name, subject, age_s, description in plain if age_s
    ]
    if retention.leader_election_ttl:
        found.append(
            _stream(
                "KV_CHORIA_LEADER_ELECTION",
                ["$KV.CHORIA_LEADER_ELECTION.>"],
                retention.leader_election_ttl,
                description="Choria Leader Election Bucket",
                max_msgs_per_subject=1,
                max_msg_size=ELECTION_VALUE_BYTES_MAX,
                discard="new",
                deny_delete=True,
                allow_rollup_hdrs=True,
                allow_direct=True,
            )
        )
    if retention.executor_retention:
        found.append(
            _stream(
                "CHORIA_EXECUTOR",
                ["choria.submission.in.choria.executor.>"],
                retention.executor_retention,
                description="Choria Executor Events",
                subject_transform={"src": "choria.submission.in.choria.executor.>", "dest": "choria.executor.>"},
                allow_direct=True,
            )
        )
    return found


def _stream(name: str, subjects: list[str], age_s: float, **fields: Any) -> dict[str, Any]:
    age_ns = int(age_s * NANOSECONDS_PER_SECOND)
    return {
        "name": name,
        "subjects": subjects,
        "retention": "limits",
        "storage": "file",
        "discard": "old",
        "max_age": age_ns,
        "duplicate_window": min(age_ns, DUPLICATE_WINDOW_NS),
        "num_replicas": 1,
        **fields,
    }
