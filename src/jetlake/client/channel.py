"""`Channel`: the fast side of a connection of nats-py, for requests and for messages by the thousand.

```python
channel = Channel.of(connection)
reply = await channel.request("$JS.API.INFO", timeout_s=5)
inbox = await channel.subscribe(on_message)
```

Requests have an inbox of their own, whose answers wake the caller from inside the parser. Commands go to the socket at
once when nothing waits before them. Connecting, TLS, credentials and reconnecting stay nats-py's.

Invariant: `_waiting` holds exactly the requests whose callers are still waiting.
"""

import asyncio
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from jetlake.client.lean_parser import LeanParser, Receiver, Sink
from jetlake.errors import ClientError

if TYPE_CHECKING:
    from nats.aio.client import Client

__all__ = ["Channel", "Inbox", "Reply", "header_block", "header_value"]

NO_RESPONDERS = b"503"

DISCONNECTED_BYTES_MAX = 2 * 1024 * 1024
"""Commands kept for a connection that is coming back; nats-py's own limit."""

Payload = bytes | memoryview
"""What can be sent without a copy before it."""

LARGE_BYTES = 64 * 1024
"""A payload of this size is handed to the socket by itself: copying it would cost more than another system call."""

HEADER_LINE = b"NATS/1.0\r\n"


class Reply(NamedTuple):
    """The answer to a request."""

    headers: bytes
    data: bytes

    @property
    def status(self) -> bytes:
        """The number after `NATS/1.0`, as b"404"; empty on an ordinary message."""
        return self.headers[9:12] if self.headers[8:9] == b" " else b""

    @property
    def nobody_answers(self) -> bool:
        """Whether the server says that the subject has no subscriber."""
        return not self.data and self.status == NO_RESPONDERS


class Inbox:
    """One subscription with a receiver."""

    def __init__(self, parser: LeanParser, subscription: Any, subject: str) -> None:
        self._parser = parser
        self._subscription = subscription
        self.subject = subject

    async def close(self) -> None:
        """End the subscription; messages that are on their way go nowhere."""
        from nats.errors import Error

        # A connection that is closed already has no subscriptions any more.
        with suppress(Error):
            await self._subscription.unsubscribe()
        sid = str(self._subscription._id).encode()  # noqa: SLF001
        self._parser.receivers.pop(sid, None)
        self._parser.sinks.pop(sid, None)


class Channel:
    """The fast side of one connection."""

    def __init__(self, client: "Client", parser: LeanParser) -> None:
        self._client: Any = client
        self._parser = parser
        self._waiting: dict[bytes, asyncio.Future[Reply]] = {}
        self._numbers = count(1)
        self._prefix = ""
        self._opening = asyncio.Lock()

    @classmethod
    def of(cls, client: "Client") -> "Channel":
        """Return the channel of a connection; there is one for each."""
        parser = LeanParser.of(client)
        if parser.channel is None:
            parser.channel = cls(client, parser)
        channel: Channel = parser.channel
        return channel

    @property
    def payload_bytes_max(self) -> int:
        """The largest message this server takes, its headers included."""
        return int(self._client.max_payload)

    @property
    def reconnects(self) -> int:
        """How often the connection came back."""
        return int(self._client.stats["reconnects"])

    @property
    def is_clustered(self) -> bool:
        """Whether the server is one of several."""
        return bool(self._client._server_info.get("cluster"))  # noqa: SLF001

    @property
    def is_closed(self) -> bool:
        return bool(self._client.is_closed)

    async def subscribe(self, receiver: Receiver, subject: str = "") -> Inbox:
        """Hand every message on a subject, a new inbox unless given, to a receiver."""
        wanted = subject or self._client.new_inbox()
        # Without a callback nats-py starts no task for it; its queue stays empty.
        subscription = await self._client.subscribe(wanted)
        self._parser.receivers[str(subscription._id).encode()] = receiver  # noqa: SLF001
        return Inbox(self._parser, subscription, wanted)

    async def collect(self, sink: Sink) -> Inbox:
        """Collect every message on a new inbox in a sink."""
        wanted = self._client.new_inbox()
        subscription = await self._client.subscribe(wanted)
        self._parser.sinks[str(subscription._id).encode()] = sink  # noqa: SLF001
        return Inbox(self._parser, subscription, wanted)

    async def request(self, subject: str, payload: bytes = b"", *, headers: bytes = b"", timeout_s: float) -> Reply:
        """Send a request and return its answer, a status included. Raises `TimeoutError` and `ClientError`."""
        return await (await self.begin(subject, payload, headers=headers, timeout_s=timeout_s))

    async def begin(
        self, subject: str, payload: Payload = b"", *, headers: bytes = b"", timeout_s: float
    ) -> "asyncio.Future[Reply]":
        """Send a request and return the future of its answer, so that several can be under way."""
        if not self._prefix:
            await self._open()
        token = b"%d" % next(self._numbers)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Reply] = loop.create_future()
        deadline = loop.call_later(timeout_s, self._expire, token)

        def forget(_: object) -> None:
            deadline.cancel()
            self._waiting.pop(token, None)

        self._waiting[token] = future
        future.add_done_callback(forget)
        try:
            await self.publish(subject, payload, reply=self._prefix + token.decode(), headers=headers)
        except BaseException:
            future.cancel()
            raise
        return future

    async def publish(self, subject: str, payload: Payload = b"", *, reply: str = "", headers: bytes = b"") -> None:
        """Send a message; `headers` is a whole block, see `header_block`."""
        from nats.aio.transport import TcpTransport

        client = self._client
        self._check(len(payload) + len(headers))
        answer_to = f" {reply}" if reply else ""
        if headers:
            line = f"HPUB {subject}{answer_to} {len(headers)} {len(headers) + len(payload)}\r\n"
        else:
            line = f"PUB {subject}{answer_to} {len(payload)}\r\n"
        client.stats["out_msgs"] += 1
        client.stats["out_bytes"] += len(payload)
        is_large = len(payload) >= LARGE_BYTES
        command = b"".join((line.encode(), headers, b"" if is_large else payload, b"" if is_large else b"\r\n"))
        if client.is_connected and not client._pending and isinstance(client._transport, TcpTransport):  # noqa: SLF001
            client._transport.write(command)  # type: ignore[no-untyped-call]  # noqa: SLF001
            if is_large:
                client._transport.write(payload)  # type: ignore[no-untyped-call]  # noqa: SLF001
                client._transport.write(b"\r\n")  # type: ignore[no-untyped-call]  # noqa: SLF001
            return
        # One piece, so that nobody else's command comes between.
        await client._send_command(b"".join((command, payload, b"\r\n")) if is_large else command)  # noqa: SLF001
        await client._flush_pending()  # noqa: SLF001

    def _check(self, message_bytes: int) -> None:
        client = self._client
        if client.is_closed:
            raise ClientError("the connection is closed: open a new one")
        if message_bytes > client.max_payload:
            raise ClientError(
                f"a message of {message_bytes:,} bytes is too large: the server takes {client.max_payload:,} bytes"
            )
        if not client.is_connected and client.pending_data_size + message_bytes > DISCONNECTED_BYTES_MAX:
            raise ClientError("the connection is lost, and too much waits for it to come back: try again later")

    async def _open(self) -> None:
        async with self._opening:
            if self._prefix:
                return
            inbox = self._client.new_inbox()
            await self.subscribe(self._answered, f"{inbox}.*")
            self._prefix = f"{inbox}."

    def _answered(self, subject: bytes, _reply: bytes, headers: bytes, data: bytes) -> None:
        future = self._waiting.get(subject[len(self._prefix) :])
        if future is not None and not future.done():
            future.set_result(Reply(headers, data))

    def _expire(self, token: bytes) -> None:
        future = self._waiting.get(token)
        if future is not None and not future.done():
            future.set_exception(TimeoutError())


def header_block(headers: dict[str, str]) -> bytes:
    """Return headers as they are sent; without headers, nothing."""
    if not headers:
        return b""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return HEADER_LINE + lines.encode() + b"\r\n"


def header_value(block: bytes, name: bytes) -> bytes | None:
    """Return the value of a header in a block; names are compared as they are written.

    Of several it is the last: what a server adds comes after what was published.
    """
    start = block.rfind(b"\r\n" + name + b":")
    if start < 0:
        return None
    start += len(name) + 3
    return block[start : block.index(b"\r\n", start)].strip()
