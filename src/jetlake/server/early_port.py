"""The client port, taken before anything else is loaded.

Loading a server takes longer than a client waits that lost its server and reconnects. So a process listens as soon as
it has read its command line, and the address in its configuration file; clients that come early wait in the queue of
the operating system, and the engine takes the socket over.

Invariant: nothing imported from here takes time unless there is a file to read. An address is never guessed: if it is
not known yet, the engine opens the port, a little later.
"""

import _socket
from errno import EADDRINUSE

from jetlake.server import flags
from jetlake.server.addresses import DEFAULT_HOST, PORT_MAX, port_of

BACKLOG = 4096
"""Clients that may wait until the engine is there: as many as later."""

ENDS_AT_ONCE = ("version", "help", "help_tls", "t", "signal")
"""With one of these flags no server is started."""

_early: "tuple[str, int, _socket.socket] | None" = None


def listen(arguments: list[str]) -> None:
    """Listen where the command line of a server says, if it does; a port that is taken is the engine's to report."""
    global _early  # noqa: PLW0603 - a process has one command line
    try:
        parsed = flags.parse(arguments)
    except flags.FlagError:
        return
    given = parsed.values
    if parsed.words or any(given.get(name) for name in ENDS_AT_ONCE):
        return
    host, port = parsed.text("addr") or DEFAULT_HOST, port_of(parsed.number("port"))
    if given.get("config") and not ("addr" in given and "port" in given):
        # Only here: a server without a file loads nothing for it.
        from jetlake.server.configuration.address import address_in

        found = address_in(parsed.text("config"))
        if found is None:
            return
        host, port = host if "addr" in given else found[0], port if "port" in given else found[1]
    if not 0 < port <= PORT_MAX:
        # A random one is not known before the server has reported it, and one that cannot be is refused later.
        return
    try:
        _early = (host, port, _open(host, port))
    except (OSError, UnicodeError):
        return


def hand_over(host: str, port: int) -> int | None:
    """Return the descriptor of a socket that listens there, now owned by the caller; None if there is none."""
    global _early
    early, _early = _early, None
    if early is None:
        return None
    early_host, early_port, socket = early
    if (early_host, early_port) != (host, port):
        socket.close()
        return None
    return socket.detach()


def _open(host: str, port: int) -> _socket.socket:
    """Listen as the engine would: the wildcard address means both kinds of addresses, where the machine has both."""
    if host == DEFAULT_HOST:
        try:
            return _listening(_socket.AF_INET6, ("::", port))
        except OSError as error:
            if error.errno == EADDRINUSE:
                raise
    # As bytes: a text would have Python load what names in other alphabets need.
    found = _socket.getaddrinfo(host.encode("ascii"), port, 0, _socket.SOCK_STREAM)
    family, _, _, _, address = found[0]
    return _listening(family, address)


def _listening(family: int, address: tuple[object, ...]) -> _socket.socket:
    socket = _socket.socket(family, _socket.SOCK_STREAM)
    try:
        if family == _socket.AF_INET6:
            socket.setsockopt(_socket.IPPROTO_IPV6, _socket.IPV6_V6ONLY, 0)
        socket.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
        socket.bind(address)
        socket.listen(BACKLOG)
    except OSError:
        socket.close()
        raise
    return socket
