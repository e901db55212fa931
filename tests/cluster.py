"""`Cluster`: three nats-server processes with JetStream that are one cluster, for tests with replicas 3.

```python
@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with start_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster

async def test_something(cluster):
    connection = await nats.connect(cluster.urls)
    cluster.kill(cluster.leader_of("ORDERS"))
```

A server that was killed keeps its port and its store: `restart` brings it back.

Invariant: when `start_cluster` or `restart` returns, every running server is healthy: it knows the cluster's leader
and has what the others have.
"""

from __future__ import annotations

import json
import socket
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.compatibility.server_process import ServerProcess

SIZE = 3
"""Servers of a cluster: the fewest of which one may be lost."""

HEALTHY_S_MAX = 60.0
"""An election takes a few seconds, on a machine that is busy with other tests many more."""

POLL_S = 0.05

HTTP_S_MAX = 5.0

CONFIGURATION = """
server_name: node{number}
listen: 127.0.0.1:{client}
http: 127.0.0.1:{monitor}
jetstream {{ store_dir: "{store}", max_memory_store: 64MiB, max_file_store: 2GiB {domain} }}
leafnodes {{ listen: 127.0.0.1:{leaf} }}
cluster {{
  name: three
  listen: 127.0.0.1:{route}
  routes: [{routes}]
}}
"""


class Cluster:
    """Three servers, numbered from 0."""

    def __init__(self, folder: Path, domain: str = "") -> None:
        self._folder = folder
        self._domain = domain
        ports = free_ports(4 * SIZE)
        self._clients, self._routes, self._monitors, self.leaf_ports = (
            ports[start : start + SIZE] for start in range(0, len(ports), SIZE)
        )
        self._servers: list[ServerProcess | None] = [None] * SIZE

    @property
    def urls(self) -> list[str]:
        """The addresses of all servers, running or not."""
        return [f"nats://127.0.0.1:{port}" for port in self._clients]

    @property
    def url(self) -> str:
        """All addresses as one text, as `--server` and NATS_URL take it."""
        return ",".join(self.urls)

    @property
    def running(self) -> list[int]:
        return [number for number, server in enumerate(self._servers) if server is not None]

    def start(self) -> None:
        """Start those that do not run, and wait until all are healthy."""
        for number in range(SIZE):
            if self._servers[number] is None:
                self._servers[number] = self._start(number)
        self.wait_until_healthy()

    def kill(self, number: int) -> None:
        """End a server as a power cut would."""
        server = self._servers[number]
        assert server is not None, f"server {number} does not run"
        server.process.kill()
        server.process.wait()
        self._servers[number] = None

    def restart(self, number: int) -> None:
        """Bring back a server that was killed, and wait until it has caught up."""
        assert self._servers[number] is None, f"server {number} runs"
        self._servers[number] = self._start(number)
        self.wait_until_healthy()

    def stop(self) -> None:
        for server in self._servers:
            if server is not None:
                server.process.kill()
                server.process.wait()
        self._servers = [None] * SIZE

    def leader_of(self, stream: str) -> int:
        """Return the number of the server that leads a stream; waits for an election that is under way."""
        deadline = time.monotonic() + HEALTHY_S_MAX
        while time.monotonic() < deadline:
            for number in self.running:
                leader = self._leader_seen_by(number, stream)
                if leader in [f"node{each}" for each in self.running]:
                    return int(leader.removeprefix("node"))
            time.sleep(POLL_S)
        raise TimeoutError(f"{stream} has no leader after {HEALTHY_S_MAX} s")

    def wait_until_healthy(self) -> None:
        deadline = time.monotonic() + HEALTHY_S_MAX
        waiting = set(self.running)
        while waiting:
            waiting = {number for number in waiting if not self._is_healthy(number)}
            if waiting and time.monotonic() > deadline:
                logs = "\n".join(server.log()[-2000:] for server in self._servers if server is not None)
                raise TimeoutError(f"servers {sorted(waiting)} are not healthy after {HEALTHY_S_MAX} s:\n{logs}")
            if waiting:
                time.sleep(POLL_S)

    def _start(self, number: int) -> ServerProcess:
        folder = self._folder / f"node{number}"
        folder.mkdir(parents=True, exist_ok=True)
        config = folder / "server.conf"
        config.write_text(
            CONFIGURATION.format(
                number=number,
                client=self._clients[number],
                monitor=self._monitors[number],
                route=self._routes[number],
                routes=", ".join(f'"nats://127.0.0.1:{port}"' for port in self._routes),
                store=folder / "store",
                domain=f", domain: {self._domain}" if self._domain else "",
                leaf=self.leaf_ports[number],
            )
        )
        server = ServerProcess("nats-server", folder, ["-c", str(config)])
        try:
            server.wait_until_ready()
        except BaseException:
            server.stop()
            raise
        return server

    def _is_healthy(self, number: int) -> bool:
        server = self._servers[number]
        assert server is not None
        assert server.process.poll() is None, f"server {number} ended:\n{server.log()}"
        status = self._page(number, "healthz")
        meta = (self._page(number, "jsz") or {}).get("meta_cluster") or {}
        return bool(status and status.get("status") == "ok" and meta.get("leader") and meta.get("cluster_size") == SIZE)

    def _leader_seen_by(self, number: int, stream: str) -> str:
        page = self._page(number, "jsz?accounts=true&streams=true") or {}
        for account in page.get("account_details") or []:
            for detail in account.get("stream_detail") or []:
                if detail["name"] == stream:
                    return str((detail.get("cluster") or {}).get("leader", ""))
        return ""

    def _page(self, number: int, path: str) -> dict[str, Any] | None:
        try:
            url = f"http://127.0.0.1:{self._monitors[number]}/{path}"
            with urllib.request.urlopen(url, timeout=HTTP_S_MAX) as page:
                return dict(json.load(page))
        except (OSError, ValueError):
            # An unhealthy server answers with 503.
            return None


@contextmanager
def start_cluster(folder: Path, domain: str = "") -> Iterator[Cluster]:
    """Start a cluster with its stores below `folder`, and end it."""
    cluster = Cluster(folder, domain)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback address that nobody listens on; they must be known before a server starts."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
