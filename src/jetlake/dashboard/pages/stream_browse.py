"""The messages of a stream: pages of them by subject, sequence and time, and one of them with its payload.

Invariant: nothing here changes the stream, and no consumer is made for it.
"""

from datetime import UTC, datetime

import msgspec
from aiohttp import web

from jetlake.dashboard.keys import session_of
from jetlake.dashboard.message_view import view_message
from jetlake.dashboard.pages.page import Route
from jetlake.dashboard.pages.stream_frame import (
    StreamFrame,
    address_of,
    read_number,
    render_in_stream,
    stream_of,
)
from jetlake.dashboard.rendering import attachment, command_line
from jetlake.dashboard.session_api import SessionApi
from jetlake.dashboard.stored_messages import (
    MessagePage,
    StoredMessage,
    check_pattern,
    message_at,
    page_before,
    page_from,
    sequence_at,
)
from jetlake.errors import ApiError, ConfigurationError
from jetlake.presentation.quantities import read_duration
from jetlake.presentation.timestamps import before_now

__all__ = ["ROUTES"]

PATH = "/streams/{stream}/messages"


class WantedMessages(msgspec.Struct, frozen=True, kw_only=True):
    """Which messages a page shows: from a sequence or time on, before a sequence, or the newest."""

    pattern: str
    begin: int
    before: int
    time: str

    @property
    def is_newest(self) -> bool:
        return not (self.begin or self.before or self.time)


async def show(request: web.Request) -> web.Response:
    """Show one page of messages."""
    stream = await stream_of(request)
    words = request.query
    wanted = WantedMessages(
        pattern=check_pattern(words.get("filter", "").strip()),
        begin=read_number(words.get("from", ""), "The sequence"),
        before=read_number(words.get("before", ""), "The sequence"),
        time=words.get("time", "").strip(),
    )
    page = await _page(session_of(request).api, stream, wanted)

    def link(**query: int | str) -> str:
        texts = {"filter": wanted.pattern} | {key: str(value) for key, value in query.items()}
        return address_of(request, "stream.messages", texts, stream=stream.name)

    first, last = (page.messages[0].sequence, page.messages[-1].sequence) if page.messages else (0, 0)
    return render_in_stream(
        request,
        "stream_messages.html",
        stream,
        tab="stream.messages",
        wanted=wanted,
        listed=page.messages,
        links={
            "First": link(**{"from": stream.first_sequence}) if page.has_older else "",
            "Older": link(before=first) if page.has_older and first else "",
            "Newer": link(**{"from": last + 1}) if page.has_newer and not wanted.is_newest and last else "",
            "Newest": "" if wanted.is_newest else link(),
        },
        command=_command(request, stream, wanted, first),
        publish_command=command_line(request, "pub", stream.sample_subject or "SUBJECT", "hello"),
    )


async def show_message(request: web.Request) -> web.Response:
    """Show one message."""
    stream = await stream_of(request)
    message = await _message(request, stream)
    return render_in_stream(
        request,
        "message.html",
        stream,
        tab="stream.messages",
        message=message,
        view=view_message(message, request.query.get("as", "")),
        has_older=message.sequence > stream.first_sequence,
        has_newer=message.sequence < stream.last_sequence,
        command=command_line(request, "stream", "get", stream.name, str(message.sequence)),
    )


async def download(request: web.Request) -> web.Response:
    """Send the payload of a message as a file."""
    stream = await stream_of(request)
    message = await _message(request, stream)
    return attachment(message.payload, f"{stream.name}-{message.sequence}.bin")


def read_time_field(text: str) -> str:
    """Return a time as the API has it: from `10m` (ago), or a date and a time, in UTC unless it says otherwise.

    Raises `ConfigurationError`.
    """
    try:
        return before_now(read_duration(text))
    except ValueError:
        pass
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigurationError(
            f"{text[:40]!r} is not a time: write 10m for ten minutes ago, or 2030-01-31 12:00:00."
        ) from error
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).isoformat()


async def _page(api: SessionApi, stream: StreamFrame, wanted: WantedMessages) -> MessagePage:
    first = stream.first_sequence
    begin = wanted.begin
    if wanted.time:
        found = await sequence_at(api, stream.name, read_time_field(wanted.time))
        begin = stream.last_sequence + 1 if found is None else found
    if begin:
        return await page_from(api, stream.name, begin, wanted.pattern, first_sequence=first)
    before = wanted.before or stream.last_sequence + 1
    return await page_before(api, stream.name, before, wanted.pattern, first_sequence=first)


async def _message(request: web.Request, stream: StreamFrame) -> StoredMessage:
    sequence = read_number(request.match_info["sequence"], "The sequence")
    found = await message_at(session_of(request).api, stream.name, sequence) if sequence else None
    if found is None:
        raise ApiError(
            404, 0, f"Stream {stream.name} has no message {sequence:,}. It was deleted, or has reached a limit."
        )
    return found


def _command(request: web.Request, stream: StreamFrame, wanted: WantedMessages, first: int) -> str:
    flags = (["--id", str(first)] if first else []) + (["--subject", wanted.pattern] if wanted.pattern else [])
    return command_line(request, "stream", "view", stream.name, *flags)


ROUTES = (
    Route("GET", PATH, show, name="stream.messages"),
    Route("GET", PATH + "/{sequence}", show_message, name="stream.message"),
    Route("GET", PATH + "/{sequence}/payload", download, name="stream.payload"),
)
