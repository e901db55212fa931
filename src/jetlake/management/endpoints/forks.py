"""`$JS.API.STREAM.FORK.<origin>`: a writable copy of a stream as it was at a sequence, which costs next to nothing.

| key        | meaning                                            | unless given                            |
|------------|----------------------------------------------------|-----------------------------------------|
| `name`     | of the new stream                                  | E 10003                                 |
| `seq`      | the last message it begins with                    | the last one there is                   |
| `subjects` | on which it takes messages                         | its name: those of the origin are taken |

It has the origin's configuration but for that, takes nothing from other streams, and shares the files of the origin
until either changes. nats-server has no such endpoint, and does not answer.
"""

import time
from collections.abc import Callable
from typing import Any

import msgspec

from jetlake.management.catalog.streams import StreamCatalog
from jetlake.management.requests.advisories import Advisories
from jetlake.management.requests.calls import Call
from jetlake.management.requests.rights import check_equivalents, check_stream_targets
from jetlake.management.settings import ManagementSettings
from jetlake.management.streams import requests as stream_requests
from jetlake.management.streams.info import describe
from jetlake.management.wire.error_codes import ErrorCode, RequestError
from jetlake.management.wire.json_dialect import write_json
from jetlake.management.wire.json_types import Integer, ListOf, Record, RecordField, Text


class ForkRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The copy to create."""

    name: str = ""
    seq: int = 0
    subjects: tuple[str, ...] | None = None


_FORK_REQUEST = Record(
    "jetlake.StreamForkRequest",
    ForkRequest,
    (
        RecordField("name", Text()),
        RecordField("seq", Integer("uint64", 0, 2**64 - 1)),
        RecordField("subjects", ListOf(Text(), "[]string")),
    ),
    can_be_absent=False,
)


class ForkEndpoint:
    """The endpoint, with what it works on. `settings` returns those in force."""

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

    def fork(self, call: Call) -> dict[str, Any]:
        """Make the copy."""
        request: ForkRequest = call.read_needed(_FORK_REQUEST)
        if not request.name:
            raise RequestError(ErrorCode.BAD_REQUEST)
        check_equivalents(call, [f"STREAM.CREATE.{request.name}"])
        origin = self._catalog.find(call.account, call.stream)
        if origin.config.storage != "file":
            raise RequestError(ErrorCode.STREAM_CREATE, err="only streams with file storage can be forked")
        self._catalog.check_online(call.account, request.name)
        if request.name in self._catalog.streams_of(call.account):
            raise RequestError(ErrorCode.STREAM_NAME_EXIST)
        wanted = msgspec.structs.replace(
            origin.config,
            name=request.name,
            subjects=request.subjects or None,
            mirror=None,
            sources=None,
            mirror_direct=False,
            sealed=False,
        )
        context = self._catalog.context(call.account, self._settings())
        decision = stream_requests.create(request.name, write_json(wanted.to_json()), context)
        check_stream_targets(call, decision.config)
        last_sequence = self._catalog.state(call.account, call.stream).last_sequence
        if request.seq > last_sequence:
            message = f"the stream ends with sequence {last_sequence}"
            raise RequestError(ErrorCode.STREAM_CREATE, err=message)
        stream = self._catalog.fork(call.account, decision.config, call.stream, request.seq)
        self._advisories.tell_stream_action(call.account, request.name, "create")
        state = self._catalog.state(call.account, request.name)
        return describe(stream, state, self._clock())
