"""The endpoints of streams: create, update, names, list, info, delete, purge.

Each reads: parse the request, decide, act, answer. What one returns are the fields of its answer; what it refuses it
raises as `RequestError`.

Invariant: nothing has changed when an `RequestError` is raised.
"""

import time
from collections.abc import Callable
from typing import Any

import msgspec

from jetlake.management.catalog.streams import StreamCatalog
from jetlake.management.requests.advisories import Advisories
from jetlake.management.requests.calls import Call, Granted, Steps
from jetlake.management.requests.rights import check_stream_targets
from jetlake.management.settings import ManagementSettings
from jetlake.management.streams import requests as stream_requests
from jetlake.management.streams.info import count_subjects, describe
from jetlake.management.streams.state import StateQuery, StreamState
from jetlake.management.streams.stream import Stream
from jetlake.management.wire.error_codes import ErrorCode, RequestError
from jetlake.management.wire.json_types import Boolean, Integer, Record, RecordField, Text
from jetlake.management.wire.paging import DESCRIPTIONS_MAX, NAMES_MAX, SUBJECTS_MAX, page_of

SUBJECTS_OFFSET_MAX = 2**31
"""More than a stream has subjects; the engine never gets larger numbers."""

CONSUMERS_TOLD_PER_STEP = 500
"""Consumers of a deleted stream that are reported in one turn of a lane: up to some twenty milliseconds."""

_INT = Integer("int", -(2**63), 2**63 - 1)
_UINT64 = Integer("uint64", 0, 2**64 - 1)
_TEXT = Text()


class StreamListRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The streams to list; an empty subject means all."""

    offset: int = 0
    subject: str = ""


class InfoRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The details of a stream to return besides its numbers."""

    offset: int = 0
    deleted_details: bool = False
    subjects_filter: str = ""


class PurgeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The messages to remove; an empty request means all."""

    filter: str = ""
    seq: int = 0
    keep: int = 0


_LIST_FIELDS = (RecordField("offset", _INT), RecordField("subject", _TEXT))
_NAMES_REQUEST = Record("server.JSApiStreamNamesRequest", StreamListRequest, _LIST_FIELDS, can_be_absent=False)
_LIST_REQUEST = Record("server.JSApiStreamListRequest", StreamListRequest, _LIST_FIELDS, can_be_absent=False)
_INFO_REQUEST = Record(
    "server.JSApiStreamInfoRequest",
    InfoRequest,
    (RecordField("offset", _INT), RecordField("deleted_details", Boolean()), RecordField("subjects_filter", _TEXT)),
    can_be_absent=False,
)
_PURGE_REQUEST = Record(
    "server.JSApiStreamPurgeRequest",
    PurgeRequest,
    (RecordField("seq", _UINT64), RecordField("filter", _TEXT), RecordField("keep", _UINT64)),
    can_be_absent=False,
)


class StreamEndpoints:
    """The endpoints, with what they work on. `settings` returns those in force."""

    def __init__(
        self,
        catalog: StreamCatalog,
        advisories: Advisories,
        settings: Callable[[], ManagementSettings],
        *,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._catalog = catalog
        self._advisories = advisories
        self._settings = settings
        self._clock = clock

    def create(self, call: Call) -> dict[str, Any]:
        """Make the stream, or find it made already just as it is asked for."""
        self._catalog.check_online(call.account, call.stream)
        context = self._catalog.context(call.account, self._settings())
        decision = stream_requests.create(call.stream, call.body, context, is_strict=call.is_strict)
        if decision.is_unchanged:
            stream = self._catalog.find(call.account, call.stream)
        else:
            check_stream_targets(call, decision.config)
            stream = self._catalog.create(call.account, decision.config)
            self._advisories.tell_stream_action(call.account, call.stream, "create")
        return {**self._describe(call.account, stream), "did_create": True}

    def update(self, call: Call) -> dict[str, Any]:
        """Change the stream to what is asked for, and tell so even when that is what it was."""
        self._catalog.check_online(call.account, call.stream)
        settings = self._settings()
        context = self._catalog.context(call.account, settings, call.stream)
        decision = stream_requests.update(call.stream, call.body, context, is_strict=call.is_strict)
        if decision.is_unchanged:
            stream = self._catalog.find(call.account, call.stream)
        else:
            current = self._catalog.find(call.account, call.stream).config
            check_stream_targets(call, decision.config, current)
            stream = self._catalog.update(call.account, decision.config)
        self._advisories.tell_stream_action(call.account, call.stream, "modify")
        return self._describe(call.account, stream, domain=settings.domain)

    def names(self, call: Call) -> dict[str, Any]:
        """Return the names, all or those of streams that take some of a subject."""
        request: StreamListRequest = call.read_optional(_NAMES_REQUEST)
        page = page_of(self._names(call.account, request.subject), request.offset, NAMES_MAX)
        return {**page.fields, "streams": list(page.items) or None}

    def list_all(self, call: Call) -> dict[str, Any]:
        """Return descriptions, of all streams or of those that take some of a subject."""
        request: StreamListRequest = call.read_optional(_LIST_REQUEST)
        page = page_of(self._names(call.account, request.subject), request.offset, DESCRIPTIONS_MAX)
        domain = self._settings().domain
        offline = self._catalog.offline_of(call.account)
        descriptions = []
        for name in page.items:
            if name in offline:
                continue
            try:
                stream = self._catalog.find(call.account, name)
                described = self._describe(call.account, stream, shows_versions=False, domain=domain)
            except RequestError:
                # It goes while it is looked at: lists overtake requests that change something.
                continue
            descriptions.append(described)
        answer = {**page.fields, "streams": descriptions}
        return {**answer, "missing": sorted(offline), "offline": dict(sorted(offline.items()))} if offline else answer

    def info(self, call: Call) -> dict[str, Any]:
        """Return the description of one stream, with deleted sequences and subjects when asked for."""
        request: InfoRequest = call.read_optional(_INFO_REQUEST)
        stream = self._catalog.find(call.account, call.stream)
        settings = self._settings()
        offset = min(request.offset, SUBJECTS_OFFSET_MAX)
        query = StateQuery(
            deleted=request.deleted_details,
            subjects=request.subjects_filter or None,
            subjects_max=max(offset, 0) + SUBJECTS_MAX if request.subjects_filter else 0,
        )
        state = self._catalog.state(call.account, call.stream, query)
        page, subjects = count_subjects(state, request.offset)
        described = self._describe(
            call.account, stream, state, domain=settings.domain, leader=settings.server_name, subjects=subjects
        )
        return {**page, **described}

    def delete(self, call: Call) -> Granted:
        """Delete the stream with everything in it."""
        call.check_empty()
        telling = self._delete(call.account, call.stream)
        # The deletion of a stream with few consumers is reported before the answer, as on nats-server.
        next(telling, None)
        return Granted(fields={"success": True}, then=lambda: telling)

    def purge(self, call: Call) -> dict[str, Any]:
        """Remove messages: all, those of a subject, those below a sequence, or all but the newest."""
        request: PurgeRequest = call.read_optional(_PURGE_REQUEST)
        if request.seq and request.keep:
            raise RequestError(ErrorCode.BAD_REQUEST)
        config = self._catalog.find(call.account, call.stream).config
        if config.sealed:
            raise RequestError(ErrorCode.STREAM_SEALED)
        if config.deny_purge:
            raise RequestError(ErrorCode.STREAM_PURGE_FAILED, err="stream purge not permitted")
        purged = self._catalog.purge(
            call.account, call.stream, subject=request.filter, below_sequence=request.seq, keep=request.keep
        )
        return {"success": True, "purged": purged}

    def delete_at_once(self, call: Call) -> None:
        """Do the same for a caller that has no steps."""
        call.check_empty()
        for _ in self._delete(call.account, call.stream):
            pass

    def delete_all(self, account: str) -> None:
        """Delete every stream of an account, as the system account may ask for, but those that are being restored."""
        for name in list(self._catalog.streams_of(account).names):
            if name not in self._catalog.offline_of(account):
                for _ in self._delete(account, name):
                    pass

    def _delete(self, account: str, name: str) -> Steps:
        """Delete a stream, and report its deletion and its consumers', in as many steps as they take."""
        consumers = sorted(self._catalog.consumers.of(account, name))
        self._catalog.delete(account, name)
        for number, consumer in enumerate(consumers, 1):
            self._advisories.tell_consumer_action(account, name, consumer, "delete")
            if number % CONSUMERS_TOLD_PER_STEP == 0:
                yield
        self._advisories.tell_stream_action(account, name, "delete")

    def _describe(
        self, account: str, stream: Stream, state: StreamState | None = None, **options: Any
    ) -> dict[str, Any]:
        name = stream.config.name
        state = state or self._catalog.state(account, name)
        return describe(stream, state, self._clock(), consumers=self._catalog.consumer_count(account, name), **options)

    def _names(self, account: str, subject: str) -> list[str]:
        streams = self._catalog.streams_of(account)
        return streams.names_meeting(subject) if subject else streams.names
