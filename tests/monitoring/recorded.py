"""A server that is only a recording: readings as the engine writes them, facts as a server gives them."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from jetlake.monitoring.facts import JetStreamFacts, ServerFacts
from jetlake.monitoring.readings import MonitoredServer
from jetlake.monitoring.usage import ProcessUsage

SECOND_NS = 1_000_000_000
STARTED_NS = 1_700_000_000 * SECOND_NS
NOW_NS = STARTED_NS + 3_723 * SECOND_NS

FACTS = ServerFacts(
    server_id="NAID",
    server_name="here",
    version="2.15.1",
    git_commit="jetlake-0",
    runtime="rust jetlake-0",
    host="127.0.0.1",
    port=4222,
    max_connections=65_536,
    max_subscriptions=0,
    max_control_line_bytes=4_096,
    max_payload_bytes=1_048_576,
    max_pending_bytes=67_108_864,
    ping_interval_ns=120 * SECOND_NS,
    ping_max=2,
    write_deadline_ns=10 * SECOND_NS,
    auth_timeout_s=2.0,
    config_loaded_unix_ns=STARTED_NS,
    http_host="127.0.0.1",
    http_port=8222,
    system_account="$SYS",
)

JETSTREAM = JetStreamFacts(
    max_memory_bytes=1_000,
    max_storage_bytes=2_000,
    store_directory="store/jetstream",
    limits={"max_ack_pending": 7},
    accounts=("B", "A"),
)


def connection(number: int, **fields: Any) -> dict[str, Any]:
    """Return a connection as the engine reports it."""
    return {
        "id": number,
        "ip": "127.0.0.1",
        "port": 50_000 + number,
        "started_unix_ns": STARTED_NS + number * SECOND_NS,
        "last_activity_unix_ns": STARTED_NS + number * SECOND_NS,
        "round_trip_ns": 673_000,
        "pending_bytes": 0,
        "subscriptions": 0,
        "stalls": 0,
        "traffic": traffic(),
        "name": f"client {number}",
        "language": "python3",
        "version": "2.16.0",
        "account": "$G",
        "user": "",
        "tls_version": "",
        "tls_cipher": "",
        **fields,
    }


def closed(number: int, **fields: Any) -> dict[str, Any]:
    """Return a connection that ended, as the engine reports it."""
    end = {"stopped_unix_ns": STARTED_NS + 100 * SECOND_NS, "reason": "Client Closed", "last_subscriptions": []}
    return {**connection(number), **end, **fields}


def traffic(in_messages: int = 0, in_bytes: int = 0, out_messages: int = 0, out_bytes: int = 0) -> dict[str, int]:
    return {
        "in_messages": in_messages,
        "in_bytes": in_bytes,
        "out_messages": out_messages,
        "out_bytes": out_bytes,
    }


def subscription(subject: str, *, sid: str = "1", connection_id: int = 1, **fields: Any) -> dict[str, Any]:
    """Return a subscription as the engine reports it."""
    counts = {"delivered": 0, "delivered_max": 0}
    return {"account": "$G", "subject": subject, "sid": sid, "connection_id": connection_id, **counts, **fields}


def account(name: str, **fields: Any) -> dict[str, Any]:
    """Return an account as the engine reports it."""
    return {
        "name": name,
        "connections": 0,
        "total_connections": 0,
        "subscriptions": 0,
        "slow_consumers": 0,
        "traffic": traffic(),
        "routing": {"inserts": 0, "removes": 0, "walks": 0, "fanout_total": 0, "fanout_max": 0},
        **fields,
    }


def leaf_link(number: int, **fields: Any) -> dict[str, Any]:
    """Return a link as the engine reports it."""
    return {
        "id": number,
        "name": f"server {number}",
        "remote_id": f"ND{number}",
        "account": "$G",
        "is_spoke": False,
        "is_isolated": False,
        "is_solicited": False,
        "ip": "127.0.0.1",
        "port": 50_000 + number,
        "round_trip_ns": 508_000,
        "in_messages": 0,
        "out_messages": 0,
        "in_bytes": 0,
        "out_bytes": 0,
        "subscriptions": 2,
        "compression": "s2_uncompressed",
        "cluster": "",
        "domain": "",
        "remote_account": "",
        "url": "",
        "started_unix_ns": STARTED_NS,
        "pending_bytes": 0,
        **fields,
    }


def leaf_remote(**fields: Any) -> dict[str, Any]:
    """Return how a hub stands, as the engine reports it."""
    return {
        "account": "$G",
        "urls": ["hub:7422"],
        "is_connected": False,
        "link_id": 0,
        "attempts": 3,
        "last_error": "connection refused",
        "changed_unix_ns": STARTED_NS,
        "retry_in_ms": 1500,
        "pending_bytes": 0,
        **fields,
    }


class RecordedEngine:
    """Replays readings; `queries` are the questions it was asked about subscriptions."""

    def __init__(
        self,
        *,
        connections: list[dict[str, Any]] | None = None,
        closed_connections: list[dict[str, Any]] | None = None,
        subscription_list: list[dict[str, Any]] | None = None,
        accounts: list[dict[str, Any]] | None = None,
        stream_figures: dict[str, Any] | None = None,
        leaf_links: list[dict[str, Any]] | None = None,
        leaf_remotes: list[dict[str, Any]] | None = None,
        **statistics: Any,
    ) -> None:
        self._connections = connections or []
        self._closed_connections = closed_connections or []
        self._subscription_list = subscription_list or []
        self._leaf_links = leaf_links or []
        self._leaf_remotes = leaf_remotes or []
        self._stream_figures = {
            "streams": [],
            "consumers": [],
            "streams_left_out": 0,
            "consumers_left_out": 0,
            "sync_bounds_micros": [100, 1000],
            "sync_counts": [0, 0, 0],
            "sync_total_ns": 0,
            **(stream_figures or {}),
        }
        self._statistics = {
            "started_unix_ns": STARTED_NS,
            "worker_threads": 2,
            "accounts": accounts or [account("$G"), account("$SYS")],
            **statistics,
        }
        self.queries: list[dict[str, Any]] = []

    def statistics(self) -> bytes:
        return json.dumps(self._statistics).encode()

    def connections(self) -> bytes:
        return json.dumps(self._connections).encode()

    def connection(self, connection_id: int) -> bytes | None:
        found = (each for each in self._connections if each["id"] == connection_id)
        return next((json.dumps(each).encode() for each in found), None)

    def closed_connections(self) -> bytes:
        return json.dumps(self._closed_connections).encode()

    def leaf_links(self) -> bytes:
        return json.dumps(self._leaf_links).encode()

    def leaf_interest(self, connection_id: int) -> list[str]:
        return [f"wanted.{connection_id}"]

    def leaf_remotes(self) -> bytes:
        return json.dumps(self._leaf_remotes).encode()

    def stream_figures(self) -> bytes:
        return json.dumps(self._stream_figures).encode()

    def subscriptions(self, query: bytes) -> bytes:
        self.queries.append(json.loads(query))
        return json.dumps({"total": len(self._subscription_list), "subscriptions": self._subscription_list}).encode()


def source_of(engine: RecordedEngine, **facts: Any) -> MonitoredServer:
    """Return a source that replays this engine, one hour, two minutes and three seconds after its start."""
    return MonitoredServer(
        engine,
        lambda: msgspec.structs.replace(FACTS, **facts),
        clock=lambda: NOW_NS,
        usage=ProcessUsage(clock=lambda: 0.0, worked=lambda: 0.0),
    )


def recorded(facts: dict[str, Any] | None = None, **readings: Any) -> MonitoredServer:
    """Return a source with these readings and facts."""
    return source_of(RecordedEngine(**readings), **(facts or {}))


def as_json(body: object) -> Any:
    """Return what a reader of the body's JSON sees."""
    return json.loads(msgspec.json.encode(body))
