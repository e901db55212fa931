"""A client without asyncio, for scripts, notebooks and tests.

```python
with jetlake.connect_sync("nats://127.0.0.1:4222") as client:
    client.publish("greeting", "hello")
    orders = client.streams.create("ORDERS", subjects=["orders.>"])
    orders.publish("orders.new", {"id": 1})
    for message in orders.messages():
        print(message.sequence, message.json())
```

An event loop in a thread of its own does the work, so a notebook's own loop is not in the way.

- `client`   `connect_sync` and `SyncClient`: publish, subscribe, request
- `message`  `SyncMessage`: one message, and how payloads are encoded
- `streams`  `SyncStreams`, `SyncStream`, `SyncConsumer`: JetStream
- `waiting`  what nats-py raises, as errors of ours
"""

from jetlake.sync.client import SyncClient, SyncSubscription, connect_sync
from jetlake.sync.message import SyncMessage
from jetlake.sync.streams import Stored, SyncConsumer, SyncStream, SyncStreams

__all__ = [
    "Stored",
    "SyncClient",
    "SyncConsumer",
    "SyncMessage",
    "SyncStream",
    "SyncStreams",
    "SyncSubscription",
    "connect_sync",
]
