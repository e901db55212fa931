"""`SessionApi`: the NATS connection of one session, shared by all of its pages.

A server does not answer a request that its user may not send: it reports a permissions violation beside. Here that
report ends the request at once, with a sentence, instead of a time-out.

Invariant: one connection per session. It reconnects by itself and is closed with the session.
"""

import asyncio
import re
from collections import deque
from collections.abc import Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec

from jetlake.client.access import Access, connect
from jetlake.client.api import CLOSE_S_MAX, Api
from jetlake.errors import ClientError

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

__all__ = ["PermissionRefusedError", "SessionApi"]

T = TypeVar("T")

GATHER_S = 0.4
"""How long answers of several servers are collected when it is not known how many there are."""

GATHER_MAX = 256
"""Answers to one question: more servers than any cluster has."""

_VIOLATION = re.compile(r'permissions violation for (publish|subscription) to "([^"]+)"', re.IGNORECASE)


class PermissionRefusedError(ClientError):
    """Is raised when the user of a session may not do what a page needs."""


class SessionApi(Api):
    """The requests of one user, who may not be allowed to make all of them."""

    def __init__(self, connection: "Client", access: Access) -> None:
        # What the server reports is taken up below; a report that is kept would be shown for the wrong request.
        super().__init__(connection, access, deque(maxlen=0))
        self._waiting: dict[str, set[asyncio.Future[str]]] = {}
        # How many servers have answered a question last time.
        self._servers_of: dict[str, int] = {}

    @classmethod
    async def open(cls, access: Access) -> Self:
        """Connect as the user of `access`. Raises `ClientError`."""
        opened: list[Self] = []

        def on_error(error: Exception) -> None:
            for api in opened:
                api.report(str(error))

        opened.append(cls(await connect(access, reconnect=True, on_error=on_error), access))
        return opened[0]

    @property
    def server_info(self) -> dict[str, Any]:
        """What the server has said of itself in INFO; nats-py keeps it and shows little of it."""
        return dict(getattr(self.connection, "_server_info", {}))

    async def ask(
        self, subject: str, payload: bytes, *, headers: dict[str, str] | None = None, timeout_s: float | None = None
    ) -> dict[str, Any]:
        """Send a request; raises `PermissionRefusedError` as soon as the server reports that the user may not."""
        return await self.until_refused(super().ask(subject, payload, headers=headers, timeout_s=timeout_s), subject)

    async def until_refused(self, work: Coroutine[Any, Any, T], *subjects: str) -> T:
        """Do what publishes to subjects by other ways than `ask`, such as a put into a bucket.

        Raises `PermissionRefusedError` as soon as the server reports that the user may not publish to one of them; a
        subject may end with `>`.
        """
        refusal: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        for subject in subjects:
            self._waiting.setdefault(subject, set()).add(refusal)
        working = asyncio.ensure_future(work)
        try:
            waited: set[asyncio.Future[Any]] = {working, refusal}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if refusal.done() and not working.done():
                raise PermissionRefusedError(refusal.result())
            return await working
        finally:
            working.cancel()
            for subject in subjects:
                waiting = self._waiting[subject]
                waiting.discard(refusal)
                if not waiting:
                    del self._waiting[subject]

    def report(self, text: str) -> None:
        """Take what the server has reported without being asked, and end the requests that it is about."""
        found = _VIOLATION.search(text)
        if found is None:
            return
        what, subject = found[1].lower(), found[2]
        for name, futures in list(self._waiting.items()):
            if what == "publish":
                if not _covers(name, subject):
                    continue
                told = (
                    f"Your user may not publish to {_written_as(name, subject)}, which this needs. Ask for the "
                    "permission, or log in as another user."
                )
            else:
                told = f"Your user may not subscribe to {subject}, so replies cannot arrive. Ask for the permission."
            for future in futures:
                if not future.done():
                    future.set_result(told)

    async def gather(self, subject: str, body: object | None = None) -> list[dict[str, Any]]:
        """Ask all servers and return their answers; empty if none answers or the user may not ask."""
        answers: list[dict[str, Any]] = []
        expected = self._servers_of.get(subject, GATHER_MAX)
        is_complete = asyncio.Event()

        async def collect(message: "Msg") -> None:
            with suppress(msgspec.DecodeError, UnicodeDecodeError):
                # The server answers with an empty body when there is no subscriber.
                answers.append(msgspec.json.decode(message.data, type=dict[str, Any]))
            if len(answers) >= expected or not message.data:
                is_complete.set()

        inbox = self.connection.new_inbox()
        subscription = await self.connection.subscribe(inbox, cb=collect)
        try:
            payload = b"" if body is None else msgspec.json.encode(body)
            await self.connection.publish(subject, payload, reply=inbox)
            with suppress(TimeoutError):
                await asyncio.wait_for(is_complete.wait(), GATHER_S)
        finally:
            with suppress(Exception):
                await subscription.unsubscribe()
        if answers:
            self._servers_of[subject] = len(answers)
        else:
            self._servers_of.pop(subject, None)
        return answers

    async def close(self) -> None:
        """Close the connection; a server that is gone must not hold up the end of a session."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.connection.close(), CLOSE_S_MAX)


def _covers(name: str, subject: str) -> bool:
    # Some readers of the connection report everything in small letters.
    name, subject = name.lower(), subject.lower()
    return subject.startswith(name[:-1]) if name.endswith(">") else subject == name


def _written_as(name: str, subject: str) -> str:
    """Return a reported subject in the letters of the one that was asked for."""
    return name[:-1] + subject[len(name) - 1 :] if name.endswith(">") else name
