"""`connect`: one asynchronous client connection, made by the ecosystem's own library.

Jetlake speaks the protocol every NATS client speaks, so it brings no client of its own: what is returned is nats-py's
`Client`, and all of its documentation applies.
"""

from typing import TYPE_CHECKING, Any, Protocol

from jetlake.errors import ClientError

if TYPE_CHECKING:
    from nats.aio.client import Client

DEFAULT_URL = "nats://127.0.0.1:4222"


class HasUrl(Protocol):
    """Something with an address to connect to, such as `jetlake.Server`."""

    @property
    def url(self) -> str: ...


async def connect(server: str | list[str] | HasUrl = DEFAULT_URL, **options: Any) -> "Client":
    """Connect to a server by URL, by several URLs, or to a running `jetlake.Server`.

    The options are those of `nats.connect`: `user`, `password`, `token`, `name`, `error_cb` and so on.
    Raises `ClientError` when no server answers or the credentials are refused. With `tls`, or an address that begins
    with tls://, nothing is said in the clear.

    >>> connection = await jetlake.connect(server)
    >>> await connection.publish("greeting", b"hello")
    """
    from nats.errors import Error

    from jetlake.client.guarded import GuardedClient

    address = server if isinstance(server, str | list) else server.url
    addresses = [address] if isinstance(address, str) else address
    client = GuardedClient(wants_tls="tls" in options or any(each.startswith("tls://") for each in addresses))
    try:
        await client.connect(address, **options)
    except (Error, OSError) as error:
        # A refused client keeps its socket until it is closed.
        await client.close()
        raise ClientError(
            f"cannot connect to {address}: {str(error) or type(error).__name__}; "
            "check that a server runs there and that the credentials are right"
        ) from error
    return client
