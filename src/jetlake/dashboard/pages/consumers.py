"""The consumers of a stream: how far each is behind; create one."""

from typing import Any

import msgspec
from aiohttp import web

from jetlake.client.api import token
from jetlake.dashboard.confirmation import done
from jetlake.dashboard.keys import session_of
from jetlake.dashboard.listing import ListQuery, cached, forget
from jetlake.dashboard.pages.page import Route
from jetlake.dashboard.pages.stream_browse import read_time_field
from jetlake.dashboard.pages.stream_edit import read_json
from jetlake.dashboard.pages.stream_frame import address_of, read_number, render_in_stream, stream_of
from jetlake.dashboard.rendering import command_line
from jetlake.dashboard.sessions import Session
from jetlake.dashboard.stored_messages import check_pattern
from jetlake.errors import ConfigurationError
from jetlake.presentation.consumer_facts import filters, mode
from jetlake.presentation.quantities import read_duration

__all__ = ["ROUTES", "names_key"]

PATH = "/streams/{stream}/consumers"

STARTS = (
    ("all", "the first message"),
    ("new", "the next new message"),
    ("last", "the last message"),
    ("last_per_subject", "the last message of each subject"),
    ("by_start_sequence", "a sequence"),
    ("by_start_time", "a time"),
)
"""Where a consumer begins: the field, and what people call it."""

ACKNOWLEDGEMENTS = (("explicit", "each message"), ("all", "all up to a message"), ("none", "none"))


class ConsumerRow(msgspec.Struct, frozen=True, kw_only=True):
    """What the list shows of a consumer."""

    name: str
    mode: str
    filters: str
    pending: int
    unacknowledged: int
    redelivered: int
    waiting: int
    is_paused: bool


async def show(request: web.Request) -> web.Response:
    """Show one page of the list."""
    session = session_of(request)
    stream = await stream_of(request)
    query = ListQuery.of(request, sorts=("name",))
    names = await cached(session, names_key(stream.name), lambda: session.api.consumer_names(stream.name))
    listing = await query.page_of_names(names, lambda name: _read_row(session, stream.name, name))
    return render_in_stream(
        request,
        "consumers.html",
        stream,
        tab="consumers",
        listing=listing,
        command=command_line(request, "consumer", "ls", stream.name),
        first_consumer=command_line(request, "consumer", "add", stream.name, "worker", "--defaults"),
    )


async def show_form(request: web.Request) -> web.Response:
    """Show the form for a new consumer."""
    stream = await stream_of(request)
    return render_in_stream(
        request,
        "consumer_form.html",
        stream,
        tab="consumers",
        starts=STARTS,
        acknowledgements=ACKNOWLEDGEMENTS,
        command=command_line(request, "consumer", "add", stream.name, "worker"),
    )


async def create(request: web.Request) -> web.Response:
    """Create the consumer of the form."""
    stream = await stream_of(request)
    form = {key: str(value).strip() for key, value in (await request.post()).items()}
    config = read_json(form["config"]) if "config" in form else _filled(form)
    name = str(config.get("name") or config.get("durable_name") or "")
    if not name:
        raise ConfigurationError("The consumer has no name. Give one, such as worker.")
    session = session_of(request)
    body = {"stream_name": stream.name, "config": config | {"name": name}, "action": "create"}
    await session.api.request(f"CONSUMER.CREATE.{token(stream.name)}.{token(name)}", body)
    forget(session, names_key(stream.name))
    address = address_of(request, "consumer", stream=stream.name, consumer=name)
    return done(request, f"Created consumer {name} of stream {stream.name}.", address)


def names_key(stream: str) -> str:
    """Return the key under which a session keeps the names of a stream's consumers."""
    return f"consumer names of {stream}"


def _filled(form: dict[str, str]) -> dict[str, Any]:
    name = form.get("name", "")
    config: dict[str, Any] = {
        "name": name,
        "durable_name": name,
        "deliver_policy": form.get("deliver_policy", "all"),
        "ack_policy": form.get("ack_policy", "explicit"),
        "replay_policy": "instant",
    }
    patterns = [check_pattern(line.strip()) for line in form.get("filters", "").splitlines() if line.strip()]
    if len(patterns) == 1:
        config["filter_subject"] = patterns[0]
    elif patterns:
        config["filter_subjects"] = patterns
    start = form.get("start", "")
    match config["deliver_policy"]:
        case "by_start_sequence":
            config["opt_start_seq"] = read_number(start, "The sequence")
            if not config["opt_start_seq"]:
                raise ConfigurationError("The consumer begins at a sequence: give one, such as 1000.")
        case "by_start_time":
            config["opt_start_time"] = read_time_field(start)
        case _:
            pass
    for field, title in (("ack_wait", "The acknowledgement wait"), ("inactive_threshold", "The inactive threshold")):
        if form.get(field):
            try:
                config[field] = read_duration(form[field])
            except ValueError as error:
                raise ConfigurationError(f"{title} is {form[field][:40]!r}: write 30s, 5m or 1h.") from error
    for field, title in (("max_deliver", "Deliveries at most"), ("max_ack_pending", "Unacknowledged at most")):
        if number := read_number(form.get(field, ""), title):
            config[field] = number
    return config


async def _read_row(session: Session, stream: str, name: str) -> ConsumerRow | None:
    found = await session.api.find(f"CONSUMER.INFO.{token(stream)}.{token(name)}")
    if found is None:
        return None
    return ConsumerRow(
        name=str(found["name"]),
        mode=mode(found["config"]),
        filters=filters(found["config"]),
        pending=int(found.get("num_pending", 0)),
        unacknowledged=int(found.get("num_ack_pending", 0)),
        redelivered=int(found.get("num_redelivered", 0)),
        waiting=int(found.get("num_waiting", 0)),
        is_paused=bool(found.get("paused")),
    )


ROUTES = (
    Route("GET", PATH, show, name="consumers"),
    # Not below PATH: a consumer may be called like it.
    Route("GET", "/streams/{stream}/create-consumer", show_form, name="consumer.create"),
    Route("POST", "/streams/{stream}/create-consumer", create),
)
