"""The first connection of a client: made at once or refused at once, with the cause in plain words.

nats-py treats the first connection like any other: it tries sixty times over two minutes, logs a traceback for each
attempt, and ends with "no servers available". Here each server is tried once.

Invariant: the error that is raised names the address, the cause and what to do. A client that was refused is closed.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from jetlake.errors import ClientError, reason_of

if TYPE_CHECKING:
    from nats.aio.client import Client

__all__ = ["ONCE", "first_connect", "without_secrets"]

PROBE_S_MAX = 1.0
"""How long the look at a silent port may take: a server of NATS greets at once."""

DEFAULT_PORT = 4222
MONITORING_PORT = 8222

ONCE = {"allow_reconnect": False, "max_reconnect_attempts": 1, "reconnect_time_wait": 0, "dont_randomize": True}
"""Options of nats-py under which it gives up after one attempt."""

LOG = logging.getLogger("jetlake.client")

OnError = Callable[[Exception], Awaitable[None]]


async def first_connect(
    make_client: "Callable[[], Client]",
    urls: Sequence[str],
    options: dict[str, Any],
    *,
    later: dict[str, Any],
    on_error: OnError | None = None,
    login_hint: str,
) -> "Client":
    """Connect to the first of these servers that accepts. Raises `ClientError` when none does.

    `later` are the options of nats-py that hold once the connection is there, such as `allow_reconnect`. `on_error`
    receives what the server reports then; without it such reports are logged, one line each.
    """
    from nats.errors import Error

    failure: BaseException = ClientError("no server is named")
    failed_url = ""
    for number, url in enumerate(urls):
        client = make_client()
        is_connected = False
        causes: list[Exception] = []

        async def report(error: Exception, causes: list[Exception] = causes) -> None:
            if not is_connected:  # noqa: B023 - of the attempt that is under way
                causes.append(error)
            elif on_error is not None:
                await on_error(error)
            else:
                LOG.warning("the connection reports: %s", str(error) or type(error).__name__)

        cancellations = _cancellations()
        try:
            # The other servers follow, for a reconnection.
            servers = [*urls[number:], *urls[:number]]
            await client.connect(servers, **{**options, **ONCE, "error_cb": report})
        except (Error, OSError, TimeoutError) as error:
            # A refused client keeps its socket until it is closed.
            await client.close()
            _check_cancelled(cancellations)
            # "No servers available" says nothing; what was reported before it does.
            failure, failed_url = (causes[0] if causes else error), url
        else:
            if _cancellations() > cancellations:
                await client.close()
            _check_cancelled(cancellations)
            is_connected = True
            client.options |= later
            return client
    text = await _explain(failed_url, failure, login_hint)
    shown = ", ".join(without_secrets(each) for each in urls)
    several = f" (tried {shown})" if len(urls) > 1 else ""
    raise ClientError(f"cannot connect to {without_secrets(failed_url)}: {text}{several}") from failure


def _cancellations() -> int:
    """Return how often the task that runs has been cancelled."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


def _check_cancelled(before: int) -> None:
    """Raise what the library has swallowed: a task that was cancelled while it connected must end."""
    if _cancellations() > before:
        raise asyncio.CancelledError


async def _explain(url: str, failure: BaseException, login_hint: str) -> str:
    """Return why a connection failed, and what to do."""
    address = urlsplit(url)
    host, port = address.hostname or "", address.port or DEFAULT_PORT
    words = str(failure).strip("'\" ") or type(failure).__name__
    if "authorization violation" in words.lower() or "authentication" in words.lower():
        return f"The server rejected the login. {login_hint}"
    if isinstance(failure, ConnectionRefusedError):
        return f"Nothing is listening at {host}:{port}. Start a server with `jetlake dev`."
    if isinstance(failure, socket.gaierror):
        return f"There is no host named {host}. Check the address."
    if "TLS" in words or "certificate" in words.lower():
        return words
    if await _is_something_else(host, port):
        question = " Is it the monitoring port?" if port == MONITORING_PORT else " Check the port."
        return f"Port {port} answers, but not as a NATS server.{question}"
    if isinstance(failure, TimeoutError):
        return f"{host}:{port} does not answer. Check the address, and that no firewall is in between."
    if isinstance(failure, OSError):
        words = reason_of(failure)
    return f"{words}. Check the address and the server's log."


async def _is_something_else(host: str, port: int) -> bool:
    """Tell whether a port accepts connections and does not greet as a server of NATS does."""
    try:
        async with asyncio.timeout(PROBE_S_MAX):
            reader, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return False
    greeting = b""
    try:
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
            async with asyncio.timeout(PROBE_S_MAX):
                greeting = await reader.readexactly(len(b"INFO "))
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
    return greeting != b"INFO "


def without_secrets(url: str) -> str:
    """Return an address without user name, password and token."""
    scheme, separator, rest = url.rpartition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"
