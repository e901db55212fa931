"""The keys of one bucket: in pages, by prefix or pattern, kept up to date while the page is open.

Invariant: whatever a bucket holds, `KEYS_MAX` keys are read without their values, and 25 values for their beginnings.
"""

from typing import NamedTuple
from urllib.parse import urlencode

import msgspec
from aiohttp import web

from jetlake.dashboard.keys import session_of
from jetlake.dashboard.listing import Listing, ListQuery, cached, is_unchanged
from jetlake.dashboard.pages.page import Route
from jetlake.dashboard.payloads import PayloadEdit, preview_of
from jetlake.dashboard.rendering import command_line, render
from jetlake.dashboard.sessions import Session
from jetlake.errors import ClientError, ConfigurationError
from jetlake.kv.bucket import Bucket, BucketStatus
from jetlake.kv.buckets import Buckets, layout_of
from jetlake.kv.codecs import codec_of
from jetlake.kv.names import check_filter
from jetlake.kv.watching import Layout

__all__ = ["OpenBucket", "key_address", "open_bucket"]

PATH = "/kv"

KEYS_MAX = 50_000
"""Keys read for one list, some ten megabytes; in a bucket with more of them a prefix chooses."""

LIVE_KEYS_MAX = 5_000
"""A list of more keys is not read again while it is open: that would keep server and dashboard busy."""


class KeyRow(msgspec.Struct, frozen=True):
    """What the list shows of a key."""

    key: str
    revision: int
    created: str
    size_bytes: int
    # The beginning of the value; empty if it cannot be read.
    preview: str = ""


class OpenBucket(NamedTuple):
    """A bucket with what is known about it."""

    bucket: Bucket[bytes]
    status: BucketStatus
    layout: Layout


async def open_bucket(session: Session, name: str) -> OpenBucket:
    """Open a bucket. Raises `NotFoundError`."""
    status = await Buckets(session.api).status(name)
    layout = layout_of(status.stream["config"], session.api.access)
    return OpenBucket(Bucket(session.api, layout, codec_of(bytes)), status, layout)


def key_address(bucket: str, key: str, *, action: str = "key", **words: object) -> str:
    """Return the address of a key; it is not part of the path, because keys may contain slashes."""
    return f"{PATH}/{bucket}/{action}?{urlencode({'key': key, **words})}"


async def show(request: web.Request) -> web.Response:
    """Show one page of the keys."""
    session = session_of(request)
    opened = await open_bucket(session, request.match_info["bucket"])
    status = opened.status
    mark = f"{status.last_revision}.{status.values}"
    if is_unchanged(request, mark):
        return web.Response(status=204)
    query = ListQuery.of(request)
    pattern, problem = _pattern_of(query.text)
    # The state is part of the name: what was read is used while nothing has changed.
    rows = await cached(session, f"keys of {status.bucket} {pattern} {mark}", lambda: _read_keys(opened, pattern))
    is_wild = any(letter in query.text for letter in "*>")
    matching = rows if is_wild else [row for row in rows if row.key.startswith(query.text)]
    listing = query.page_of_rows(matching, total=max(status.keys, len(rows)))
    return render(
        request,
        "kv_bucket.html",
        bucket=status,
        listing=await _with_previews(session, opened, listing),
        mark=mark,
        problem=problem,
        is_cut=len(rows) >= KEYS_MAX,
        is_live=len(rows) <= LIVE_KEYS_MAX,
        keys_max=KEYS_MAX,
        key_address=key_address,
        edit=PayloadEdit("text", ""),
        command=command_line(request, "kv", "keys", status.bucket),
        first_key=command_line(request, "kv", "put", status.bucket, "greeting", "hello"),
    )


def _pattern_of(text: str) -> tuple[str, str]:
    """Return the pattern to request, and why the given one is invalid: then all keys are shown."""
    if not text:
        return ">", ""
    if any(letter in text for letter in "*>"):
        wanted = text
    else:
        # Whole tokens choose on the server; the rest of a prefix is compared here.
        whole, dot, _ = text.rpartition(".")
        wanted = f"{whole}.>" if dot and whole else ">"
    try:
        return check_filter(wanted), ""
    except ConfigurationError as error:
        return ">", str(error)


async def _read_keys(opened: OpenBucket, pattern: str) -> list[KeyRow]:
    found: dict[str, KeyRow] = {}
    async with opened.bucket.watch(pattern, meta_only=True) as watcher:
        while len(found) < KEYS_MAX and (entries := await watcher.batch()) is not None:
            for entry in entries:
                # A key may come twice if it is changed while we read.
                found.pop(entry.key, None)
                if not entry.is_deleted:
                    created = entry.created.isoformat()
                    found[entry.key] = KeyRow(entry.key, entry.revision, created, entry.size_bytes or 0)
    return sorted(found.values(), key=lambda row: row.key)[:KEYS_MAX]


async def _with_previews(session: Session, opened: OpenBucket, listing: Listing[KeyRow]) -> Listing[KeyRow]:
    by_key = {row.key: row for row in listing.rows}
    direct = session.api.access.api_subject(f"DIRECT.GET.{opened.layout.stream}")

    async def read(key: str) -> KeyRow:
        row = by_key[key]
        try:
            work = opened.bucket.get(key, revision=row.revision)
            entry = await session.api.until_refused(work, direct, f"{direct}.>")
        except (ClientError, ConfigurationError):
            # Replaced meanwhile, not for this user, or a key that no client writes: its row is there without it.
            return row
        return msgspec.structs.replace(row, preview=preview_of(entry.value or b""))

    whole = ListQuery(path=listing.query.path)
    rows = (await whole.page_of_names(list(by_key), read)).rows
    return msgspec.structs.replace(listing, rows=rows)


ROUTES = (Route("GET", PATH + "/{bucket}", show, name="bucket"),)
