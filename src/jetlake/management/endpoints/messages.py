"""The endpoints of single messages: get and delete.

The engine answers a get by itself when it is put plainly. What reaches this code is everything else: requests that
cannot be understood, streams that are not there, and requests put in an odd way, which are put plainly and handed back.
"""

from typing import Any

import msgspec

from jetlake.management.catalog.streams import StreamCatalog
from jetlake.management.requests.calls import Call
from jetlake.management.wire.error_codes import ErrorCode, RequestError
from jetlake.management.wire.json_dialect import write_json
from jetlake.management.wire.json_types import Boolean, Integer, ListOf, Record, RecordField, Text, Time
from jetlake.management.wire.times import Timestamp

_INT = Integer("int", -(2**63), 2**63 - 1)
_UINT64 = Integer("uint64", 0, 2**64 - 1)
_TEXT = Text()


class GetRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which message is wanted. The keys that only `DIRECT.GET` obeys are understood here, too."""

    seq: int = 0
    last_by_subj: str = ""
    next_by_subj: str = ""
    batch: int = 0
    max_bytes: int = 0
    start_time: Timestamp | None = None
    multi_last: tuple[str, ...] | None = None
    up_to_seq: int = 0
    up_to_time: Timestamp | None = None
    no_hdr: bool = False

    @property
    def is_sensible(self) -> bool:
        """Whether it says in exactly one way which message it means."""
        has_sequence, has_time = self.seq > 0, self.start_time is not None
        has_last, has_next = bool(self.last_by_subj), bool(self.next_by_subj)
        if self.batch > 0 or self.max_bytes > 0:
            return False
        if has_last:
            return not (has_sequence or has_time or has_next)
        return (has_sequence or has_time or has_next) and not (has_sequence and has_time)

    @property
    def plain(self) -> "PlainRequest":
        """The same request without what means nothing to it."""
        fields: dict[str, Any] = {
            "seq": self.seq,
            "last_by_subj": self.last_by_subj,
            "next_by_subj": self.next_by_subj,
            "start_time": None if self.start_time is None else self.start_time.text,
            "no_hdr": self.no_hdr,
        }
        return PlainRequest(body=write_json({key: value for key, value in fields.items() if value}))


class PlainRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request that the engine answers, in the place of an odd one."""

    body: bytes


class DeleteRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The message to delete, and whether its bytes may stay on the disk for a while."""

    seq: int = 0
    no_erase: bool = False


_GET_REQUEST = Record(
    "server.JSApiMsgGetRequest",
    GetRequest,
    (
        RecordField("seq", _UINT64),
        RecordField("last_by_subj", _TEXT),
        RecordField("next_by_subj", _TEXT),
        RecordField("batch", _INT),
        RecordField("max_bytes", _INT),
        RecordField("start_time", Time()),
        RecordField("multi_last", ListOf(_TEXT, "[]string")),
        RecordField("up_to_seq", _UINT64),
        RecordField("up_to_time", Time()),
        RecordField("no_hdr", Boolean()),
    ),
    can_be_absent=False,
)
_DELETE_REQUEST = Record(
    "server.JSApiMsgDeleteRequest",
    DeleteRequest,
    (RecordField("seq", _UINT64), RecordField("no_erase", Boolean())),
    can_be_absent=False,
)


class MessageEndpoints:
    """The endpoints, with what they work on."""

    def __init__(self, catalog: StreamCatalog) -> None:
        self._catalog = catalog

    def get(self, call: Call) -> PlainRequest:
        """Refuse a request that the engine has left to us, or put it plainly."""
        request: GetRequest = call.read_needed(_GET_REQUEST)
        if not request.is_sensible:
            raise RequestError(ErrorCode.BAD_REQUEST)
        self._catalog.find(call.account, call.stream)
        return request.plain

    def delete(self, call: Call) -> dict[str, Any]:
        """Delete one message."""
        request: DeleteRequest = call.read_needed(_DELETE_REQUEST)
        config = self._catalog.find(call.account, call.stream).config
        if config.sealed:
            raise RequestError(ErrorCode.STREAM_SEALED)
        if config.deny_delete:
            raise RequestError(ErrorCode.STREAM_MESSAGE_DELETE_FAILED, err="message delete not permitted")
        if not self._catalog.delete_message(call.account, call.stream, request.seq, erase=not request.no_erase):
            # Counted as answered and not as refused, as on nats-server.
            return {"error": self._missing(call, request.seq, is_on_disk=config.storage == "file").to_json()}
        return {"success": True}

    def _missing(self, call: Call, sequence: int, *, is_on_disk: bool) -> RequestError:
        """Return the error about a message that is not there; those of the two kinds of storage differ."""
        state = self._catalog.state(call.account, call.stream)
        if is_on_disk and sequence > state.last_sequence:
            return RequestError(ErrorCode.STREAM_MESSAGE_DELETE_FAILED, err="stream store EOF")
        if is_on_disk and (sequence == 0 or sequence < state.first_sequence):
            return RequestError(ErrorCode.STREAM_MESSAGE_DELETE_FAILED, err="no message found")
        return RequestError(ErrorCode.SEQUENCE_NOT_FOUND, seq=sequence)
