"""Sends simulated events to a server, at their time or as fast as it goes.

Invariant: when `publish` returns, the server has received every event, in order.
"""

import time
from collections.abc import Callable, Iterable

from jetlake.client.raw_connection import RawConnection
from jetlake.client.raw_frames import FrameReader
from jetlake.errors import ClientError
from jetlake.simulation.fleet import SimulatedEvent

__all__ = ["publish"]

BATCH_BYTES = 256 * 1024
"""What is written at once; also how far the server may be behind, because each batch is waited for."""

ANSWER_S_MAX = 30.0
PAUSE_S_MAX = 0.5
"""How long it sleeps at most before it checks whether to stop."""


def publish(
    events: Iterable[SimulatedEvent],
    connection: RawConnection,
    *,
    speed: float = 1.0,
    is_stopping: Callable[[], bool] = lambda: False,
    progress: Callable[[int], object] = lambda _count: None,
) -> int:
    """Send events and return how many were. A speed of 2 is twice as fast as their time, 0 as fast as it goes."""
    reader = FrameReader(connection.take_unparsed())
    started_s = time.monotonic()
    first_s: int | None = None
    waiting: list[bytes] = []
    waiting_bytes = count = 0
    for event in events:
        first_s = event.time_s if first_s is None else first_s
        due_s = started_s + (event.time_s - first_s) / speed if speed else 0.0
        if waiting and (due_s > time.monotonic() or waiting_bytes >= BATCH_BYTES):
            _send(connection, reader, waiting)
            progress(len(waiting))
            count += len(waiting)
            waiting, waiting_bytes = [], 0
        while (left_s := due_s - time.monotonic()) > 0 and not is_stopping():
            time.sleep(min(left_s, PAUSE_S_MAX))
        if is_stopping():
            return count
        frame = b"PUB %b %d\r\n%b\r\n" % (event.subject.encode(), len(event.payload), event.payload)
        waiting.append(frame)
        waiting_bytes += len(frame)
    if waiting:
        _send(connection, reader, waiting)
        progress(len(waiting))
    return count + len(waiting)


def _send(connection: RawConnection, reader: FrameReader, frames: list[bytes]) -> None:
    """Write frames, and wait until the server has read them."""
    reader.pongs = 0
    connection.send(b"".join(frames) + b"PING\r\n")
    deadline = time.monotonic() + ANSWER_S_MAX
    while not reader.pongs:
        reader.feed(connection.receive(max(deadline - time.monotonic(), 0.001)))
        if reader.pings:
            connection.send(b"PONG\r\n" * reader.pings)
            reader.pings = 0
        if reader.complaints:
            raise ClientError(f"the server says: {'; '.join(reader.complaints)}")
