"""The endpoints of consumers, of which no stream has any: this version of Jetlake does not serve them.

Questions are answered truthfully, with empty lists and "not found"; what would make a consumer is refused in words.
"""

import re
from typing import Any

import msgspec

from jetlake.management.calls import Call
from jetlake.management.catalog import Catalog
from jetlake.management.error_codes import ApiError, ErrorCode
from jetlake.management.json_dialect import read_request
from jetlake.management.json_types import Field, Flag, Integer, Place, Record, Text, Time
from jetlake.management.paging import DESCRIPTIONS_MAX, NAMES_MAX, Page, page_of
from jetlake.management.times import Moment

NOT_SERVED = "consumers are not served yet by this version of Jetlake"

_GROUP_NAME = re.compile(r"[A-Za-z0-9/_=-]{1,16}")


class CreateRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Of which stream a consumer is wanted; what it should be like is not looked at."""

    stream_name: str = ""
    config: None = None
    action: str = ""
    pedantic: bool = False


class _Unread:
    """Any value, which nobody looks at."""

    name = "server.ConsumerConfig"
    zero = None

    def read(self, place: Place, current: None) -> None:
        """Leave the value where it is."""

    def write(self, value: None) -> None:
        """Write nothing."""


class ListRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Where in the list of consumers the answer begins."""

    offset: int = 0


class PauseRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Until when a consumer is to pause."""

    pause_until: Moment | None = None


class UnpinRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which group of a consumer is to choose a client anew."""

    group: str = ""


_OFFSET = Field("offset", Integer("int", -(2**63), 2**63 - 1))
_CREATE_REQUEST = Record(
    "server.CreateConsumerRequest",
    CreateRequest,
    (
        Field("stream_name", Text()),
        Field("config", _Unread()),
        Field("action", Text()),
        Field("pedantic", Flag()),
    ),
    can_be_absent=False,
)
_LIST_REQUEST = Record("server.JSApiConsumersRequest", ListRequest, (_OFFSET,), can_be_absent=False)
_PAUSE_REQUEST = Record(
    "server.JSApiConsumerPauseRequest", PauseRequest, (Field("pause_until", Time()),), can_be_absent=False
)
_UNPIN_REQUEST = Record(
    "server.JSApiConsumerUnpinRequest", UnpinRequest, (Field("group", Text()),), can_be_absent=False
)


class ConsumerEndpoints:
    """The endpoints, with what they work on."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def create(self, call: Call) -> dict[str, Any]:
        """Refuse to make a consumer."""
        if call.read(_CREATE_REQUEST).stream_name != call.stream:
            raise ApiError(ErrorCode.STREAM_MISMATCH)
        self._catalog.find(call.account, call.stream)
        raise ApiError(ErrorCode.CONSUMER_CREATE, err=NOT_SERVED)

    def names(self, call: Call) -> dict[str, Any]:
        """Return the names, which are none."""
        return {**self._page(call, NAMES_MAX).fields, "consumers": []}

    def list_all(self, call: Call) -> dict[str, Any]:
        """Return the descriptions, which are none."""
        return {**self._page(call, DESCRIPTIONS_MAX).fields, "consumers": []}

    def find(self, call: Call) -> dict[str, Any]:
        """Find no consumer: for every request that is about one, once its body is checked."""
        self._catalog.find(call.account, call.stream)
        raise ApiError(ErrorCode.CONSUMER_NOT_FOUND)

    def delete(self, call: Call) -> dict[str, Any]:
        call.check_empty()
        return self.find(call)

    def pause(self, call: Call) -> dict[str, Any]:
        call.read_optional(_PAUSE_REQUEST)
        return self.find(call)

    def _page(self, call: Call, limit: int) -> Page[str]:
        request: ListRequest = call.read_optional(_LIST_REQUEST)
        self._catalog.find(call.account, call.stream)
        return page_of([], request.offset, limit)


def check_create(call: Call) -> None:
    """Raise `ApiError` unless the body can be read. This is asked before anything else."""
    call.read(_CREATE_REQUEST)


def check_unpin(call: Call) -> None:
    """Raise `ApiError` unless the body names a group. This is asked before the account is looked at."""
    if not call.body.strip():
        raise ApiError(ErrorCode.INVALID_JSON, err="unexpected end of JSON input")
    # Never strict: unknown keys are overlooked.
    request: UnpinRequest = read_request(_UNPIN_REQUEST, call.body, is_strict=False).value
    if not request.group:
        raise ApiError(ErrorCode.INVALID_JSON, err="consumer group not specified")
    if _GROUP_NAME.fullmatch(request.group) is None:
        raise ApiError(ErrorCode.CONSUMER_INVALID_GROUP_NAME)
