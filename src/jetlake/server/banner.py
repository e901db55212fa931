"""The lines a server prints while it starts: those of nats-server today and those of its first JetStream releases.

Test suites wait for some of these lines and read ports and folders out of them; both generations are served by one
list, in an order that suits both.
"""

import os

from jetlake.shared.listener_urls import join_address

STORE_SUBDIRECTORY = "jetstream"

SHARE_OF_MEMORY = 0.75
SHARE_OF_FREE_DISK = 0.75

STORAGE_BYTES_WHEN_UNKNOWN = 1 << 40

API_LEVEL = 5

PLAIN_WEBSOCKET_WARNING = "Websocket not configured with TLS. DO NOT USE IN PRODUCTION!"

HANDSHAKE_FIRST_WARNING = 'Clients that are not using "TLS Handshake First" option will fail to connect'

READY_LINE = "Server is ready"
"""The last one: everything that others wait for is there, files included."""


def version_lines(*, version: str, git_commit: str) -> list[str]:
    """Return the first lines: which program this is."""
    return [
        f"Starting nats-server version {version}",
        f"Git commit [{git_commit}]",
        f"  Version:  {version}",
        f"  Git:      [{git_commit}]",
    ]


def identity_lines(*, server_name: str, server_id: str) -> list[str]:
    """Return the lines that say which server this is."""
    return [
        f"  Name:     {server_name or server_id}",
        f"  ID:       {server_id}",
    ]


def jetstream_lines(*, store_path: str, memory_bytes_max: int, storage_bytes_max: int) -> list[str]:
    """Return the box that says what JetStream may use."""
    return [
        "----------- JETSTREAM (Beta) -----------",
        "  Strict:          true",
        f"  Max Memory:      {readable_bytes(memory_bytes_max)}",
        f"  Max Storage:     {readable_bytes(storage_bytes_max)}",
        f'  Store Directory: "{store_path}"',
        f"  API Level:       {API_LEVEL}",
        "----------------------------------------",
    ]


def listening_lines(*, host: str, port: int, server_id: str) -> list[str]:
    """Return the lines that say where clients may come."""
    return [
        f"Listening for client connections on {join_address(host, port)}",
        f"Server id is {server_id}",
    ]


def websocket_line(*, scheme: str, host: str, port: int) -> str:
    """Return the line that says where WebSocket clients may come."""
    return f"Listening for websocket clients on {scheme}://{join_address(host, port)}"


def leaf_line(*, host: str, port: int) -> str:
    """Return the line that says where leaf nodes may come."""
    return f"Listening for leafnode connections on {join_address(host, port)}"


def tls_line(*, plain_allowed: bool) -> str:
    """Return the line that says how clients must come."""
    return f"TLS {'available' if plain_allowed else 'required'} for client connections"


def memory_bytes_max() -> int:
    """Return how much memory JetStream uses by default."""
    return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * SHARE_OF_MEMORY)


def storage_bytes_max(directory: str) -> int:
    """Return how much of the disk below this folder JetStream uses by default."""
    try:
        disk = os.statvfs(directory)
    except OSError:
        return STORAGE_BYTES_WHEN_UNKNOWN
    return int(disk.f_bavail * disk.f_frsize * SHARE_OF_FREE_DISK)


def readable_bytes(count: int) -> str:
    """Return a size as nats-server writes it: `17.65 GB`, in powers of 1024."""
    if count < 1024:
        return f"{count} B"
    size = float(count)
    for unit in "KMGTP":
        size /= 1024
        if size < 1024:
            return f"{size:.2f} {unit}B"
    return f"{size / 1024:.2f} EB"
