"""`Api`: the JetStream API of one server, over one connection.

```python
async with open_api(access) as api:
    info = await api.request("STREAM.INFO.ORDERS")
    for stream in await api.streams():
        ...
```

Every method raises `ApiError` when the server refuses and `ClientError` when it does not answer.
"""

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec

from jetlake.client.access import Access, access_of, connect, resolve
from jetlake.client.connection import DEFAULT_URL, HasUrl, flush
from jetlake.errors import ApiError, ClientError

if TYPE_CHECKING:
    from nats.aio.client import Client

NOT_FOUND = 404
"""HTTP's own number, in the answer of the API."""

COMPLAINTS_MAX = 10
"""The last of what a server says without being asked; nobody reads more."""

PAGES_MAX = 100_000
"""Pages of one list: a server whose total never ends must not keep us for ever."""

PATIENCE_S = 30.0
"""An election in a cluster takes some ten seconds; a server that stays away longer is reported."""

PAUSE_S = 0.2
"""Between two attempts."""

TEMPORARY = (10008, 10009)
"""Refusals while a cluster has no leader, and while it cannot reach enough servers."""

JETSTREAM = "$JS."
"""How the subjects of JetStream's API begin, unless a prefix of one's own is used."""

CLOSE_S_MAX = 2.0
"""For what is written and not yet sent; a server that is gone takes nothing any more."""


class Api:
    """The requests of one account of one server."""

    def __init__(self, connection: "Client", access: Access, complaints: deque[str]) -> None:
        self.connection = connection
        self.access = access
        # What the server said without being asked, such as that a publish is not permitted.
        self.complaints = complaints
        # The request that was refused last, and its body.
        self.refused: tuple[str, object] = ("", None)
        # Called with every request and its answer.
        self.on_exchange: Callable[[str, bytes, bytes], None] | None = None

    async def flush(self) -> None:
        """Wait until the server has seen everything that was sent. Raises `ClientError` if it complains of it."""
        from nats.errors import Error

        try:
            await flush(self.connection, math.ceil(self.access.timeout_s))
        except (Error, TimeoutError, OSError) as error:
            raise ClientError(f"{self.access.shown} does not answer: {str(error) or type(error).__name__}") from error
        if self.complaints:
            raise ClientError(self.complaints[-1])

    async def request(
        self, request: str, body: object | None = None, *, timeout_s: float | None = None
    ) -> dict[str, Any]:
        """Send one request, such as `STREAM.INFO.ORDERS`, and return its answer.

        The body becomes JSON, unless it is bytes already.
        """
        answer = await self.ask(self.access.api_subject(request), encoded(body), timeout_s=timeout_s)
        refusal = answer.get("error")
        if isinstance(refusal, dict):
            # For the code that explains the refusal to the user.
            self.refused = (request, body)
            raise ApiError(
                int(refusal.get("code", 0)), int(refusal.get("err_code", 0)), str(refusal.get("description", "refused"))
            )
        return answer

    async def insist(
        self, request: str, body: object | None = None, *, patience_s: float = PATIENCE_S
    ) -> dict[str, Any]:
        """Send a request that may be sent twice, and retry it while a cluster elects a leader."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience_s
        while True:
            try:
                return await self.request(request, body)
            except ClientError as error:
                if not self.is_temporary(error) or loop.time() > deadline:
                    raise
            await asyncio.sleep(PAUSE_S)

    def is_temporary(self, error: ClientError) -> bool:
        """Tell whether a failure is one that a cluster has while it elects a leader."""
        if self.connection.is_closed:
            return False
        if isinstance(error, ApiError):
            return error.error_code in TEMPORARY
        # A request that is not permitted is not answered either.
        is_forbidden = any("permissions violation" in complaint.lower() for complaint in self.complaints)
        return isinstance(error.__cause__, TimeoutError) and not is_forbidden

    async def find(self, request: str, body: object | None = None) -> dict[str, Any] | None:
        """Send a request whose object need not be there: None = the server has no such thing."""
        try:
            return await self.request(request, body)
        except ApiError as error:
            if error.code != NOT_FOUND:
                raise
            return None

    async def ask(
        self, subject: str, payload: bytes, *, headers: dict[str, str] | None = None, timeout_s: float | None = None
    ) -> dict[str, Any]:
        """Send a request to a whole subject and return the JSON object it is answered with, an error included."""
        from nats.errors import Error, NoRespondersError

        wait_s = self.access.timeout_s if timeout_s is None else timeout_s
        try:
            message = await self.connection.request(subject, payload, timeout=wait_s, headers=headers)
        except NoRespondersError as error:
            if subject.startswith(JETSTREAM):
                raise ClientError(
                    f"JetStream is off on this server, or for this account. Restart it with `-js`. ({subject})"
                ) from error
            raise ClientError(f"no service is listening on subject {subject!r}") from error
        except TimeoutError as error:
            raise ClientError(
                self.complaints[-1]
                if self.complaints
                else f"{self.access.shown} did not answer {subject} within {wait_s:g} s; it may not know the request, "
                "or need more time"
            ) from error
        except (Error, OSError) as error:
            raise ClientError(f"{subject} failed: {str(error) or type(error).__name__}") from error
        if self.on_exchange is not None:
            self.on_exchange(subject, payload, message.data)
        try:
            answer = msgspec.json.decode(message.data, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ClientError(f"{subject} was answered with something that is not a JSON object") from error
        return answer

    async def stream_names(self, subject: str = "") -> list[str]:
        """Return the names of all streams, sorted; those that take a subject if one is given."""
        return sorted(await self._pages("STREAM.NAMES", "streams", {"subject": subject} if subject else {}))

    async def streams(self, subject: str = "") -> list[dict[str, Any]]:
        """Return the information about all streams, sorted by name."""
        found = await self._pages("STREAM.LIST", "streams", {"subject": subject} if subject else {})
        return sorted(found, key=lambda stream: str(stream["config"]["name"]))

    async def consumer_names(self, stream: str) -> list[str]:
        """Return the names of a stream's consumers, sorted."""
        return sorted(await self._pages(f"CONSUMER.NAMES.{token(stream)}", "consumers", {}))

    async def consumers(self, stream: str) -> list[dict[str, Any]]:
        """Return the information about a stream's consumers, sorted by name."""
        found = await self._pages(f"CONSUMER.LIST.{token(stream)}", "consumers", {})
        return sorted(found, key=lambda consumer: str(consumer["name"]))

    async def _pages(self, request: str, key: str, body: dict[str, Any]) -> list[Any]:
        found: list[Any] = []
        for _ in range(PAGES_MAX):
            answer = await self.request(request, {**body, "offset": len(found)})
            page = answer.get(key) or []
            found += page
            if not page or len(found) >= int(answer.get("total", 0)):
                return found
        raise ClientError(f"{request} has no end: after {PAGES_MAX:,} pages there are still more")


@asynccontextmanager
async def open_api(access: Access | str | HasUrl, *, reconnect: bool = False) -> AsyncIterator[Api]:
    """Connect, give the API, and close the connection. An address or a running server will do for an access."""
    if not isinstance(access, Access):
        access = access_of(access)
    complaints: deque[str] = deque(maxlen=COMPLAINTS_MAX)
    connection = await connect(
        access, reconnect=reconnect, on_error=lambda error: complaints.append(str(error) or type(error).__name__)
    )
    try:
        yield Api(connection, access, complaints)
    finally:
        # What was written goes out before the end; a server that is gone must not hold us up.
        with suppress(TimeoutError):
            await asyncio.wait_for(connection.close(), CLOSE_S_MAX)


def adopt_api(connection: "Client") -> Api:
    """Return the API over a connection that the caller has made, and will close."""
    url = connection.connected_url
    shown = f"nats://{url.hostname}:{url.port}" if url else DEFAULT_URL
    return Api(connection, Access(url=shown), deque(maxlen=COMPLAINTS_MAX))


@asynccontextmanager
async def open_or_adopt(server: "Access | str | HasUrl | Client | None") -> AsyncIterator[Api]:
    """Give the API of a server, or over a connection of nats-py, which stays open.

    None is the server that the command line would use: NATS_URL, a context, or 127.0.0.1:4222. A connection made here
    reconnects by itself and is closed at the end.
    """
    from nats.aio.client import Client

    if isinstance(server, Client):
        yield adopt_api(server)
        return
    async with open_api(resolve() if server is None else server, reconnect=True) as api:
        yield api


def encoded(body: object | None) -> bytes:
    """Return the body of a request as it is sent."""
    if body is None:
        return b""
    return body if isinstance(body, bytes) else msgspec.json.encode(body)


def token(name: str) -> str:
    """Return a name that must be one token of a subject. Raises `ClientError` if it cannot be one."""
    if not name or any(letter in ".*>" or letter.isspace() or not letter.isprintable() for letter in name):
        raise ClientError(f"{name!r} is not a name for a stream or consumer: no dots, blanks, * and >, and not empty")
    return name
