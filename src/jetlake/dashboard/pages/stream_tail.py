"""The live tail of a stream: a page that shows messages as they are stored, with a filter and a pause.

```text
page:       opens the websocket with ?filter=orders.eu.>; closes it to pause
dashboard:  {"messages": [{"sequence": 7, "subject": …, "time": …, "size": …, "text": …, "address": …}], "skipped": 0}
```

The tail looks at what is new twice a second and sends the first few of it; it does not subscribe, because a hundred
open tails of a busy stream would then bring every message to this process a hundred times. Work queues and mirrors can
be tailed as well.

Invariant: a tail costs at most `ROWS_MAX + 1` requests per look, whatever is published, and ends with its page, and
with the session.
"""

import asyncio
import contextlib

import msgspec
from aiohttp import web

from jetlake.client.api import token
from jetlake.dashboard.keys import session_of
from jetlake.dashboard.live import HEARTBEAT_S, SESSION_ENDED
from jetlake.dashboard.message_view import preview, visible
from jetlake.dashboard.pages.page import Route
from jetlake.dashboard.pages.stream_frame import address_of, render_in_stream, stream_of
from jetlake.dashboard.rendering import command_line
from jetlake.dashboard.sessions import Session
from jetlake.dashboard.stored_messages import StoredMessage, check_pattern, next_message
from jetlake.errors import ClientError
from jetlake.shared.cancellation import cancel

__all__ = ["ROUTES"]

PATH = "/streams/{stream}/tail"

LOOK_S = 0.5
"""Between two looks: often enough to be called live."""

ROWS_MAX = 20
"""Messages of one look: forty per second are more than a person reads. The others are counted, not sent."""

TAILS_MAX = 10
"""Open tails of one session."""

BUSY = "You have 10 live tails open. Close one of them, then continue this one."

TAILS = "tails"


class TailRow(msgspec.Struct):
    """One message of a tail."""

    sequence: int
    subject: str
    time: str
    size: int
    text: str
    address: str


class Frame(msgspec.Struct):
    """What one look has found."""

    messages: list[TailRow]
    # Sequences that were passed over because there were too many.
    skipped: int = 0
    problem: str = ""


async def show(request: web.Request) -> web.Response:
    """Show the page; its script opens the websocket."""
    stream = await stream_of(request)
    pattern = check_pattern(request.query.get("filter", "").strip())
    return render_in_stream(
        request,
        "stream_tail.html",
        stream,
        tab="stream.tail",
        pattern=pattern,
        command=command_line(request, "sub", pattern or stream.sample_subject or ">"),
    )


async def serve(request: web.Request) -> web.WebSocketResponse:
    """Send what is new until the page is closed or the session ends."""
    stream = await stream_of(request)
    pattern = check_pattern(request.query.get("filter", "").strip())
    session = session_of(request)
    socket = web.WebSocketResponse(heartbeat=HEARTBEAT_S)
    await socket.prepare(request)
    open_tails = session.kept.setdefault(TAILS, set())
    assert isinstance(open_tails, set)
    if len(open_tails) >= TAILS_MAX:
        await socket.send_bytes(msgspec.json.encode(Frame([], problem=BUSY)))
        await socket.close()
        return socket
    open_tails.add(socket)
    sending = asyncio.create_task(_send(request, session, socket, stream.name, pattern, stream.last_sequence))
    ending = asyncio.create_task(session.is_closed.wait())
    reading = asyncio.create_task(_read_to_end(socket))
    try:
        await asyncio.wait({sending, ending, reading}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        open_tails.discard(socket)
        await cancel(sending, ending, reading)
        await socket.close(code=SESSION_ENDED if session.is_closed.is_set() else 1000)
    return socket


async def _read_to_end(socket: web.WebSocketResponse) -> None:
    """Wait until the page closes it; a page has nothing to say."""
    async for _ in socket:
        pass


async def _send(
    request: web.Request, session: Session, socket: web.WebSocketResponse, stream: str, pattern: str, seen: int
) -> None:
    def address(message: StoredMessage) -> str:
        return address_of(request, "stream.message", stream=stream, sequence=str(message.sequence))

    # At once, so that the page knows that it is connected.
    frame = Frame([])
    problem = ""
    with contextlib.suppress(ConnectionError):
        await socket.send_str(msgspec.json.encode(frame).decode())
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                messages, seen, skipped = await _look(session, stream, pattern, seen)
                frame = Frame([_row(each, address(each)) for each in messages], skipped=skipped)
            except ClientError as error:
                frame = Frame([], problem=str(error))
            if frame.messages or frame.skipped or frame.problem != problem:
                problem = frame.problem
                await socket.send_str(msgspec.json.encode(frame).decode())


async def _look(session: Session, stream: str, pattern: str, seen: int) -> tuple[list[StoredMessage], int, int]:
    """Return the first messages after a sequence, the last sequence, and how many sequences were passed over."""
    last = int((await session.api.request(f"STREAM.INFO.{token(stream)}"))["state"]["last_seq"])
    found: list[StoredMessage] = []
    # A stream that was recreated begins at 1 again, and its last sequence is below the last one seen.
    at = seen + 1
    while at <= last and len(found) < ROWS_MAX:
        message = await next_message(session.api, stream, at, pattern)
        if message is None:
            return found, max(last, at - 1), 0
        found.append(message.shortened())
        at = message.sequence + 1
    return found, max(last, at - 1) if found else last, max(0, last + 1 - at) if found else 0


def _row(message: StoredMessage, address: str) -> TailRow:
    return TailRow(
        sequence=message.sequence,
        subject=visible(message.subject),
        time=message.time,
        size=message.size,
        text=preview(message.payload),
        address=address,
    )


ROUTES = (
    Route("GET", PATH, show, name="stream.tail"),
    Route("GET", PATH + "/live", serve, name="stream.tail.live"),
)
