"""How much memory a server needs for a connection that said CONNECT and nothing else."""

import socket
import time

from benchmarks.servers import BenchmarkError, ServerProcess, connected

SETTLE_S = 1.0
"""Collectors and allocators may give something back; they get this long."""


def bytes_per_connection(server: ServerProcess, connections: int, open_files_max: int) -> float:
    """Open that many connections and return what the server's memory grew by, per connection."""
    if connections + 100 > open_files_max:
        raise BenchmarkError(
            f"{connections} connections need as many open files, {open_files_max} are allowed; "
            "raise the hard limit, see `ulimit -Hn`"
        )
    before = server.memory_bytes()
    clients: list[socket.socket] = []
    try:
        clients.extend(connected(server.port) for _ in range(connections))
        time.sleep(SETTLE_S)
        return (server.memory_bytes() - before) / connections
    finally:
        for client in clients:
            client.close()
