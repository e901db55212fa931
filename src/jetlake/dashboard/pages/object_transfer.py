"""Contents of objects, up and down: in pieces between browser and server, never as a whole in memory.

Progress of an upload is shown by `static/upload.js`; that of a download by the browser itself, which knows the size.

Invariant: one transfer holds at most the windows of `jetlake.objects` and one piece; a download that fails ends
without its last byte, so that the browser knows.
"""

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager

from aiohttp import BodyPartReader, web

from jetlake.dashboard.confirmation import done
from jetlake.dashboard.guard import protect_answer
from jetlake.dashboard.keys import session_of
from jetlake.dashboard.pages.page import Route
from jetlake.dashboard.rendering import attachment_headers
from jetlake.errors import ClientError, ConfigurationError
from jetlake.objects.downloading import download as read_contents
from jetlake.objects.names import SUBJECT_PREFIX
from jetlake.objects.store import ObjectStore
from jetlake.objects.stores import Stores
from jetlake.units import shown_size

__all__ = ["PATH", "ROUTES", "UPLOAD_BYTES_MAX"]

PATH = "/objects"

UPLOAD_BYTES_MAX = 4 * 1024**3
"""Of one file: an hour at the speed of a good line. Larger ones are for `jetlake object put`, beside the server."""

FORM_BYTES = 64 * 1024
"""What a form may add to the size of its file: the name, and the lines between its parts."""

NAME_BYTES_MAX = 4 * 1024
"""Of the name of an object, whose encoding has to fit into a subject."""

PIECE_BYTES = 64 * 1024
"""Read at once from a browser."""

TRANSFERS_MAX = 8
"""At once, for all sessions: each holds up to some ten megabytes."""

LOG = logging.getLogger("jetlake.dashboard")


class Transfers:
    """Counts the transfers of this process, whose memory they share."""

    def __init__(self) -> None:
        self._count = 0

    @contextmanager
    def one(self) -> Iterator[None]:
        """Be one of them. Raises `ClientError` if there are too many."""
        if self._count >= TRANSFERS_MAX:
            raise ClientError(f"{TRANSFERS_MAX} transfers are running. Try again when one of them has ended.")
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1


_transfers = Transfers()


async def upload(request: web.Request) -> web.Response:
    """Store a file of a form: the field `name` first, if the object has another one, then the field `file`."""
    session = session_of(request)
    store = await Stores(session.api).open(request.match_info["store"])
    if request.content_type != "multipart/form-data":
        raise ConfigurationError("The form has no file. Load the page again.")
    if request.content_length is not None and request.content_length > UPLOAD_BYTES_MAX + FORM_BYTES:
        raise ConfigurationError(_too_large())
    name = ""
    with _transfers.one():
        form = await request.multipart()
        while (part := await form.next()) is not None:
            if not isinstance(part, BodyPartReader):
                continue
            if part.name == "name":
                name = (await _read_name(part)).strip()
            elif part.name == "file" and (part.filename or name):
                name = name or str(part.filename)
                work = store.put(name, _pieces(part))
                info = await session.api.until_refused(work, f"{SUBJECT_PREFIX}{store.name}.>")
                told = f"Stored object {name} of {store.name}: {shown_size(info.size)}."
                return done(request, told, f"{PATH}/{store.name}")
    raise ConfigurationError("No file was chosen. Choose one and upload it.")


async def download(request: web.Request) -> web.StreamResponse:
    """Send the contents of an object as a file; links are followed."""
    session = session_of(request)
    store = ObjectStore(session.api, request.match_info["store"])
    name = request.query.get("name", "")
    info = await store.resolve(name)
    response = web.StreamResponse(headers=attachment_headers(name))
    response.content_length = info.size
    protect_answer(request, response)
    with _transfers.one():
        await response.prepare(request)
        try:
            async with aclosing(read_contents(session.api, info)) as contents:
                async for pieces in contents:
                    for piece in pieces:
                        await response.write(piece)
        except ConnectionError:
            # The browser has stopped it.
            pass
        except ClientError as error:
            # The head is sent: only a connection that breaks tells the browser that the file is not complete.
            LOG.warning("the download of %r from %s failed: %s", name, store.name, error)
            if request.transport is not None:
                request.transport.abort()
    return response


async def _pieces(part: BodyPartReader) -> AsyncIterator[bytes]:
    size_bytes = 0
    try:
        while piece := await part.read_chunk(PIECE_BYTES):
            size_bytes += len(piece)
            if size_bytes > UPLOAD_BYTES_MAX:
                raise ConfigurationError(_too_large())
            yield piece
    except (ConnectionError, ValueError) as error:
        # The browser has stopped it, or has not sent the end of the form.
        raise ClientError("The upload was interrupted: nothing is stored. Try again.") from error


async def _read_name(part: BodyPartReader) -> str:
    data = await part.read_chunk(NAME_BYTES_MAX + 1)
    if len(data) > NAME_BYTES_MAX or await part.read_chunk(1):
        raise ConfigurationError(f"The name is too long: an object's name has at most {NAME_BYTES_MAX:,} bytes.")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ConfigurationError("The name is not text: give another one.") from error


def _too_large() -> str:
    return (
        f"The file is too large: the dashboard takes {shown_size(UPLOAD_BYTES_MAX)}. Upload it with "
        "`jetlake object put` instead."
    )


ROUTES = (
    Route("POST", PATH + "/{store}/upload", upload, name="store.upload"),
    Route("GET", PATH + "/{store}/download", download),
)
