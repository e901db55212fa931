"""One consumer: how far it is behind and why; pause, resume, reset with a preview, delete."""

import re
from typing import Any, NamedTuple

from aiohttp import web

from jetlake.client.api import token
from jetlake.dashboard.confirmation import ConfirmationDialog, check_confirmed, confirm, done
from jetlake.dashboard.keys import session_of
from jetlake.dashboard.listing import forget
from jetlake.dashboard.pages.consumers import names_key
from jetlake.dashboard.pages.page import Route
from jetlake.dashboard.pages.stream import facts_of, reasons_for
from jetlake.dashboard.pages.stream_frame import StreamFrame, address_of, read_number, render_in_stream, stream_of
from jetlake.dashboard.profile import ServerProfile
from jetlake.dashboard.rendering import command_line, render
from jetlake.dashboard.session_api import SessionApi
from jetlake.dashboard.stored_messages import StoredMessage, count_from, next_message
from jetlake.errors import ApiError, ConfigurationError
from jetlake.presentation.consumer_facts import consumer_facts
from jetlake.presentation.timestamps import read_timestamp

__all__ = ["ROUTES"]

PATH = "/streams/{stream}/consumers/{consumer}"

RESET_VERSION = (2, 14)
"""The first nats-server that knows CONSUMER.RESET."""


class ShownConsumer(NamedTuple):
    """The consumer that a page is about."""

    stream: StreamFrame
    name: str
    info: dict[str, Any]

    @property
    def patterns(self) -> list[str]:
        config = self.info["config"]
        return list(
            config.get("filter_subjects") or ([config["filter_subject"]] if config.get("filter_subject") else [])
        )

    @property
    def floor(self) -> int:
        """The sequence up to which all is acknowledged."""
        return int(self.info["ack_floor"]["stream_seq"])

    def address(self, request: web.Request) -> str:
        return address_of(request, "consumer", stream=self.stream.name, consumer=self.name)

    def subject(self, request: str) -> str:
        return f"CONSUMER.{request}.{token(self.stream.name)}.{token(self.name)}"


async def show(request: web.Request) -> web.Response:
    """Show the page."""
    session = session_of(request)
    found = await _shown_consumer(request)
    return render_in_stream(
        request,
        "consumer.html",
        found.stream,
        tab="consumers",
        consumer=found,
        info=found.info,
        oldest=await _oldest_unacknowledged(session.api, found),
        reasons=await reasons_for(session, found.stream, found.name),
        facts=facts_of(consumer_facts(found.info)),
        can_reset=offers_reset(session.profile),
        command=command_line(request, "consumer", "info", found.stream.name, found.name),
    )


async def choose_pause(request: web.Request) -> web.Response:
    """Show the dialog that asks until when."""
    found = await _shown_consumer(request)
    command = command_line(request, "consumer", "pause", found.stream.name, found.name, "10m")
    return render(request, "consumer_pause.html", consumer=found, command=command)


async def pause(request: web.Request) -> web.Response:
    """Pause deliveries."""
    found = await _shown_consumer(request)
    text = str((await request.post()).get("until", "")).strip()
    try:
        until = read_timestamp(text)
    except ValueError as error:
        raise ConfigurationError(f"{str(error).rstrip('.')}.") from error
    answer = await session_of(request).api.request(found.subject("PAUSE"), {"pause_until": until})
    if not answer.get("paused"):
        raise ConfigurationError(f"Nothing was changed: {text!r} is in the past. Write how long, such as 10m.")
    return done(request, f"Paused consumer {found.name} until {answer['pause_until']}.", found.address(request))


async def resume(request: web.Request) -> web.Response:
    """End a pause."""
    found = await _shown_consumer(request)
    await session_of(request).api.request(found.subject("PAUSE"), {})
    return done(request, f"Resumed consumer {found.name}.", found.address(request))


async def choose_reset(request: web.Request) -> web.Response:
    """Show the dialog that asks where to restart the consumer."""
    _check_reset(request)
    return render(request, "consumer_reset.html", consumer=await _shown_consumer(request))


async def preview_reset(request: web.Request) -> web.Response:
    """Show what would be delivered again."""
    _check_reset(request)
    found = await _shown_consumer(request)
    sequence = read_number(request.query.get("sequence", ""), "The sequence")
    begin = sequence or found.floor + 1
    total = await count_from(session_of(request).api, found.stream.name, begin, found.patterns)
    # What it had still to deliver would come in any case.
    again = None if total is None else max(0, total - int(found.info.get("num_pending", 0)))
    words = {"sequence": str(sequence or "")}
    return confirm(
        request,
        ConfirmationDialog(
            title=f"Reset consumer {found.name}",
            facts=(
                ("Begins at sequence", f"{begin:,}"),
                ("Delivered again", "unknown: the stream refuses to count" if again is None else f"{again:,} messages"),
                ("Delivered in all", "unknown" if total is None else f"{total:,} messages"),
            ),
            warning="Clients receive these messages again, also those that they have acknowledged.",
            word=found.name,
            action=address_of(request, "consumer.reset", words, stream=found.stream.name, consumer=found.name),
            button="Reset",
            command=command_line(
                request,
                *("consumer", "reset", found.stream.name, found.name),
                *(["--sequence", str(sequence)] if sequence else []),
            ),
        ),
    )


async def reset(request: web.Request) -> web.Response:
    """Have the consumer begin again."""
    _check_reset(request)
    found = await _shown_consumer(request)
    await check_confirmed(request, found.name)
    sequence = read_number(request.query.get("sequence", ""), "The sequence")
    answer = await session_of(request).api.request(found.subject("RESET"), {"seq": sequence} if sequence else None)
    begin = int(answer.get("reset_seq", sequence))
    return done(request, f"Consumer {found.name} begins again at sequence {begin:,}.", found.address(request))


async def preview_delete(request: web.Request) -> web.Response:
    """Show what would be lost with the consumer."""
    found = await _shown_consumer(request)
    info = found.info
    return confirm(
        request,
        ConfirmationDialog(
            title=f"Delete consumer {found.name}",
            facts=(
                ("Stream", found.stream.name),
                ("Not delivered yet", f"{info.get('num_pending', 0):,} messages"),
                ("Unacknowledged", f"{info.get('num_ack_pending', 0):,} messages"),
            ),
            warning="The consumer is deleted with its position. The messages stay in their stream.",
            word=found.name,
            action=address_of(request, "consumer.delete", stream=found.stream.name, consumer=found.name),
            button="Delete",
            command=command_line(request, "consumer", "rm", found.stream.name, found.name),
        ),
    )


async def delete(request: web.Request) -> web.Response:
    """Delete the consumer."""
    found = await _shown_consumer(request)
    await check_confirmed(request, found.name)
    session = session_of(request)
    await session.api.request(found.subject("DELETE"))
    forget(session, names_key(found.stream.name))
    address = address_of(request, "consumers", stream=found.stream.name)
    return done(request, f"Deleted consumer {found.name} of stream {found.stream.name}.", address)


def offers_reset(profile: ServerProfile) -> bool:
    """Tell whether the server can reset a consumer."""
    numbers = re.match(r"(\d+)\.(\d+)", profile.version)
    return profile.is_jetlake or (numbers is not None and (int(numbers[1]), int(numbers[2])) >= RESET_VERSION)


def _check_reset(request: web.Request) -> None:
    profile = session_of(request).profile
    if not offers_reset(profile):
        raise ConfigurationError(
            f"{profile.product} {profile.version} cannot reset a consumer. Create another one that begins elsewhere."
        )


async def _shown_consumer(request: web.Request) -> ShownConsumer:
    stream = await stream_of(request)
    name = request.match_info["consumer"]
    info = await session_of(request).api.find(f"CONSUMER.INFO.{token(stream.name)}.{token(name)}")
    if info is None:
        raise ApiError(404, 0, f"Stream {stream.name} has no consumer {name}. It was deleted, or has expired.")
    return ShownConsumer(stream, name, info)


async def _oldest_unacknowledged(api: SessionApi, found: ShownConsumer) -> StoredMessage | None:
    """Return the first delivered message that is not acknowledged, or None."""
    if not found.info.get("num_ack_pending"):
        return None
    nexts = [await next_message(api, found.stream.name, found.floor + 1, each) for each in found.patterns or [""]]
    return min((each for each in nexts if each is not None), key=lambda each: each.sequence, default=None)


ROUTES = (
    Route("GET", PATH, show, name="consumer"),
    Route("GET", PATH + "/pause", choose_pause, name="consumer.pause"),
    Route("POST", PATH + "/pause", pause),
    Route("POST", PATH + "/resume", resume, name="consumer.resume"),
    Route("GET", PATH + "/reset/choose", choose_reset, name="consumer.reset.choose"),
    Route("GET", PATH + "/reset", preview_reset, name="consumer.reset"),
    Route("POST", PATH + "/reset", reset),
    Route("GET", PATH + "/delete", preview_delete, name="consumer.delete"),
    Route("POST", PATH + "/delete", delete),
)
