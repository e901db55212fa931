"""Events from a server, by pattern: of a stream from any point, or as they come.

```python
async with aclosing(read_events(api, "EVENTS", [pattern("D1")], to_end=True)) as events:
    async for event in events:
        print(event.event_type, event.version)
```

Invariant: a message that cannot be read never ends the reading; it becomes a dead letter and the next one follows.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from jetlake.client.api import Api
from jetlake.client.pulls import Start, read
from jetlake.devices.codec import Event, EventCodec
from jetlake.devices.dead_letters import DeadLetterWriter
from jetlake.devices.publisher import MESSAGE_ID
from jetlake.errors import DeviceError

if TYPE_CHECKING:
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

PENDING_MESSAGES_MAX = 524_288
PENDING_BYTES_MAX = 67_108_864
"""What waits for a subscriber in core mode; the client drops what comes then."""


async def read_events(
    api: Api,
    stream: str,
    patterns: Sequence[str] = (),
    *,
    start: Start | None = None,
    to_end: bool = False,
    codec: EventCodec | None = None,
    dead_letters: DeadLetterWriter | None = None,
) -> AsyncGenerator[Event, None]:
    """Yield the events of a stream in order; with `to_end` until there are no more. Raises `ClientError`."""
    decoder = codec or EventCodec()
    async with aclosing(read(api, stream, subjects=list(patterns), start=start, to_end=to_end)) as messages:
        async for message in messages:
            sequence = message.metadata.sequence.stream
            event = await decoded(decoder, message, sequence, dead_letters)
            if event is not None:
                yield event


async def decoded(
    codec: EventCodec, message: "Msg", sequence: int, dead_letters: DeadLetterWriter | None = None
) -> Event | None:
    """Return the event in a message; None, and a dead letter, if there is none."""
    message_id = (message.headers or {}).get(MESSAGE_ID, "")
    try:
        return codec.decode(message.data, subject=message.subject, sequence=sequence, message_id=message_id)
    except DeviceError as error:
        if dead_letters is not None:
            await dead_letters.dead_letter_message(message.subject, sequence, message.data, str(error))
        return None


async def subscribe(
    api: Api,
    pattern: str,
    handler: Callable[[Event], Any],
    *,
    codec: EventCodec | None = None,
    queue: str = "",
    dead_letters: DeadLetterWriter | None = None,
    pending_messages_max: int = PENDING_MESSAGES_MAX,
    pending_bytes_max: int = PENDING_BYTES_MAX,
) -> "Subscription":
    """Pass each new event to `handler`, in both modes; earlier events are not seen. A limit of -1 means no limit."""
    decoder = codec or EventCodec()

    async def receive(message: "Msg") -> None:
        # In JetStream mode there is a reply subject: the publisher's, for the stream alone.
        event = await decoded(decoder, message, 0, dead_letters)
        if event is not None:
            handler(event)

    return await api.connection.subscribe(
        pattern,
        queue=queue,
        cb=receive,
        pending_msgs_limit=max(0, pending_messages_max),
        pending_bytes_limit=max(0, pending_bytes_max),
    )
