"""Edit the configuration of a stream: the usual limits in a form, everything as JSON, and a preview of what changes.

Invariant: what is applied is what the preview has shown; a configuration that was changed meanwhile is not overwritten.
"""

from typing import Any

import msgspec
from aiohttp import web

from jetlake.client.api import token
from jetlake.dashboard.confirmation import ConfirmationDialog, check_confirmed, confirm, done
from jetlake.dashboard.keys import session_of
from jetlake.dashboard.pages.page import Route
from jetlake.dashboard.pages.stream_frame import StreamFrame, address_of, render_in_stream, stream_of
from jetlake.dashboard.rendering import command_line
from jetlake.errors import ConfigurationError
from jetlake.presentation.changes import changes, shown_value
from jetlake.presentation.quantities import read_duration, read_size
from jetlake.units import write_duration, write_size

__all__ = ["ROUTES", "read_json", "written_json"]

PATH = "/streams/{stream}/edit"

LIMITS = (
    ("max_msgs", "Messages at most", "count"),
    ("max_msgs_per_subject", "Messages per subject at most", "count"),
    ("max_bytes", "Size at most", "size"),
    ("max_age", "Age at most", "time"),
    ("max_msg_size", "Size of a message at most", "size"),
    ("max_consumers", "Consumers at most", "count"),
    ("duplicate_window", "Duplicate window", "time"),
)
"""Fields of the form with their names and kinds; an empty limit means no limit."""

UNLIMITED = {"count": -1, "size": -1, "time": 0}


async def show(request: web.Request) -> web.Response:
    """Show the form."""
    stream = await stream_of(request)
    return render_in_stream(
        request,
        "stream_edit.html",
        stream,
        tab="stream",
        limits=[(name, title, kind, _written(stream.config.get(name), kind)) for name, title, kind in LIMITS],
        subjects="\n".join(stream.config.get("subjects") or []),
        whole=written_json(stream.config),
        command=command_line(request, "stream", "edit", stream.name, "--interactive"),
    )


async def preview(request: web.Request) -> web.Response:
    """Show what an edit would change, and ask."""
    stream = await stream_of(request)
    form = await request.post()
    after = read_json(str(form["config"])) if "config" in form else _filled(stream.config, dict(form))
    if after.get("name", stream.name) != stream.name:
        raise ConfigurationError(f"A stream cannot be renamed: leave the name {stream.name} as it is.")
    after["name"] = stream.name
    found = changes(stream.config, after)
    if not found:
        raise ConfigurationError(f"Stream {stream.name} is like this already: nothing changes.")
    facts = tuple((path, f"{_shown(path, old)} \N{RIGHTWARDS ARROW} {_shown(path, new)}") for path, old, new in found)
    return confirm(
        request,
        ConfirmationDialog(
            title=f"Edit stream {stream.name}",
            facts=facts,
            warning="Messages that exceed a lower limit are deleted at once. This cannot be undone.",
            word=stream.name,
            action=address_of(request, "stream.edit", stream=stream.name),
            button="Apply",
            command=_command(request, stream, found),
            fields=(("before", _encoded(stream.config)), ("after", _encoded(after))),
        ),
    )


async def apply(request: web.Request) -> web.Response:
    """Change the configuration as the preview has shown."""
    stream = await stream_of(request)
    await check_confirmed(request, stream.name)
    form = await request.post()
    before, after = (read_json(str(form.get(name, ""))) for name in ("before", "after"))
    if before != stream.config:
        raise ConfigurationError(
            f"Nothing was changed: the configuration of {stream.name} has been changed since the preview. Look at it "
            "again."
        )
    after["name"] = stream.name
    await session_of(request).api.request(f"STREAM.UPDATE.{token(stream.name)}", after)
    return done(request, f"Changed stream {stream.name}.", address_of(request, "stream", stream=stream.name))


def read_json(text: str) -> dict[str, Any]:
    """Return the configuration in a field. Raises `ConfigurationError`."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise ConfigurationError(f"The configuration is not a JSON object: {error}.") from error


def written_json(config: dict[str, Any]) -> str:
    """Return a configuration for a field, one setting on each line."""
    return msgspec.json.format(msgspec.json.encode(config), indent=2).decode()


def _encoded(config: dict[str, Any]) -> str:
    return msgspec.json.encode(config).decode()


def _filled(config: dict[str, Any], form: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration with what the form says; what it leaves as it was stays exactly that."""
    after = dict(config)
    for name, title, kind in LIMITS:
        text = str(form.get(name, "")).strip()
        if text == _written(config.get(name), kind):
            continue
        after[name] = _read(text, title, kind)
    subjects = [line.strip() for line in str(form.get("subjects", "")).splitlines() if line.strip()]
    if subjects != (config.get("subjects") or []):
        after["subjects"] = subjects
    description = str(form.get("description", "")).strip()
    if description != config.get("description", ""):
        after["description"] = description
    discard = str(form.get("discard", ""))
    if discard in ("old", "new"):
        after["discard"] = discard
    return after


def _read(text: str, title: str, kind: str) -> int:
    if not text:
        return UNLIMITED[kind]
    try:
        match kind:
            case "size":
                return read_size(text)
            case "time":
                return read_duration(text)
            case _:
                return int(text.replace(",", ""))
    except ValueError as error:
        advice = "10GiB" if kind == "size" else "30s, 12h or 7d" if kind == "time" else "a whole number"
        raise ConfigurationError(f"{title} is {text[:40]!r}: write {advice}, or nothing for no limit.") from error


def _written(value: Any, kind: str) -> str:
    if not isinstance(value, int) or value <= 0:
        return ""
    match kind:
        case "size":
            return str(write_size(value))
        case "time":
            return write_duration(value)
        case _:
            return str(value)


def _shown(path: str, value: Any) -> str:
    return "not set" if value is None else shown_value(path, value)


FLAGS = {
    "description": "--description",
    "storage": "--storage",
    "retention": "--retention",
    "discard": "--discard",
    "max_msgs": "--max-msgs",
    "max_msgs_per_subject": "--max-msgs-per-subject",
    "max_bytes": "--max-bytes",
    "max_age": "--max-age",
    "max_msg_size": "--max-msg-size",
    "max_consumers": "--max-consumers",
    "duplicate_window": "--dupe-window",
    "num_replicas": "--replicas",
    "compression": "--compression",
    "subject_delete_marker_ttl": "--subject-del-markers-ttl",
    "mirror.name": "--mirror",
    "mirror.external.api": "--external",
    "mirror.external.deliver": "--external-deliver",
    "subject_transform.src": "--transform-source",
    "subject_transform.dest": "--transform-destination",
    "republish.src": "--republish-source",
    "republish.dest": "--republish-destination",
    "consumer_limits.inactive_threshold": "--limit-consumer-inactive",
    "consumer_limits.max_ack_pending": "--limit-consumer-max-pending",
    "persist_mode": "--persist-mode",
    "placement.cluster": "--cluster",
}
"""Options of `jetlake stream edit` that take one value, by the field they set."""


def _command(request: web.Request, stream: StreamFrame, found: list[tuple[str, Any, Any]]) -> str:
    """Return the command that changes the same; in an editor if a change has no flag here."""
    kinds = {name: kind for name, _, kind in LIMITS}
    flags: list[str] = []
    for path, _, new in found:
        if path == "subjects":
            flags += ["--subjects", ",".join(new or [])]
        elif path in FLAGS and new is not None:
            flags += [FLAGS[path], _written(new, kinds[path]) or str(new) if path in kinds else str(new)]
        else:
            return command_line(request, "stream", "edit", stream.name, "--interactive")
    return command_line(request, "stream", "edit", stream.name, *flags)


ROUTES = (
    Route("GET", PATH, show, name="stream.edit"),
    Route("POST", PATH + "/preview", preview, name="stream.edit.preview"),
    Route("POST", PATH, apply),
)
