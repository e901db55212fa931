"""Publish one message to a stream, with headers."""

from aiohttp import web

from jetlake.dashboard.confirmation import done
from jetlake.dashboard.keys import session_of
from jetlake.dashboard.pages.page import Route
from jetlake.dashboard.pages.stream_frame import StreamFrame, address_of, render_in_stream, stream_of
from jetlake.dashboard.payloads import PayloadEdit, read_edited
from jetlake.dashboard.rendering import command_line
from jetlake.errors import ApiError, ConfigurationError
from jetlake.shared.subjects import publishable

__all__ = ["ROUTES"]

PATH = "/streams/{stream}/publish"

EXPECTED_STREAM = "Nats-Expected-Stream"
"""A header by which another stream refuses the message."""


async def show(request: web.Request) -> web.Response:
    """Show the form."""
    stream = await stream_of(request)
    subject = request.query.get("subject", "") or stream.subject_start
    return render_in_stream(
        request,
        "stream_publish.html",
        stream,
        tab="stream.publish",
        subject=subject,
        edit=PayloadEdit("text", ""),
        command=command_line(request, "pub", subject or "SUBJECT", "PAYLOAD", "--header", "Name:Value", "--jetstream"),
    )


async def publish(request: web.Request) -> web.Response:
    """Publish the message of the form and show it."""
    stream = await stream_of(request)
    form = await request.post()
    subject = publishable(str(form.get("subject", "")).strip())
    headers = read_headers(str(form.get("headers", "")))
    sequence = await _store(request, stream, subject, read_edited(form), headers)
    address = address_of(request, "stream.message", stream=stream.name, sequence=str(sequence))
    return done(request, f"Stored message {sequence:,} on subject {subject}.", address)


def read_headers(text: str) -> dict[str, str]:
    """Return headers written as `Name: Value`, one on each line. Raises `ConfigurationError`."""
    headers: dict[str, str] = {}
    for line in text.splitlines():
        if not line.strip():
            continue
        name, colon, value = line.partition(":")
        if not colon or not name.strip() or not name.strip().isprintable() or " " in name.strip():
            raise ConfigurationError(f"{line[:60]!r} is not a header: write Name: Value, one on each line.")
        headers[name.strip()] = value.strip()
    return headers


async def _store(
    request: web.Request, stream: StreamFrame, subject: str, payload: bytes, headers: dict[str, str]
) -> int:
    api = session_of(request).api
    if stream.name not in await api.stream_names(subject):
        listens = ", ".join(stream.config.get("subjects") or []) or "none"
        raise ConfigurationError(
            f"Stream {stream.name} is not listening on subject {subject!r}. Its subjects: {listens}."
        )
    answer = await api.ask(subject, payload, headers={**headers, EXPECTED_STREAM: stream.name})
    refusal = answer.get("error")
    if isinstance(refusal, dict):
        description = str(refusal.get("description", "refused"))
        raise ApiError(int(refusal.get("code", 0)), int(refusal.get("err_code", 0)), description)
    return int(answer["seq"])


ROUTES = (
    Route("GET", PATH, show, name="stream.publish"),
    Route("POST", PATH, publish),
)
