"""The websocket behind live figures: a page says which keys it shows and receives them as they are sampled.

```text
page:       {"keys": ["messages.in", "stream:ORDERS:rate"]}      again after each change of the page
dashboard:  {"history": {"messages.in": [[time, value], …]}}     once per request
            {"time": …, "values": {"messages.in": [12.5, "12.5/s"]}, "problem": ""}
```

Invariant: a page that reads slowly misses samples; nothing waits for it and nothing is kept for it.
"""

import asyncio
import contextlib

import msgspec
from aiohttp import WSMsgType, web

from jetlake.dashboard.keys import SESSION
from jetlake.dashboard.sessions import Session
from jetlake.shared.cancellation import end

__all__ = ["serve_live"]

KEYS_MAX = 200
"""Keys of one page: more than any page shows."""

REQUEST_BYTES_MAX = 64 * 1024

HEARTBEAT_S = 20.0
"""After this time without an answer to a ping the page is gone."""

SESSION_ENDED = 4401
"""Close code, for the page to go to the login."""


class Wanted(msgspec.Struct, frozen=True):
    """What a page asks for."""

    keys: list[str]


async def serve_live(request: web.Request) -> web.WebSocketResponse:
    """Send figures until the page is closed or the session ends."""
    session = request.get(SESSION)
    socket = web.WebSocketResponse(heartbeat=HEARTBEAT_S, max_msg_size=REQUEST_BYTES_MAX)
    await socket.prepare(request)
    if session is None:
        await socket.close(code=SESSION_ENDED)
        return socket
    sending: asyncio.Task[None] | None = None
    ending = asyncio.create_task(_close_with(session, socket))
    try:
        async for message in socket:
            if message.type is not WSMsgType.TEXT:
                break
            try:
                wanted = msgspec.json.decode(message.data, type=Wanted)
            except msgspec.DecodeError:
                break
            if sending is not None:
                await end(sending)
            sending = asyncio.create_task(_send(session, socket, frozenset(wanted.keys[:KEYS_MAX])))
    finally:
        if sending is not None:
            await end(sending)
        await end(ending)
    return socket


async def _send(session: Session, socket: web.WebSocketResponse, keys: frozenset[str]) -> None:
    sampler = session.sampler
    with sampler.watch(keys), contextlib.suppress(ConnectionError):
        await socket.send_str(sampler.past(keys).decode())
        while not socket.closed:
            await socket.send_str(sampler.frame(keys).decode())
            await sampler.next_tick()


async def _close_with(session: Session, socket: web.WebSocketResponse) -> None:
    await session.is_closed.wait()
    await socket.close(code=SESSION_ENDED)
