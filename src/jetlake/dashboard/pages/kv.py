"""Key-value buckets: the list of them, and a form that creates one. `kv_bucket` and `kv_key` show what is inside."""

from typing import Any

from aiohttp import web

from jetlake.client.api import token
from jetlake.dashboard.confirmation import done
from jetlake.dashboard.keys import session_of
from jetlake.dashboard.listing import ListQuery, forget
from jetlake.dashboard.pages import kv_bucket, kv_key, streams
from jetlake.dashboard.pages.page import Page, Route, SearchHit
from jetlake.dashboard.profile import Feature
from jetlake.dashboard.rendering import command_line, render
from jetlake.dashboard.sessions import Session
from jetlake.errors import ConfigurationError
from jetlake.kv.bucket import BucketStatus, status_of
from jetlake.kv.buckets import Buckets
from jetlake.kv.config import HISTORY_MAX, REPLICAS_MAX, BucketConfig
from jetlake.kv.names import STREAM_PREFIX
from jetlake.shared.durations import duration_ns
from jetlake.units import SECOND, size_bytes

__all__ = ["PAGE"]

HITS_MAX = 8
"""Buckets that a search names."""

CREATE_PATH = "/new-bucket"
"""Beside the buckets: one of them may be called `new`."""


async def show(request: web.Request) -> web.Response:
    """Show one page of the list."""
    session = session_of(request)
    query = ListQuery.of(request, sorts=("name",))
    listing = await query.page_of_names(await bucket_names(session), lambda name: _read(session, name))
    return render(
        request,
        "kv.html",
        listing=listing,
        command=command_line(request, "kv", "ls"),
        first_bucket=command_line(request, "kv", "add", "CONFIG", "--history", "5"),
    )


async def bucket_names(session: Session) -> list[str]:
    """Return the names of all buckets, read a moment ago at most."""
    names = await streams.stream_names(session)
    return [name.removeprefix(STREAM_PREFIX) for name in names if name.startswith(STREAM_PREFIX)]


async def search(session: Session, text: str) -> list[SearchHit]:
    """Return the buckets whose names contain a text."""
    wanted = text.casefold()
    names = [name for name in await bucket_names(session) if wanted in name.casefold()]
    return [SearchHit("bucket", name, f"{kv_bucket.PATH}/{name}") for name in names[:HITS_MAX]]


async def preview_create(request: web.Request) -> web.Response:
    """Show the form for a new bucket."""
    return render(request, "kv_create.html", action=CREATE_PATH, history_max=HISTORY_MAX, replicas_max=REPLICAS_MAX)


async def create(request: web.Request) -> web.Response:
    """Create a bucket."""
    config = _config_of(await request.post())
    session = session_of(request)
    await Buckets(session.api).create(config)
    forget(session, streams.NAMES)
    forget(session, streams.ROWS)
    return done(request, f"Created bucket {config.bucket}.", f"{kv_bucket.PATH}/{config.bucket}")


def _config_of(form: Any) -> BucketConfig:
    def text(field: str) -> str:
        return str(form.get(field) or "").strip()

    def count(field: str, name: str) -> int:
        word = text(field) or "1"
        if not word.isdecimal() or len(word) > 9:
            raise ConfigurationError(f"{name} is {word!r}: give a number.")
        return int(word)

    lifetime_ns = duration_ns(text("ttl") or "0")
    if lifetime_ns is None:
        raise ConfigurationError(f"{text('ttl')!r} is not a time: write 30s, 1h30m or 1d.")
    value_bytes = size_bytes(text("max_value") or "-1")
    if value_bytes is None:
        raise ConfigurationError(f"{text('max_value')!r} is not a size: write 512, 10KiB or 1MiB.")
    return BucketConfig(
        bucket=text("bucket"),
        description=text("description"),
        history=count("history", "History"),
        replicas=count("replicas", "Replicas"),
        ttl_s=lifetime_ns / SECOND,
        max_value_bytes=value_bytes,
        storage="memory" if text("storage") == "memory" else "file",
    )


async def _read(session: Session, name: str) -> BucketStatus | None:
    found = await session.api.find(f"STREAM.INFO.{token(STREAM_PREFIX + name)}")
    return None if found is None else status_of(found)


PAGE = Page(
    title="Key-value",
    path=kv_bucket.PATH,
    shortcut="k",
    needs=Feature.JETSTREAM,
    routes=(
        Route("GET", kv_bucket.PATH, show, name="kv"),
        Route("GET", CREATE_PATH, preview_create, name="kv.create"),
        Route("POST", CREATE_PATH, create),
        *kv_bucket.ROUTES,
        *kv_key.ROUTES,
    ),
    search=search,
)
