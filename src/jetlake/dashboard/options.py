"""`DashboardOptions`: the options of a dashboard at its start, checked once.

Invariant: `server` carries no login. Credentials that were given on the command line are in `given` alone, which only
the key that the terminal shows opens.
"""

import ipaddress
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from jetlake.client.access import Access
from jetlake.client.first_connect import without_secrets
from jetlake.errors import ConfigurationError

__all__ = ["DEFAULT_PORT", "DashboardOptions"]

DEFAULT_PORT = 8280
"""Beside the monitoring pages (8222), and not in use by NATS' own tools."""

PORT_MAX = 65_535

_CREDENTIALS = ("user", "password", "token", "credentials", "nkey")


class DashboardOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where the dashboard listens, which server it is for, and what it refuses."""

    given: Access
    host: str = "127.0.0.1"
    # 0 takes a free one.
    port: int = DEFAULT_PORT
    read_only: bool = False
    # Monitoring pages of the server, for the figures that NATS does not carry.
    monitor_url: str = ""
    # Names under which browsers may reach a dashboard that does not listen on loopback.
    allowed_hosts: tuple[str, ...] = ()
    # Folder of lake tables and pipelines; everybody who has a session may read them.
    lake: Path | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.port <= PORT_MAX:
            raise ConfigurationError(f"--port is {self.port}: give a number from 0 to {PORT_MAX}")
        if self.lake is not None and not self.lake.is_dir():
            raise ConfigurationError(
                f"--lake is {self.lake}, which is not a folder: give the one that pipelines write to"
            )
        if self.monitor_url and urlsplit(self.monitor_url).scheme not in ("http", "https"):
            raise ConfigurationError(f"--monitor is {self.monitor_url!r}: write http://host:8222")

    @property
    def server(self) -> Access:
        """How the server is reached by those who log in themselves: the address and TLS, without a login."""
        urls = ",".join(without_secrets(url) for url in self.given.urls)
        return msgspec.structs.replace(self.given, url=urls, **dict.fromkeys(_CREDENTIALS))

    @property
    def has_login(self) -> bool:
        """Whether the command line, a variable or the context carries credentials."""
        return any(getattr(self.given, field) is not None for field in _CREDENTIALS) or any(
            "@" in url for url in self.given.urls
        )

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the dashboard."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False
