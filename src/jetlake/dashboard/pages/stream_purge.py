"""Purge a stream: all of it, a subject, up to a sequence, or all but the newest; a preview counts the messages."""

from typing import Any

import msgspec
from aiohttp import web

from jetlake.client.api import token
from jetlake.dashboard.confirmation import ConfirmationDialog, check_confirmed, confirm, done
from jetlake.dashboard.keys import session_of
from jetlake.dashboard.pages.page import Route
from jetlake.dashboard.pages.stream_frame import StreamFrame, address_of, read_number, stream_of
from jetlake.dashboard.rendering import command_line, render
from jetlake.dashboard.session_api import SessionApi
from jetlake.dashboard.stored_messages import check_pattern, count_from
from jetlake.errors import ConfigurationError
from jetlake.units import shown_size

__all__ = ["ROUTES"]

PATH = "/streams/{stream}/purge"


class Purge(msgspec.Struct, frozen=True, kw_only=True):
    """Which messages go, as the address says."""

    pattern: str = ""
    # Messages before this sequence; 0 = all.
    sequence: int = 0
    keep: int = 0

    @classmethod
    def of(cls, request: web.Request) -> "Purge":
        """Read the address. Raises `ConfigurationError`."""
        words = request.query
        made = cls(
            pattern=check_pattern(words.get("filter", "").strip()),
            sequence=read_number(words.get("sequence", ""), "The sequence"),
            keep=read_number(words.get("keep", ""), "The number of messages to keep"),
        )
        if made.sequence and made.keep:
            raise ConfigurationError("Give a sequence or a number of messages to keep, not both: servers refuse that.")
        return made

    def body(self) -> dict[str, Any]:
        """Return the request."""
        fields = {"filter": self.pattern, "seq": self.sequence, "keep": self.keep}
        return {key: value for key, value in fields.items() if value}

    def words(self) -> dict[str, str]:
        """Return the fields of the address."""
        return {
            "filter": self.pattern,
            "sequence": str(self.sequence or ""),
            "keep": str(self.keep or ""),
        }


async def choose(request: web.Request) -> web.Response:
    """Show the dialog that asks which messages to remove."""
    stream = await stream_of(request)
    return render(request, "purge_choice.html", stream=stream)


async def preview(request: web.Request) -> web.Response:
    """Show what a purge would delete."""
    stream = await stream_of(request)
    purge = Purge.of(request)
    flags = [
        *(["--subject", purge.pattern] if purge.pattern else []),
        *(["--seq", str(purge.sequence)] if purge.sequence else []),
        *(["--keep", str(purge.keep)] if purge.keep else []),
    ]
    return confirm(
        request,
        ConfirmationDialog(
            title=f"Purge stream {stream.name}",
            facts=tuple(await _facts(session_of(request).api, stream, purge)),
            warning=(
                "These messages are deleted. The stream and its consumers stay. This cannot be undone."
                if flags
                else "All messages are deleted. The stream and its consumers stay. This cannot be undone."
            ),
            word=stream.name,
            action=address_of(request, "stream.purge", purge.words(), stream=stream.name),
            button="Purge",
            command=command_line(request, "stream", "purge", stream.name, *flags),
        ),
    )


async def purge(request: web.Request) -> web.Response:
    """Delete the messages."""
    name = request.match_info["stream"]
    await check_confirmed(request, name)
    wanted = Purge.of(request)
    answer = await session_of(request).api.request(f"STREAM.PURGE.{token(name)}", wanted.body() or None)
    address = address_of(request, "stream", stream=name) if wanted.body() else address_of(request, "streams")
    return done(request, f"Purged {answer['purged']:,} messages of stream {name}.", address)


async def _facts(api: SessionApi, stream: StreamFrame, purge: Purge) -> list[tuple[str, str]]:
    total = int(stream.state["messages"])
    matching = await count_from(api, stream.name, 1, [purge.pattern]) if purge.pattern else total
    lost = matching
    if purge.sequence and matching is not None:
        stay = await count_from(api, stream.name, purge.sequence, [purge.pattern] if purge.pattern else [])
        lost = None if stay is None else max(0, matching - stay)
    elif purge.keep and matching is not None:
        lost = max(0, matching - purge.keep)
    facts = [("Messages deleted", f"at most {total:,}" if lost is None else f"{lost:,} of {total:,}")]
    if purge.pattern:
        facts.append(("Subject", purge.pattern))
    if purge.sequence:
        facts.append(("Before sequence", f"{purge.sequence:,}"))
    if purge.keep:
        facts.append(("Newest kept", f"{purge.keep:,}"))
    if not purge.body():
        facts.append(("Size", shown_size(stream.state["bytes"])))
    return [*facts, ("Consumers", f"{stream.state.get('consumer_count', 0):,}")]


ROUTES = (
    Route("GET", PATH + "/choose", choose, name="stream.purge.choose"),
    Route("GET", PATH, preview, name="stream.purge"),
    Route("POST", PATH, purge),
)
