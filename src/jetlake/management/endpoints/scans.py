"""`$JS.API.STREAM.SCAN.PLAN.<stream>`, `….ROWS.<stream>` and `….FILES.<stream>`: a stream as a table.

A plan divides a range of sequences among readers:

| key         | meaning                                        | unless given              |
|-------------|------------------------------------------------|---------------------------|
| `start`     | the first sequence                             | 1                         |
| `end`       | one after the last sequence                    | after the last existing   |
| `max_rows`  | messages at most                               | no bound                  |
| `max_bytes` | their bytes at most, but always one message    | no bound                  |
| `subjects`  | only messages on these, wildcards allowed      | all                       |
| `parts`     | ranges at most                                 | 1                         |

The answer has `created`, `first` and `last` of the stream, `end` (where the next plan begins), `rows`, `bytes`, and
`ranges`, each with `start`, `end`, `rows` and `bytes`; there are none where there is nothing to read.

Rows are sent to `deliver_subject` as a stream of Arrow's IPC format in chunks; the other keys are `start`, `end`,
`columns`, `subjects`, `batch_rows` and `batch_bytes`. How chunks are put together and answered is told in
crates/engine/src/stream/read/scan.rs.

`….FILES` says for `start` and `end` where the messages lie on disk, and only to connections from the same host.
nats-server has no such endpoints, and does not answer.
"""

import socket
from typing import Any

import msgspec

from jetlake.management.catalog.streams import StreamCatalog
from jetlake.management.engine.failures import answered_as
from jetlake.management.engine.protocols import ManagedEngine
from jetlake.management.requests.advisories import new_id
from jetlake.management.requests.calls import Call
from jetlake.management.requests.rights import SendTarget, check_target
from jetlake.management.subjects.names import is_literal_subject
from jetlake.management.wire.error_codes import ErrorCode, RequestError
from jetlake.management.wire.json_types import Integer, ListOf, Record, RecordField, Text

ELSEWHERE = "files are shown only to connections from the server's own host: scan the rows instead"

COLUMNS = ("stream", "subject", "sequence", "timestamp", "time_ns", "headers", "data")

SEQUENCE_MAX = 2**64 - 1

_SEQUENCE = Integer("uint64", 0, SEQUENCE_MAX)
_COUNT = Integer("uint32", 0, 2**32 - 1)


class PlanRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The range to divide, and into how many parts."""

    start: int = 0
    end: int = 0
    max_rows: int = 0
    max_bytes: int = 0
    subjects: tuple[str, ...] | None = None
    parts: int = 0


class RowsRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Where the rows go, and which they are."""

    deliver_subject: str = ""
    start: int = 0
    end: int = 0
    columns: tuple[str, ...] | None = None
    subjects: tuple[str, ...] | None = None
    batch_rows: int = 0
    batch_bytes: int = 0


class FilesRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The messages to find on disk."""

    start: int = 0
    end: int = 0


_TEXTS = ListOf(Text(), "[]string")

_PLAN_REQUEST = Record(
    "jetlake.StreamScanPlanRequest",
    PlanRequest,
    (
        RecordField("start", _SEQUENCE),
        RecordField("end", _SEQUENCE),
        RecordField("max_rows", _SEQUENCE),
        RecordField("max_bytes", _SEQUENCE),
        RecordField("subjects", _TEXTS),
        RecordField("parts", _COUNT),
    ),
    can_be_absent=False,
)

_FILES_REQUEST = Record(
    "jetlake.StreamScanFilesRequest",
    FilesRequest,
    (RecordField("start", _SEQUENCE), RecordField("end", _SEQUENCE)),
    can_be_absent=False,
)

_ROWS_REQUEST = Record(
    "jetlake.StreamScanRowsRequest",
    RowsRequest,
    (
        RecordField("deliver_subject", Text()),
        RecordField("start", _SEQUENCE),
        RecordField("end", _SEQUENCE),
        RecordField("columns", _TEXTS),
        RecordField("subjects", _TEXTS),
        RecordField("batch_rows", _COUNT),
        RecordField("batch_bytes", _COUNT),
    ),
    can_be_absent=False,
)


class _Connection(msgspec.Struct, frozen=True):
    ip: str = ""


def is_address_of_this_host(address: str) -> bool:
    """Return whether an IP address is one of this host: only there a socket can be bound to it."""
    if address in ("", "0.0.0.0", "::"):  # noqa: S104 - which stand for all addresses, and are nobody's
        return False
    try:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


class ScanEndpoints:
    """The endpoints, with what they work on."""

    def __init__(self, engine: ManagedEngine, catalog: StreamCatalog) -> None:
        self._engine = engine
        self._catalog = catalog

    def plan(self, call: Call) -> dict[str, Any]:
        """Say how a range can be divided."""
        request: PlanRequest = call.read_optional(_PLAN_REQUEST)
        stream = self._catalog.find(call.account, call.stream)
        asked = {**msgspec.structs.asdict(request), "subjects": list(request.subjects or ())}
        with answered_as(ErrorCode.STREAM_GENERAL_ERROR):
            plan = self._engine.plan_scan(call.account, call.stream, msgspec.json.encode(asked))
        return {"created": stream.created, **msgspec.json.decode(plan)}

    def files(self, call: Call) -> dict[str, Any]:
        """Say where a range lies on disk."""
        request: FilesRequest = call.read_optional(_FILES_REQUEST)
        self._catalog.find(call.account, call.stream)
        if not self._is_from_this_host(call.connection_id):
            raise RequestError(ErrorCode.STREAM_GENERAL_ERROR, err=ELSEWHERE)
        asked = {"start": request.start, "end": request.end or SEQUENCE_MAX}
        with answered_as(ErrorCode.STREAM_GENERAL_ERROR):
            found = self._engine.scan_files(call.account, call.stream, msgspec.json.encode(asked))
        return dict(msgspec.json.decode(found))

    def _is_from_this_host(self, connection_id: int) -> bool:
        """Return whether a connection comes from this host; one that has ended is not known to."""
        described = self._engine.connection(connection_id)
        return described is not None and is_address_of_this_host(msgspec.json.decode(described, type=_Connection).ip)

    def rows(self, call: Call) -> dict[str, Any]:
        """Begin to send rows; the first may be there before the answer is."""
        request: RowsRequest = call.read_needed(_ROWS_REQUEST)
        self._catalog.find(call.account, call.stream)
        if not is_literal_subject(request.deliver_subject):
            raise RequestError(ErrorCode.BAD_REQUEST)
        check_target(call, SendTarget.SCAN, request.deliver_subject)
        unknown = [column for column in request.columns or () if column not in COLUMNS]
        if unknown:
            message = f"there is no column {unknown[0]!r}, only {', '.join(COLUMNS)}"
            raise RequestError(ErrorCode.STREAM_GENERAL_ERROR, err=message)
        asked = {
            **msgspec.structs.asdict(request),
            "id": new_id(),
            "columns": list(request.columns or COLUMNS),
            "subjects": list(request.subjects or ()),
            "end": request.end or SEQUENCE_MAX,
        }
        with answered_as(ErrorCode.STREAM_GENERAL_ERROR):
            self._engine.start_scan(call.account, call.stream, msgspec.json.encode(asked))
        return {"id": asked["id"]}
