"""Messages of a stream: one request to a consumer that is pulled, or a reader that makes a consumer for itself.

```python
async for message in pull(api, "ORDERS", "worker", batch=10, expires_s=5):
    await message.ack()

async with aclosing(read(api, "ORDERS", start=Start(sequence=1), to_end=True)) as messages:
    async for message in messages:
        print(message.metadata.sequence.stream)
```

A caller that may stop before the end closes them, so that the server knows at once.

Invariant: a reader yields every message once and in order, even after its consumer, or messages in flight, were lost.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec

from jetlake.client.api import Api, encoded, token
from jetlake.errors import ApiError, ClientError

if TYPE_CHECKING:
    from nats.aio.msg import Msg

BATCH = 500
"""Messages a reader asks for at once."""

EXPIRES_S = 5.0
"""How long a reader's request waits at the server for messages that are not there yet."""

GRACE_S = 2.0
"""After its end a request's last words may still be on their way."""

LOOK_S = 0.5
"""How often a waiting reader checks whether the connection is still there."""

INACTIVE_S = 60
"""The server removes a reader's consumer that has had no request for this long."""

PAUSE_S = 0.2
"""Before a server that has messages, but does not send them, is asked again."""

NO_MESSAGES = "404"
REQUEST_IS_OVER = "408"
CONFLICT = "409"
NO_RESPONDERS = "503"

FLOW_CONTROL = "$JS.FC."
"""How the reply subjects begin to which a push consumer is told that it may go on."""

SECOND = 1_000_000_000


class _LostMessagesError(Exception):
    """A consumer has delivered messages that did not arrive, and will not deliver them again."""


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """Where reading begins: at one of these, or with the first message there is."""

    sequence: int = 0
    # RFC 3339.
    time: str = ""
    new: bool = False
    last: bool = False
    last_per_subject: bool = False

    def settings(self) -> dict[str, Any]:
        """Return the fields of a consumer."""
        if self.sequence:
            return {"deliver_policy": "by_start_sequence", "opt_start_seq": self.sequence}
        if self.time:
            return {"deliver_policy": "by_start_time", "opt_start_time": self.time}
        for policy in ("new", "last", "last_per_subject"):
            if getattr(self, policy):
                return {"deliver_policy": policy}
        return {"deliver_policy": "all"}


async def pull(
    api: Api,
    stream: str,
    consumer: str,
    *,
    batch: int = 1,
    expires_s: float = EXPIRES_S,
    no_wait: bool = False,
    ends_on_reconnect: bool = False,
) -> AsyncGenerator["Msg", None]:
    """Send one request for messages and yield those that come; ends when the request does. Raises `ClientError`.

    With `ends_on_reconnect` it also ends when the connection was lost and is back: messages may be missing then.
    """
    connection = api.connection
    reconnects = connection.stats["reconnects"]
    inbox = connection.new_inbox()
    arrived: deque[Msg] = deque()
    has_arrived = asyncio.Event()

    # Taking each message with `next_msg` costs several times as much: a timer and a task for every one.
    async def receive(message: "Msg") -> None:
        arrived.append(message)
        has_arrived.set()

    subscription = await connection.subscribe(inbox, cb=receive)
    request = {"batch": batch} | ({"no_wait": True} if no_wait else {"expires": round(expires_s * SECOND)})
    subject = api.access.api_subject(f"CONSUMER.MSG.NEXT.{token(stream)}.{token(consumer)}")
    try:
        await connection.publish(subject, encoded(request), reply=inbox)
        received = 0
        deadline = asyncio.get_running_loop().time() + (0 if no_wait else expires_s) + GRACE_S + api.access.timeout_s
        while received < batch:
            while not arrived:
                has_arrived.clear()
                left_s = deadline - asyncio.get_running_loop().time()
                if left_s <= 0:
                    return
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(left_s, LOOK_S)):
                        await has_arrived.wait()
                if not arrived and connection.is_closed:
                    raise ClientError(f"the connection to {api.access.shown} was closed while reading {stream}")
                if not arrived and ends_on_reconnect and connection.stats["reconnects"] != reconnects:
                    return
            message = arrived.popleft()
            status = server_status(message)
            if status is None:
                received += 1
                yield message
            elif _is_end(status, message, stream, consumer):
                return
    finally:
        # A connection that is closed already has no subscriptions any more.
        if connection.is_connected:
            await subscription.unsubscribe()


def server_status(message: "Msg") -> str | None:
    """Return the status that a server sends in place of a message; None for a message of the stream.

    A message of the stream may be empty and have a header `Status` of its own, but it has a reply subject, for its
    acknowledgement. A status has none, except for a flow control request.
    """
    if message.data or (message.reply and not message.reply.startswith(FLOW_CONTROL)):
        return None
    return (message.headers or {}).get("Status")


def _is_end(status: str, message: "Msg", stream: str, consumer: str) -> bool:
    """Tell whether a status ends a request; the others are heartbeats."""
    words = (message.headers or {}).get("Description", "")
    if status == NO_RESPONDERS:
        raise ClientError(
            f"{stream} has no consumer {consumer} that is pulled; `jetlake consumer ls {stream}` lists them"
        )
    if status == CONFLICT and any(reason in words.lower() for reason in ("deleted", "push based")):
        raise ClientError(f"{consumer} of {stream} gives no messages: {words}")
    return status in (NO_MESSAGES, REQUEST_IS_OVER, CONFLICT)


async def read(
    api: Api,
    stream: str,
    *,
    subjects: list[str] | None = None,
    start: Start | None = None,
    to_end: bool = False,
    headers_only: bool = False,
) -> AsyncGenerator["Msg", None]:
    """Yield the messages of a stream in order; with `to_end` until there are no more, else for ever."""
    begin = start or Start()
    last = 0
    while True:
        name, begin = await _reader(api, stream, subjects or [], begin, headers_only=headers_only)
        try:
            async with aclosing(_read_by(api, stream, name, to_end=to_end)) as messages:
                async for message in messages:
                    sequence = message.metadata.sequence.stream
                    if begin.last_per_subject and sequence <= last:
                        continue
                    last = sequence
                    # What lies behind one of the last values of subjects need not be the last value of another.
                    if not begin.last_per_subject or not message.metadata.num_pending:
                        begin = Start(sequence=last + 1)
                    yield message
            return
        except _LostMessagesError:
            continue
        except ClientError:
            # The server was restarted, or forgot a reader that was gone for too long: continue after the last one.
            if to_end or await api.find(f"CONSUMER.INFO.{stream}.{name}") is not None:
                raise
        finally:
            await _forget(api, stream, name)


async def _read_by(api: Api, stream: str, consumer: str, *, to_end: bool) -> AsyncGenerator["Msg", None]:
    """Yield what a consumer delivers. Raises `_LostMessagesError` where something is missing."""
    reconnects = api.connection.stats["reconnects"]
    delivered = 0
    if to_end and await _is_drained(api, stream, consumer, delivered):
        return
    while True:
        before = delivered
        request = pull(api, stream, consumer, batch=BATCH, no_wait=to_end, ends_on_reconnect=True)
        async with aclosing(request) as messages:
            async for message in messages:
                delivered += 1
                if message.metadata.sequence.consumer != delivered:
                    raise _LostMessagesError
                yield message
                if to_end and not message.metadata.num_pending:
                    return
        if api.connection.stats["reconnects"] != reconnects:
            # Nothing need come behind the lost ones that would show that they are missing.
            raise _LostMessagesError
        if to_end and delivered == before:
            # The rest may have been removed.
            if await _is_drained(api, stream, consumer, delivered):
                return
            await asyncio.sleep(PAUSE_S)


async def _is_drained(api: Api, stream: str, consumer: str, delivered: int) -> bool:
    """Tell whether a consumer has nothing left. Raises `_LostMessagesError` if it has delivered more than arrived."""
    info = await api.request(f"CONSUMER.INFO.{stream}.{consumer}")
    if info["delivered"]["consumer_seq"] != delivered:
        raise _LostMessagesError
    return not info["num_pending"]


async def _reader(api: Api, stream: str, subjects: list[str], start: Start, *, headers_only: bool) -> tuple[str, Start]:
    """Make a consumer for this reader alone, and return where it begins.

    The server forgets it when nobody asks it any more.
    """
    name = f"jetlake_{uuid4().hex[:12]}"
    config: dict[str, Any] = {
        "name": name,
        "ack_policy": "none",
        "mem_storage": True,
        "num_replicas": 1,
        "inactive_threshold": INACTIVE_S * SECOND,
        "max_deliver": 1,
        **start.settings(),
    }
    if headers_only:
        config["headers_only"] = True
    if start.last_per_subject and not subjects:
        # Servers require an explicit filter for all subjects.
        subjects = [">"]
    if len(subjects) == 1:
        config["filter_subject"] = subjects[0]
    elif subjects:
        config["filter_subjects"] = subjects
    made = await api.request(f"CONSUMER.CREATE.{token(stream)}.{name}", {"stream_name": stream, "config": config})
    if start.new or start.last:
        # What comes later must not move the place where another consumer has to begin if this one is lost.
        start = Start(sequence=made["delivered"]["stream_seq"] + 1)
    return name, start


async def _forget(api: Api, stream: str, consumer: str) -> None:
    if not api.connection.is_connected:
        return
    try:
        await api.find(f"CONSUMER.DELETE.{stream}.{consumer}")
    except (ClientError, ApiError):
        # It goes away by itself.
        return
