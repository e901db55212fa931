"""Asks the pages of a server, and knows their keys and JSON types, as nats-server prints them."""

from __future__ import annotations

import http.client
import json
import re
import socket
import ssl
import time
from dataclasses import dataclass
from typing import Any

from tests.compatibility.server_process import ServerProcess
from tests.compatibility.wire import RawClient

TIMEOUT_SECONDS = 60.0

MONITOR = re.compile(r"Starting https? monitor on (\S+):(\d+)")

# Keys that nats-server has and Jetlake has not.
ONLY_THERE = {"imports"}

COUNTS = {"clients": int, "routes": int, "gateways": int, "leafs": int}
MESSAGES = {"msgs": int, "bytes": int}
DIRECTION = {**MESSAGES, "gateways": MESSAGES, "routes": MESSAGES, "leafs": MESSAGES}
LOOKUPS = {
    "num_subscriptions": int,
    "num_cache": int,
    "num_inserts": int,
    "num_removes": int,
    "num_matches": int,
    "cache_hit_rate": float,
    "max_fanout": int,
    "avg_fanout": float,
}
ACCOUNT_DETAIL = {
    "account_name": str,
    "update_time": str,
    "expired": bool,
    "complete": bool,
    "jetstream_enabled": bool,
    "leafnode_connections": int,
    "client_connections": int,
    "subscriptions": int,
    "name_tag": str,
    "sublist_stats": LOOKUPS,
}
API = {"level": int, "total": int, "errors": int}
JETSTREAM_FIGURES = {
    "memory": int,
    "storage": int,
    "reserved_memory": int,
    "reserved_storage": int,
    "accounts": int,
    "ha_assets": int,
    "api": API,
}

VARZ = {
    "server_id": str,
    "server_name": str,
    "version": str,
    "proto": int,
    "git_commit": str,
    "go": str,
    "host": str,
    "port": int,
    "max_connections": int,
    "ping_interval": int,
    "ping_max": int,
    "http_host": str,
    "http_port": int,
    "http_base_path": str,
    "https_port": int,
    "auth_timeout": float,
    "max_control_line": int,
    "max_payload": int,
    "max_pending": int,
    "cluster": {},
    "gateway": {},
    "leaf": {},
    "mqtt": {},
    "websocket": {},
    "jetstream": {},
    "tls_timeout": float,
    "write_deadline": int,
    "start": str,
    "now": str,
    "uptime": str,
    "mem": int,
    "cores": int,
    "gomaxprocs": int,
    "cpu": float,
    "connections": int,
    "total_connections": int,
    "routes": int,
    "remotes": int,
    "leafnodes": int,
    "in_msgs": int,
    "in_bytes": int,
    "in_client_msgs": int,
    "in_client_bytes": int,
    "out_msgs": int,
    "out_bytes": int,
    "out_client_msgs": int,
    "out_client_bytes": int,
    "slow_consumers": int,
    "stale_connections": int,
    "stalled_clients": int,
    "subscriptions": int,
    "http_req_stats": dict,
    "config_load_time": str,
    "config_digest": str,
    "feature_flags": dict,
    "system_account": str,
    "slow_consumer_stats": COUNTS,
    "stale_connection_stats": COUNTS,
    "disk_io_wait_stats": {"waiters": int, "waits": int, "wait_time": int, "max_wait_time": int},
}

CONNECTION = {
    "cid": int,
    "kind": str,
    "type": str,
    "ip": str,
    "port": int,
    "start": str,
    "last_activity": str,
    "rtt": str,
    "uptime": str,
    "idle": str,
    "pending_bytes": int,
    "in_msgs": int,
    "out_msgs": int,
    "in_bytes": int,
    "out_bytes": int,
    "subscriptions": int,
    "name": str,
    "lang": str,
    "version": str,
}
CONNZ = {
    "server_id": str,
    "now": str,
    "num_connections": int,
    "total": int,
    "offset": int,
    "limit": int,
    "connections": list,
}
JSZ = {
    **JETSTREAM_FIGURES,
    "server_id": str,
    "now": str,
    "config": {"max_memory": int, "max_storage": int},
    "streams": int,
    "consumers": int,
    "messages": int,
    "bytes": int,
    "total": int,
}

TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$")
UPTIME = re.compile(r"^(\d+y)?(\d+d)?(\d+h)?(\d+m)?\d+s$")
DURATION = re.compile(r"^(\d+h)?(\d+m)?\d+(\.\d+)?(ns|µs|ms|s)$")


@dataclass(frozen=True)
class Answer:
    """What a page answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        assert self.headers["Content-Type"] == "application/json", self.body
        return json.loads(self.body)

    @property
    def text(self) -> str:
        assert self.headers["Content-Type"] == "text/plain; charset=utf-8", self.body
        return self.body.decode()


@dataclass(frozen=True)
class Monitored:
    """A server and its pages."""

    server: ServerProcess
    host: str
    port: int
    tls: ssl.SSLContext | None = None

    def get(self, path: str, method: str = "GET") -> Answer:
        connection: http.client.HTTPConnection
        if self.tls is None:
            connection = http.client.HTTPConnection(self.host, self.port, timeout=TIMEOUT_SECONDS)
        else:
            connection = http.client.HTTPSConnection(self.host, self.port, timeout=TIMEOUT_SECONDS, context=self.tls)
        try:
            connection.request(method, path)
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    def get_json(self, path: str) -> Any:
        answer = self.get(path)
        assert answer.status == 200, (path, answer)
        return answer.json

    def exchange(self, data: bytes) -> bytes:
        """Send bytes and return what comes until the server closes, or says nothing more for a moment."""
        received = b""
        with socket.create_connection((self.host, self.port), timeout=TIMEOUT_SECONDS) as client:
            client.sendall(data)
            try:
                while piece := client.recv(65_536):
                    received += piece
                    client.settimeout(0.2)
            except (TimeoutError, ConnectionResetError):
                pass
        return received

    def connections(self, query: str = "") -> list[dict[str, Any]]:
        """The connections that `/connz` shows; the list is never null."""
        connections: list[dict[str, Any]] = self.get_json(f"/connz{query}")["connections"]
        return connections

    def wait_for_connections(self, query: str, count: int) -> list[dict[str, Any]]:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while len(found := self.connections(query)) != count:
            assert time.monotonic() < deadline, found
            time.sleep(0.02)
        return found


def monitored_of(server: ServerProcess, tls: ssl.SSLContext | None = None) -> Monitored:
    """Find the pages of a server by the line in its log."""
    found = MONITOR.search(server.log())
    assert found, server.log()
    return Monitored(server, found[1], int(found[2]), tls)


def read_pong(client: RawClient) -> None:
    """Read until the answer to a PING: everything sent before it has been heard."""
    while client.read_frame() != b"PONG\r\n":
        pass


def assert_shape(value: Any, shape: Any, where: str = "") -> None:
    """Check keys and JSON types. A dict is all keys, a type is that type; an int may stand for a float."""
    if isinstance(shape, dict):
        assert isinstance(value, dict), where
        assert set(value) - ONLY_THERE == set(shape), where
        for key, inner in shape.items():
            assert_shape(value[key], inner, f"{where}.{key}")
    elif shape is float:
        assert isinstance(value, int | float), where
        assert not isinstance(value, bool), where
    else:
        assert isinstance(value, shape), where
        assert not (shape is int and isinstance(value, bool)), where
