"""`Listeners`: where a running server listens for clients, and the addresses by which others find it.

Invariant: a port of these options that was 0 is shown as the one that the operating system chose.
"""

from typing import TYPE_CHECKING, Protocol

from jetlake.server import banner, files
from jetlake.server.options import LeafListenerOptions, ServerOptions
from jetlake.shared.listener_urls import WILDCARD_HOSTS, join_address, urls_of_listener

if TYPE_CHECKING:
    from jetlake.server.log import Log

LOOPBACK = "127.0.0.1"

LEAF_SCHEME = "nats-leaf"
"""Of the listener for leaf nodes, with TLS or without: the hub tells which when it is connected to."""


class Addresses(Protocol):
    """What of the engine is asked; `jetlake._engine.Engine` has it."""

    @property
    def server_id(self) -> str: ...
    @property
    def address(self) -> tuple[str, int]: ...
    @property
    def websocket_address(self) -> tuple[str, int] | None: ...
    @property
    def leaf_address(self) -> tuple[str, int] | None: ...


class Listeners:
    """The listeners of one engine, by the options it was made with."""

    def __init__(self, engine: Addresses, options: ServerOptions) -> None:
        self._engine = engine
        self._options = options

    @property
    def port(self) -> int:
        return self._engine.address[1]

    @property
    def websocket_port(self) -> int:
        """The port for WebSocket clients; 0 if there is none."""
        address = self._engine.websocket_address if self._options.websocket is not None else None
        return 0 if address is None else address[1]

    @property
    def leaf_port(self) -> int:
        """The port for leaf nodes; 0 if there is none."""
        address = self._engine.leaf_address if self._leaf_listener is not None else None
        return 0 if address is None else address[1]

    def url(self, scheme: str = "nats") -> str:
        """Where a client on this machine connects to. Credentials are not part of it."""
        return f"{scheme}://{_reachable(self._options.host, self.port)}"

    @property
    def websocket_url(self) -> str:
        """Where a WebSocket client on this machine connects to; empty if there is no such listener."""
        websocket = self._options.websocket
        if websocket is None:
            return ""
        return f"{websocket.scheme}://{_reachable(websocket.listen_host, self.websocket_port)}"

    @property
    def leaf_url(self) -> str:
        """Where a leaf node on this machine connects to; empty if there is no such listener."""
        listener = self._leaf_listener
        return "" if listener is None else f"{LEAF_SCHEME}://{_reachable(listener.listen_host, self.leaf_port)}"

    def tell(self, log: "Log") -> None:
        """Write the lines that say where clients may connect, and what they must mind."""
        websocket, tls = self._options.websocket, self._options.tls
        if websocket is not None:
            log.info(
                banner.websocket_line(scheme=websocket.scheme, host=websocket.listen_host, port=self.websocket_port)
            )
            if websocket.tls is None:
                log.warning(banner.PLAIN_WEBSOCKET_WARNING)
        if self._leaf_listener is not None:
            log.info(banner.leaf_line(host=self._leaf_listener.listen_host, port=self.leaf_port))
        for line in banner.listening_lines(host=self._options.host, port=self.port, server_id=self._engine.server_id):
            log.info(line)
        if tls is not None:
            always_first = tls.handshake_first_ms == 0
            log.info(banner.tls_line(plain_allowed=tls.allow_plain and not always_first))
            if always_first:
                log.warning(banner.HANDSHAKE_FIRST_WARNING)

    def ports(self, monitoring: list[str]) -> files.Ports:
        """Return the content of the ports file; `monitoring` are the URLs of the pages."""
        websocket, listener = self._options.websocket, self._leaf_listener
        return files.Ports(
            nats=urls_of_listener("nats", self._options.host, self.port),
            monitoring=monitoring,
            websocket=[]
            if websocket is None
            else urls_of_listener(websocket.scheme, websocket.listen_host, self.websocket_port),
            leafnodes=[] if listener is None else urls_of_listener(LEAF_SCHEME, listener.listen_host, self.leaf_port),
        )

    @property
    def _leaf_listener(self) -> LeafListenerOptions | None:
        return None if self._options.leaf is None else self._options.leaf.listener


def _reachable(host: str, port: int) -> str:
    return join_address(LOOPBACK if host in WILDCARD_HOSTS else host, port)
