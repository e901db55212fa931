"""nats-py's client, made to keep what was asked for: with TLS wanted, nothing is sent in the clear.

nats-py itself encrypts when the server requires it, and sends credentials unencrypted to a server that does not, even
to one that was put there to hear them.

It also reports refusals in lower case only; here a subject that is not permitted keeps its case.

Invariant: once TLS is wanted, CONNECT goes out encrypted or not at all.
"""

from typing import Any

from nats.aio.client import Client
from nats.errors import Error

PERMISSIONS = "permissions violation"


class GuardedClient(Client):
    """A client that refuses a server without TLS when TLS is wanted."""

    def __init__(self, *, wants_tls: bool) -> None:
        super().__init__()
        self._wants_tls = wants_tls

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        if initial_connection and self._wants_tls and not info.get("tls_required"):
            if not info.get("tls_available"):
                raise Error("TLS is wanted, and the server has none")
            # It leaves the choice to its clients; this is ours.
            info["tls_required"] = True
        await super()._process_info(info, initial_connection)

    async def _process_err(self, err_msg: str) -> None:
        if PERMISSIONS not in err_msg:
            await super()._process_err(err_msg)
            return
        # The parser has lowered it, and has not yet removed the line from its buffer.
        line = (
            bytes(getattr(self._ps, "buf", b""))
            .partition(b"\r\n")[0]
            .removeprefix(b"-ERR")
            .decode(errors="replace")
            .strip()
        )
        text = line if line.lower() == err_msg else err_msg
        self._err = Error(text.strip("'"))
        await self._error_cb(self._err)
