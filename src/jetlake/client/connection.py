"""`connect`: one asynchronous client connection, made by the ecosystem's own library.

Jetlake speaks the protocol every NATS client speaks, so it brings no client of its own: what is returned is nats-py's
`Client`, and all of its documentation applies.

Invariant: a first connection that fails does so at once, with the cause; only one that was there reconnects.
"""

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from jetlake.client.first_connect import first_connect

if TYPE_CHECKING:
    from nats.aio.client import Client

__all__ = ["DEFAULT_URL", "HasUrl", "connect", "flush", "login_of"]

DEFAULT_URL = "nats://127.0.0.1:4222"

FLUSH_S_MAX = 10
"""How long a server may take to answer a PING, unless the caller says otherwise."""

LOGIN_HINT = "Pass `user` and `password`, or `token`."

RECONNECTION = {
    "allow_reconnect": True,
    "max_reconnect_attempts": 60,
    "reconnect_time_wait": 2,
    "dont_randomize": False,
}
"""How nats-py reconnects by default."""


class HasUrl(Protocol):
    """Something with an address to connect to, such as `jetlake.Server`."""

    @property
    def url(self) -> str: ...


@runtime_checkable
class HasLogin(Protocol):
    """Something that knows what its clients must present."""

    def login(self) -> dict[str, str]: ...


async def connect(server: str | list[str] | HasUrl = DEFAULT_URL, **options: Any) -> "Client":
    """Connect to a server by URL, by several URLs, or to a running `jetlake.Server`, whose credentials are used.

    The options are those of `nats.connect`: `user`, `password`, `token`, `name`, `error_cb` and so on.
    Raises `ClientError` at once when no server answers or the credentials are refused; a connection that was there
    reconnects by itself, as `allow_reconnect`, `max_reconnect_attempts` and `reconnect_time_wait` say. With `tls`, or
    an address that begins with tls://, nothing is sent in the clear.

    >>> connection = await jetlake.connect(server)
    >>> await connection.publish("greeting", b"hello")
    """
    from jetlake.client.guarded import GuardedClient

    address = server if isinstance(server, str | list) else server.url
    addresses = [address] if isinstance(address, str) else address
    given = (login_of(server) if not isinstance(server, str | list) else {}) | options
    on_error = given.pop("error_cb", None)
    wants_tls = "tls" in given or any(each.startswith("tls://") for each in addresses)
    return await first_connect(
        lambda: GuardedClient(wants_tls=wants_tls),
        addresses,
        given,
        later={name: given.get(name, default) for name, default in RECONNECTION.items()},
        on_error=on_error,
        login_hint=LOGIN_HINT,
    )


def login_of(server: HasUrl) -> dict[str, str]:
    """Return what clients of a server must present, if it says so: `user` and `password`, or `token`."""
    return server.login() if isinstance(server, HasLogin) else {}


async def flush(connection: "Client", timeout_s: int = FLUSH_S_MAX) -> None:
    """Wait until the server has everything that was sent. Raises what nats-py raises."""
    # nats-py may write a PING before what is pending; while the first is answered, the rest goes out.
    for _ in range(2):
        await connection.flush(timeout=timeout_s)
