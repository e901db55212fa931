"""JetStream without asyncio: `SyncStreams` of an account, one `SyncStream`, one `SyncConsumer`.

```python
orders = client.streams.create("ORDERS", subjects=["orders.>"])
stored = orders.publish("orders.new", {"id": 1})     # returns when it is on disk
worker = orders.consumer("worker")
for message in worker.fetch(10):
    message.ack()
```

Invariant: `publish` returns after the stream has acknowledged the message, or raises.
"""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import msgspec

from jetlake.client.api import Api, token
from jetlake.client.pulls import Start, pull, read
from jetlake.errors import ApiError, ClientError, NotFoundError
from jetlake.sync.message import SyncMessage, encode

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from jetlake.sync.waiting import Waiting

__all__ = ["Stored", "SyncConsumer", "SyncStream", "SyncStreams"]

MESSAGE_ID = "Nats-Msg-Id"
NO_STREAM = 10059
CONSUMER_EXISTS = 10148

NO_WAIT_S = 0.0
"""A fetch with this time-out takes what is there and does not wait."""

DEFAULTS: dict[str, Any] = {"storage": "file", "retention": "limits", "num_replicas": 1, "allow_direct": True}
"""Settings of a stream unless given: those of `jetlake stream add`."""


class Stored(msgspec.Struct, frozen=True):
    """What a stream acknowledges."""

    stream: str
    sequence: int
    duplicate: bool = False


class SyncConsumer:
    """A durable consumer that is pulled; several programs may share it."""

    def __init__(self, waiting: "Waiting", api: Api, stream: str, name: str) -> None:
        self._waiting = waiting
        self._api = api
        self.stream = stream
        self.name = name

    def fetch(self, count: int = 1, *, timeout_s: float = 5.0) -> list[SyncMessage]:
        """Return up to `count` messages: as soon as they are there, or what has come after `timeout_s`.

        With `timeout_s=0` what is there now. Each must be acknowledged with `ack`, or it is delivered again.
        """
        if count < 1:
            raise ClientError(f"cannot fetch {count} messages: give 1 or more")

        async def taken() -> "list[Msg]":
            no_wait = timeout_s <= NO_WAIT_S
            wait_s = max(timeout_s, 0.001)
            messages = pull(self._api, self.stream, self.name, batch=count, expires_s=wait_s, no_wait=no_wait)
            async with aclosing(messages) as given:
                return [message async for message in given]

        found = self._waiting.run(taken(), what=f"fetch from consumer {self.name} of stream {self.stream}")
        return [SyncMessage(message, self._waiting) for message in found]

    def info(self) -> dict[str, Any]:
        """Return the configuration and state, as the JetStream API has them."""
        return _asked(self._waiting, self._api, f"CONSUMER.INFO.{token(self.stream)}.{token(self.name)}")

    def delete(self) -> None:
        """Delete the consumer with what it has noted about acknowledgements."""
        _asked(self._waiting, self._api, f"CONSUMER.DELETE.{token(self.stream)}.{token(self.name)}")

    def __repr__(self) -> str:
        return f"<consumer {self.name} of stream {self.stream}>"


class SyncStream:
    """One stream."""

    def __init__(self, waiting: "Waiting", api: Api, name: str) -> None:
        self._waiting = waiting
        self._api = api
        self.name = name

    def publish(
        self,
        subject: str,
        data: object = b"",
        *,
        headers: dict[str, str] | None = None,
        message_id: str = "",
        timeout_s: float = 5.0,
    ) -> Stored:
        """Store a message and return its acknowledgement. One with a `message_id` that is known is stored once."""
        stored = publish(self._waiting, self._api, subject, data, headers, message_id, timeout_s)
        if stored.stream != self.name:
            raise ClientError(
                f"subject {subject!r} belongs to stream {stored.stream}, not to {self.name}: stored there"
            )
        return stored

    def messages(
        self, *, subjects: list[str] | None = None, start_sequence: int = 1, limit: int | None = None
    ) -> Iterator[SyncMessage]:
        """Yield the messages that the stream holds, in order, and end after the last."""

        async def limited() -> "AsyncGenerator[Msg, None]":
            count = 0
            start = Start(sequence=start_sequence)
            async with aclosing(read(self._api, self.name, subjects=subjects, start=start, to_end=True)) as given:
                async for message in given:
                    if limit is not None and count >= limit:
                        return
                    count += 1
                    yield message

        for message in self._waiting.iterate(limited(), what=f"read stream {self.name}"):
            yield SyncMessage(message, self._waiting)

    def consumer(self, name: str, **config: Any) -> SyncConsumer:
        """Return the durable consumer of this name; it is created if it does not exist.

        `config` are fields of the JetStream API, such as `filter_subject`, `max_deliver` or `ack_wait` in nanoseconds.
        A consumer that exists is never changed: without fields it is opened as it is, and with fields that make
        another configuration it is refused.
        """
        opened = SyncConsumer(self._waiting, self._api, self.name, name)
        where = f"{token(self.name)}.{token(name)}"
        if not config and self._waiting.run(self._api.find(f"CONSUMER.INFO.{where}"), what=f"open consumer {name}"):
            return opened
        wanted = {"durable_name": name, "name": name, "ack_policy": "explicit", "deliver_policy": "all"} | config
        request = {"stream_name": self.name, "config": wanted, "action": "create"}
        try:
            _asked(self._waiting, self._api, f"CONSUMER.CREATE.{where}", request)
        except ApiError as error:
            if error.error_code != CONSUMER_EXISTS:
                raise
            # Without fields another program has created it a moment ago.
            if config:
                raise ApiError(
                    error.code,
                    error.error_code,
                    f"consumer {name} of stream {self.name} exists with another configuration: `consumer({name!r})` "
                    f"opens it as it is, `jetlake consumer edit {self.name} {name}` changes it",
                ) from error
        return opened

    def info(self) -> dict[str, Any]:
        """Return the configuration and state, as the JetStream API has them."""
        return _asked(self._waiting, self._api, f"STREAM.INFO.{token(self.name)}")

    def count(self) -> int:
        """Return the number of messages."""
        return int(self.info()["state"]["messages"])

    def purge(self, *, subject: str = "") -> int:
        """Delete all messages, or those of a subject, and return how many they were."""
        body = {"filter": subject} if subject else {}
        return int(_asked(self._waiting, self._api, f"STREAM.PURGE.{token(self.name)}", body)["purged"])

    def delete(self) -> None:
        """Delete the stream with all messages and consumers."""
        _asked(self._waiting, self._api, f"STREAM.DELETE.{token(self.name)}")

    def __repr__(self) -> str:
        return f"<stream {self.name}>"


class SyncStreams:
    """The streams of one account."""

    def __init__(self, waiting: "Waiting", api: Api) -> None:
        self._waiting = waiting
        self._api = api

    def create(self, name: str, *, subjects: list[str] | None = None, **config: Any) -> SyncStream:
        """Create a stream, or return the one that exists with the same configuration.

        `config` are fields of the JetStream API, such as `storage="memory"`, `max_msgs` or `max_age` in nanoseconds.
        """
        wanted = DEFAULTS | config | {"name": name} | ({"subjects": subjects} if subjects else {})
        _asked(self._waiting, self._api, f"STREAM.CREATE.{token(name)}", wanted)
        return SyncStream(self._waiting, self._api, name)

    def open(self, name: str) -> SyncStream:
        """Return a stream that exists. Raises `NotFoundError`."""
        try:
            _asked(self._waiting, self._api, f"STREAM.INFO.{token(name)}")
        except ApiError as error:
            if error.error_code != NO_STREAM:
                raise
            there = ", ".join(self.names()) or "none"
            raise NotFoundError(f"No stream {name}. Existing streams: {there}", NO_STREAM) from error
        return SyncStream(self._waiting, self._api, name)

    def names(self) -> list[str]:
        """Return the names of all streams, sorted."""
        return self._waiting.run(self._api.stream_names(), what="list the streams")

    def publish(
        self,
        subject: str,
        data: object = b"",
        *,
        headers: dict[str, str] | None = None,
        message_id: str = "",
        timeout_s: float = 5.0,
    ) -> Stored:
        """Store a message in whichever stream listens on its subject, and return its acknowledgement."""
        return publish(self._waiting, self._api, subject, data, headers, message_id, timeout_s)


def publish(
    waiting: "Waiting",
    api: Api,
    subject: str,
    data: object,
    headers: dict[str, str] | None,
    message_id: str,
    timeout_s: float,
) -> Stored:
    """Publish a message and return what the stream acknowledges. Raises `ApiError` when it refuses."""
    from nats.errors import NoRespondersError

    fields = {**(headers or {}), **({MESSAGE_ID: message_id} if message_id else {})}

    async def sent() -> bytes:
        try:
            request = api.connection.request(subject, encode(data), timeout=timeout_s, headers=fields or None)
            return (await request).data
        except NoRespondersError as error:
            raise ClientError(
                f"no stream is listening on subject {subject!r}: create one with `streams.create`"
            ) from error

    answer = _decoded(waiting.run(sent(), what=f"store a message on {subject!r}"), subject)
    refusal = answer.get("error")
    if isinstance(refusal, dict):
        code, error_code = int(refusal.get("code", 0)), int(refusal.get("err_code", 0))
        raise ApiError(code, error_code, str(refusal.get("description", "refused")))
    return Stored(str(answer["stream"]), int(answer["seq"]), bool(answer.get("duplicate", False)))


def _decoded(data: bytes, subject: str) -> dict[str, Any]:
    try:
        answer = msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ClientError(f"the reply to {subject!r} did not come from a stream") from error
    if "error" not in answer and not ("stream" in answer and "seq" in answer):
        raise ClientError(f"the reply to {subject!r} did not come from a stream")
    return answer


def _asked(waiting: "Waiting", api: Api, request: str, body: object | None = None) -> dict[str, Any]:
    return waiting.run(api.request(request, body), what=request)
