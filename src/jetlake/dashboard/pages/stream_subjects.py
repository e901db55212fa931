"""The subjects of a stream as a tree with counts; each level is read when it is opened."""

from aiohttp import web

from jetlake.dashboard.keys import session_of
from jetlake.dashboard.pages.page import Route
from jetlake.dashboard.pages.stream_frame import read_number, render_in_stream, stream_of
from jetlake.dashboard.rendering import command_line, is_fragment
from jetlake.dashboard.stored_messages import check_pattern
from jetlake.dashboard.subject_tree import read_level

__all__ = ["ROUTES"]

PATH = "/streams/{stream}/subjects"


async def show(request: web.Request) -> web.Response:
    """Show the tree below a prefix, or one level of it for a branch that was opened."""
    stream = await stream_of(request)
    words = request.query
    prefix = check_pattern(words.get("prefix", "").strip().removesuffix(".>").strip("."))
    level = await read_level(
        session_of(request).api,
        stream.name,
        prefix,
        first=read_number(words.get("first", ""), "first"),
    )
    return render_in_stream(
        request,
        "subject_level.html" if is_fragment(request) and "level" in words else "stream_subjects.html",
        stream,
        tab="stream.subjects",
        level=level,
        command=command_line(request, "stream", "subjects", stream.name, *([f"{prefix}.>"] if prefix else [])),
        publish_command=command_line(request, "pub", stream.sample_subject or "SUBJECT", "hello"),
    )


ROUTES = (Route("GET", PATH, show, name="stream.subjects"),)
