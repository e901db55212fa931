"""One key of a bucket: its value, its revisions, two of them compared; put, delete and purge."""

from typing import Any

import msgspec
from aiohttp import web

from jetlake.dashboard.confirmation import ConfirmationDialog, check_confirmed, confirm, done
from jetlake.dashboard.keys import session_of
from jetlake.dashboard.pages.kv_bucket import PATH, OpenBucket, key_address, open_bucket
from jetlake.dashboard.pages.page import Route
from jetlake.dashboard.payloads import DiffLine, differences, edit_of, read_edited, view_of
from jetlake.dashboard.rendering import attachment, command_line, render
from jetlake.dashboard.sessions import Session
from jetlake.errors import ConfigurationError, NotFoundError
from jetlake.kv.entry import Entry
from jetlake.units import shown_size

__all__ = ["ROUTES"]


class RevisionComparison(msgspec.Struct, frozen=True):
    """Two revisions of a key, line by line."""

    before: int
    after: int
    lines: list[DiffLine]
    is_whole: bool


async def show(request: web.Request) -> web.Response:
    """Show a key: the value of one revision, all revisions there are, and two of them compared."""
    session, opened, key = await _opened(request)
    revisions = await _revisions(opened, key)
    if not revisions:
        raise NotFoundError(f"Key {key!r} of bucket {opened.bucket.name} does not exist, and has no history.")
    last = revisions[0]
    chosen = next((entry for entry in revisions if entry.revision == _number(request, "revision")), last)
    value = b"" if chosen.is_deleted else await _value(session, opened, key, chosen.revision)
    current = value if chosen.revision == last.revision else b""
    return render(
        request,
        "kv_key.html",
        bucket=opened.bucket.name,
        key=key,
        revisions=revisions,
        last=last,
        chosen=chosen,
        view=view_of(value, request.query.get("as", "")),
        # Only the newest value is offered for a change: an old one would undo what came after it.
        edit=edit_of(current) if chosen.revision == last.revision else None,
        comparison=await _comparison(request, session, opened, key, revisions),
        key_address=key_address,
        command=command_line(request, "kv", "get", opened.bucket.name, key),
    )


async def download(request: web.Request) -> web.Response:
    """Send the value of a revision as a file."""
    session, opened, key = await _opened(request)
    value = await _value(session, opened, key, _number(request, "revision"))
    return attachment(value, key.replace("/", "_"))


async def put(request: web.Request) -> web.Response:
    """Set a key: in any case, only if it has no value (0), or only if its last revision is the expected one."""
    form = await request.post()
    key = str(form.get("key") or "").strip()
    expected = str(form.get("expected_revision") or "").strip()
    if expected and (not expected.isdecimal() or len(expected) > 19):
        raise ConfigurationError(f"The expected revision is {expected!r}: give a number, or nothing.")
    session = session_of(request)
    opened = await open_bucket(session, request.match_info["bucket"])
    payload = read_edited(form)
    bucket = opened.bucket
    if not expected:
        work = bucket.put(key, payload)
    elif int(expected) == 0:
        work = bucket.create(key, payload)
    else:
        work = bucket.update(key, payload, int(expected))
    revision = await session.api.until_refused(work, opened.layout.write_prefix + key)
    return done(request, f"Put {key} of bucket {bucket.name}: revision {revision}.", key_address(bucket.name, key))


async def preview_delete(request: web.Request) -> web.Response:
    """Show what a delete would do."""
    return await _preview(
        request,
        "delete",
        "del",
        "The key has no value any more. Its earlier revisions stay in the history, as many as the bucket keeps.",
    )


async def preview_purge(request: web.Request) -> web.Response:
    """Show what a purge would do."""
    return await _preview(
        request, "purge", "purge", "The key is deleted with all its revisions. This cannot be undone."
    )


async def delete(request: web.Request) -> web.Response:
    """Delete a key; its history stays."""
    session, opened, key = await _confirmed(request)
    bucket = opened.bucket
    work = bucket.delete(key, revision=_number(request, "revision"))
    await session.api.until_refused(work, opened.layout.write_prefix + key)
    return done(request, f"Deleted {key} of bucket {bucket.name}.", f"{PATH}/{bucket.name}")


async def purge(request: web.Request) -> web.Response:
    """Delete a key with its history."""
    session, opened, key = await _confirmed(request)
    bucket = opened.bucket
    work = bucket.purge(key, revision=_number(request, "revision"))
    await session.api.until_refused(work, opened.layout.write_prefix + key)
    return done(request, f"Purged {key} of bucket {bucket.name}.", f"{PATH}/{bucket.name}")


async def _preview(request: web.Request, action: str, word: str, warning: str) -> web.Response:
    _, opened, key = await _opened(request)
    revisions = await _revisions(opened, key)
    if not revisions:
        raise NotFoundError(f"Key {key!r} of bucket {opened.bucket.name} does not exist any more.")
    last = revisions[0]
    name = opened.bucket.name
    return confirm(
        request,
        ConfirmationDialog(
            title=f"{action.capitalize()} key {key}",
            facts=(
                ("Bucket", name),
                ("Last revision", f"{last.revision:,}"),
                ("Size", shown_size(last.size_bytes or 0)),
                ("Revisions", f"{len(revisions):,}"),
            ),
            warning=f"{warning} If another client changes the key first, nothing happens.",
            word=key,
            # What was previewed is what is deleted.
            action=key_address(name, key, action=action, revision=last.revision),
            button=action.capitalize(),
            command=command_line(request, "kv", word, name, key),
        ),
    )


async def _confirmed(request: web.Request) -> tuple[Session, OpenBucket, str]:
    session, opened, key = await _opened(request)
    await check_confirmed(request, key)
    if not _number(request, "revision"):
        raise ConfigurationError("The address does not say which revision is meant. Load the page again.")
    return session, opened, key


async def _opened(request: web.Request) -> tuple[Session, OpenBucket, str]:
    session = session_of(request)
    return session, await open_bucket(session, request.match_info["bucket"]), request.query.get("key", "")


async def _revisions(opened: OpenBucket, key: str) -> list[Entry[bytes]]:
    """Return the revisions of a key without their values, the newest first."""
    found: list[Entry[bytes]] = []
    async with opened.bucket.watch(key, include_history=True, meta_only=True) as watcher:
        while (entries := await watcher.batch()) is not None:
            found += entries
    return found[::-1]


async def _value(session: Session, opened: OpenBucket, key: str, revision: int) -> bytes:
    direct = session.api.access.api_subject(f"DIRECT.GET.{opened.layout.stream}")
    entry = await session.api.until_refused(opened.bucket.get(key, revision=revision), direct)
    return entry.value or b""


async def _comparison(
    request: web.Request, session: Session, opened: OpenBucket, key: str, revisions: list[Entry[bytes]]
) -> RevisionComparison | None:
    by_number = {entry.revision: entry for entry in revisions}
    before, after = _number(request, "before"), _number(request, "after")
    if before not in by_number or after not in by_number:
        return None

    async def value(number: int) -> bytes:
        return b"" if by_number[number].is_deleted else await _value(session, opened, key, number)

    lines, is_whole = differences(await value(before), await value(after))
    return RevisionComparison(before, after, lines, is_whole)


def _number(request: web.Request, field: str) -> int:
    """Return a number of the address; 0 if it has none."""
    word: Any = request.query.get(field, "")
    return int(word) if word.isdecimal() and len(word) < 20 else 0


ROUTES = (
    Route("GET", PATH + "/{bucket}/key", show, name="key"),
    Route("GET", PATH + "/{bucket}/download", download),
    Route("POST", PATH + "/{bucket}/put", put, name="key.put"),
    Route("GET", PATH + "/{bucket}/delete", preview_delete),
    Route("POST", PATH + "/{bucket}/delete", delete),
    Route("GET", PATH + "/{bucket}/purge", preview_purge),
    Route("POST", PATH + "/{bucket}/purge", purge),
)
