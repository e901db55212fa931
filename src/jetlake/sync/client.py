"""`connect_sync`: a blocking client, and `SyncClient`, which it returns.

```python
with jetlake.connect_sync(server) as client:
    with client.subscribe("greeting") as subscription:
        client.publish("greeting", "hello")
        print(subscription.next().text())
```

Invariant: the thread of a client ends with `close`, at the latest when the program ends.
"""

import atexit
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from jetlake.client.api import adopt_api
from jetlake.client.blocking import Background
from jetlake.client.connection import DEFAULT_URL, HasUrl, connect, flush
from jetlake.errors import ClientError
from jetlake.sync.message import SyncMessage, encode
from jetlake.sync.streams import SyncStreams
from jetlake.sync.waiting import Waiting

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.subscription import Subscription

    from jetlake.kv.sync import Buckets
    from jetlake.objects.sync import Stores

__all__ = ["SyncClient", "SyncSubscription", "connect_sync"]


class SyncSubscription:
    """The messages of a subject, from the subscription on."""

    def __init__(self, waiting: Waiting, subscription: "Subscription") -> None:
        self._waiting = waiting
        self._subscription = subscription
        self._is_open = True

    @property
    def subject(self) -> str:
        return self._subscription.subject

    def next(self, timeout_s: float | None = 5.0) -> SyncMessage:
        """Return the next message. Raises `ClientError` when none comes in time; None waits without end."""
        what = f"get a message on {self.subject!r}"
        return SyncMessage(self._waiting.run(self._subscription.next_msg(timeout_s), what=what), self._waiting)

    def __iter__(self) -> Iterator[SyncMessage]:
        """Yield messages as they come, until Ctrl-C or `close`."""
        while self._is_open:
            yield self.next(None)

    def close(self) -> None:
        """Unsubscribe; harmless when repeated."""
        if self._is_open:
            self._is_open = False
            self._waiting.run(self._subscription.unsubscribe(), what=f"unsubscribe from {self.subject!r}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()


class SyncClient:
    """A connected client. Methods raise `ClientError`, and `ApiError` when a server refuses."""

    def __init__(self, background: Background, connection: "Client") -> None:
        self._background = background
        self._waiting = Waiting(background)
        self._connection = connection
        self._api = adopt_api(connection)
        self._is_open = True
        self.streams = SyncStreams(self._waiting, self._api)
        # A script or a notebook that forgets to close still ends in order.
        atexit.register(self.close)

    @property
    def connection(self) -> "Client":
        """nats-py's client behind this one, for what is missing here; its loop is another thread's."""
        return self._connection

    @property
    def kv(self) -> "Buckets":
        """The key-value buckets; see `jetlake.kv.sync.Buckets`."""
        from jetlake.kv.buckets import Buckets as AsynchronousBuckets
        from jetlake.kv.sync import Buckets

        return Buckets(self._background, AsynchronousBuckets(self._api))

    @property
    def objects(self) -> "Stores":
        """The object stores; see `jetlake.objects.sync.Stores`."""
        from jetlake.objects.stores import Stores as AsynchronousStores
        from jetlake.objects.sync import Stores

        return Stores(self._background, AsynchronousStores(self._api))

    def publish(
        self, subject: str, data: object = b"", *, headers: dict[str, str] | None = None, reply: str = ""
    ) -> None:
        """Send a message to current subscribers; `streams.publish` waits for a stream's acknowledgement.

        Returns when the server has received it.
        """

        async def sent() -> None:
            await self._connection.publish(subject, encode(data), reply=reply, headers=headers)
            await flush(self._connection)

        self._waiting.run(sent(), what=f"publish to {subject!r}")

    def publish_many(self, messages: "Iterator[tuple[str, object]] | list[tuple[str, object]]") -> int:
        """Send pairs of subject and data, and return how many; the server has received all of them then."""

        async def sent() -> int:
            count = 0
            for subject, data in messages:
                await self._connection.publish(subject, encode(data))
                count += 1
            await flush(self._connection)
            return count

        return self._waiting.run(sent(), what="publish")

    def subscribe(
        self, subject: str, *, queue: str = "", callback: Callable[[SyncMessage], None] | None = None
    ) -> SyncSubscription:
        """Subscribe to a subject, which may have wildcards. Returns when the server knows of it.

        Without `callback` use `next` or a `for` loop. A callback is called in another thread, one message at a time.
        """

        async def subscribed() -> "Subscription":
            made = await self._connection.subscribe(subject, queue=queue, cb=self._called(callback))
            await flush(self._connection)
            return made

        return SyncSubscription(self._waiting, self._waiting.run(subscribed(), what=f"subscribe to {subject!r}"))

    def request(
        self, subject: str, data: object = b"", *, headers: dict[str, str] | None = None, timeout_s: float = 5.0
    ) -> SyncMessage:
        """Send a request and return the first answer. Raises `ClientError` if nobody is listening or answers."""
        answer = self._waiting.run(
            self._connection.request(subject, encode(data), timeout=timeout_s, headers=headers),
            what=f"get an answer from {subject!r}",
        )
        return SyncMessage(answer, self._waiting)

    def flush(self) -> None:
        """Return when the server has received everything that was sent."""
        self._waiting.run(flush(self._connection), what="flush")

    def close(self) -> None:
        """Close the connection and end its thread; harmless when repeated."""
        if not self._is_open:
            return
        self._is_open = False
        atexit.unregister(self.close)
        from nats.errors import Error

        try:
            # A server that has gone first must not fail this: everything here is closed either way.
            with suppress(OSError, Error):
                self._background.run(self._connection.close())
        finally:
            self._background.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<jetlake client of {self._api.access.shown}{'' if self._is_open else ', closed'}>"

    def _called(self, callback: Callable[[SyncMessage], None] | None) -> Any:
        if callback is None:
            return None
        import asyncio

        async def call(message: Any) -> None:
            # In a thread, so that it may use this client, whose loop it would block otherwise.
            await asyncio.to_thread(callback, SyncMessage(message, self._waiting))

        return call


def connect_sync(server: str | list[str] | HasUrl = DEFAULT_URL, **options: Any) -> SyncClient:
    """Connect without asyncio: to a URL, to several URLs, or to a running `jetlake.Server`.

    The options are those of `jetlake.connect`. Works in scripts, in notebooks and in threads; inside a coroutine use
    `jetlake.connect`, because every call here blocks. Raises `ClientError` at once when no server answers.
    """
    background = Background()
    try:
        return SyncClient(background, background.run(connect(server, **options)))
    except BaseException as error:
        background.close()
        if isinstance(error, TypeError):
            raise ClientError(f"an option is wrong: {error}; they are those of nats.connect") from error
        raise
