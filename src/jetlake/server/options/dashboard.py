"""The dashboard that a server runs as a process of its own."""

import msgspec

WORDS = ("dashboard", "--hosted")
"""What the process runs. It is named and not imported: the server knows nothing of what is built on NATS."""

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8280


class HostedDashboardOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where it listens, and how it reaches the server. They cross to the process as one JSON object."""

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    read_only: bool = False
    allowed_hosts: tuple[str, ...] = ()
    # Empty = this server, on the loopback address.
    url: str = ""
    authority_file: str = ""
    # Of the server's own pages; empty when it serves none.
    monitor_url: str = ""
    # The folder with the tables of pipelines; empty = there is none.
    lake: str = ""

    @property
    def address(self) -> str:
        """Where browsers on this machine find it."""
        host = DEFAULT_HOST if self.host in ("0.0.0.0", "::") else self.host  # noqa: S104 - compared, not bound
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}/"
