"""`PreviewClient`: requests in the dialects of 2019 and 2020, as the tools of those years made them.

Answers to a pull come with the subject of the message and not with that of the inbox, so every request has an inbox of
its own. A request without a responder times out, as it did before clients could be told.
"""

import asyncio
import secrets
import string
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from jetlake.client.connection import connect, flush
from jetlake.errors import ClientError

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

INBOX_LETTERS = 22
TOKEN_LETTERS = 8
NO_RESPONDERS = "503"
_ALPHABET = string.ascii_letters + string.digits


class PreviewReply(msgspec.Struct, frozen=True, kw_only=True):
    """What came back: on which subject, with what, and where to answer it."""

    subject: str
    reply: str
    data: bytes


class PreviewTimeoutError(Exception):
    """Is raised when nobody has answered."""


class PreviewClient:
    """One connection, to be used with `async with`."""

    def __init__(self, url: str, credentials: str = "") -> None:
        self._url = url
        self._credentials = credentials
        self._client: Client | None = None
        # Set when the connection has ended, by either side.
        self.closed = asyncio.Event()

    @property
    def client(self) -> "Client":
        """The connection itself."""
        assert self._client is not None, "it is used inside of `async with`"
        return self._client

    async def __aenter__(self) -> Self:
        options: dict[str, Any] = {
            "allow_reconnect": False,
            "connect_timeout": 2,
            # A tool that is run by hand says at once that nobody is there.
            "max_reconnect_attempts": 1,
            "reconnect_time_wait": 0,
        }
        if self._credentials:
            options["user_credentials"] = self._credentials
        self._client = await connect(self._url, error_cb=_overlook, closed_cb=self._close, **options)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.client.close()

    async def _close(self) -> None:
        self.closed.set()

    async def publish(self, subject: str, body: bytes, reply: str = "") -> None:
        """Send a message, and wait until the server has it."""
        from nats.errors import Error

        try:
            await self.client.publish(subject, body, reply=reply)
            await flush(self.client)
        except Error as error:
            raise ClientError(
                f"cannot publish to {subject!r}: {error}; check the subject and the permissions"
            ) from error

    async def request(self, subject: str, body: bytes = b"", *, timeout_s: float = 2.0) -> PreviewReply:
        """Ask, and return the first answer. Raises `PreviewTimeoutError`."""
        inbox = f"_INBOX.{_letters(INBOX_LETTERS)}.{_letters(TOKEN_LETTERS)}"
        answers: asyncio.Queue[Msg] = asyncio.Queue(maxsize=1)

        async def keep(message: "Msg") -> None:
            if answers.empty():
                answers.put_nowait(message)

        subscription = await self.client.subscribe(inbox, cb=keep)
        try:
            await self.publish(subject, body, reply=inbox)
            message = await asyncio.wait_for(answers.get(), timeout_s)
        except TimeoutError:
            raise PreviewTimeoutError from None
        finally:
            await subscription.unsubscribe()
        if not message.data and (message.headers or {}).get("Status") == NO_RESPONDERS:
            raise PreviewTimeoutError
        return PreviewReply(subject=message.subject, reply=message.reply, data=message.data)


async def _overlook(_error: Exception) -> None:
    """What goes wrong is raised where it was asked for; it is not printed as well."""


def _letters(count: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(count))
