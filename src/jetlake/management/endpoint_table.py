"""The endpoints of the API, by the words their subjects begin with: what answers, and what is checked before.

Invariant: a request of nats-server's API that is not in the table is answered by nobody here.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from jetlake.management.context import ApiContext
from jetlake.management.endpoints import consumers
from jetlake.management.endpoints.messages import PlainRequest
from jetlake.management.requests.calls import Call, Granted
from jetlake.management.requests.rights import SendTarget
from jetlake.management.wire.error_codes import ErrorCode, RequestError


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """What answers one kind of request: the type of the answer, and how it is made."""

    kind: str
    handle: Callable[[Call], dict[str, Any] | Granted | PlainRequest]
    # How many tokens name something.
    names: int
    # More tokens than that are one more name.
    takes_rest: bool = False
    # What is checked before anything else.
    check_first: Callable[[Call], None] | None = None
    # What is checked before the account is looked at.
    check_body: Callable[[Call], None] | None = None
    # Whether there is anything that answers; without it there always is.
    is_there: Callable[[Call], bool] | None = None
    # Its answers are counted and reported in advisories.
    is_of_api: bool = True
    # It changes nothing, and can be answered while something of the same account is being changed.
    only_reads: bool = False
    # Requests of nats-server that read or write the same, without `$JS.API`; `{}` are the names. A user who may not
    # send them may not send this one either. Empty for requests of nats-server itself: only their own subject counts.
    needs: tuple[str, ...] = ()
    # What else it needs, if only the body says so; the endpoint checks it.
    condition: str = ""
    # Where it has the server send to besides the answer; each is checked by the endpoint.
    targets: frozenset[SendTarget] = frozenset()

    def names_in(self, tokens: list[str]) -> tuple[str, ...] | None:
        """Return the names in the tokens after the words; None = this endpoint is not meant."""
        if len(tokens) == self.names:
            return tuple(tokens)
        if self.takes_rest and len(tokens) > self.names:
            return (*tokens[: self.names], ".".join(tokens[self.names :]))
        return None


EndpointTable = dict[str, Endpoint]
"""Endpoints by the words of their subjects, with dots between."""


def endpoints_of(api: ApiContext) -> dict[tuple[str, ...], Endpoint]:
    """Return the endpoints by the words their subjects begin with."""
    table = _stream_endpoints(api) | _reading_endpoints(api) | _consumer_endpoints(api) | _cluster_endpoints()
    return {tuple(words.split(".")): endpoint for words, endpoint in table.items()}


def _refuse_cluster(_call: Call) -> None:
    raise RequestError(ErrorCode.CLUSTER_REQUIRED)


def _never(call: Call) -> dict[str, Any]:
    raise AssertionError(f"{call.subject} is refused before it is handled")


def _cluster_endpoint(kind: str, names: int) -> Endpoint:
    return Endpoint(kind=kind, handle=_never, names=names, check_first=_refuse_cluster)


_READING = ("STREAM.MSG.GET.{}",)
"""A user who may get messages one by one may read all of a stream."""

_OF_STREAMS = frozenset({SendTarget.REPUBLISH, SendTarget.DEAD_LETTER})

_COPYING = "for each origin that it copies: one of `$JS.API.STREAM.MSG.GET.<origin>`, `….DIRECT.GET.<origin>`, "
_COPYING += "`….CONSUMER.CREATE.<origin>`"


def _stream_endpoints(api: ApiContext) -> EndpointTable:
    """What makes, changes, lists and removes streams."""
    return {
        "STREAM.CREATE": Endpoint(
            kind="stream_create_response", handle=api.streams.create, names=1, condition=_COPYING, targets=_OF_STREAMS
        ),
        "STREAM.UPDATE": Endpoint(
            kind="stream_update_response", handle=api.streams.update, names=1, condition=_COPYING, targets=_OF_STREAMS
        ),
        "STREAM.NAMES": Endpoint(kind="stream_names_response", handle=api.streams.names, names=0, only_reads=True),
        "STREAM.LIST": Endpoint(kind="stream_list_response", handle=api.streams.list_all, names=0, only_reads=True),
        "STREAM.INFO": Endpoint(kind="stream_info_response", handle=api.streams.info, names=1, only_reads=True),
        "STREAM.FORK": Endpoint(
            kind="stream_fork_response",
            handle=api.forks.fork,
            names=1,
            needs=_READING,
            condition="`$JS.API.STREAM.CREATE.<name of the copy>`",
            targets=_OF_STREAMS,
        ),
        "STREAM.DELETE": Endpoint(kind="stream_delete_response", handle=api.streams.delete, names=1),
        "STREAM.PURGE": Endpoint(kind="stream_purge_response", handle=api.streams.purge, names=1),
        "STREAM.RESTORE": Endpoint(
            kind="stream_restore_response",
            handle=api.archives.restore,
            names=1,
            condition=_COPYING,
            targets=_OF_STREAMS | {SendTarget.DELIVER},
        ),
    }


def _reading_endpoints(api: ApiContext) -> EndpointTable:
    """What reads or removes the messages of a stream, and tells about them and the account."""
    return {
        "INFO": Endpoint(kind="account_info_response", handle=api.accounts.info, names=0, only_reads=True),
        "STREAM.WHY": Endpoint(
            kind="stream_why_response", handle=api.why.of_stream, names=1, needs=("STREAM.INFO.{}",)
        ),
        "STREAM.SCAN.PLAN": Endpoint(kind="stream_scan_plan_response", handle=api.scans.plan, names=1, needs=_READING),
        "STREAM.SCAN.FILES": Endpoint(
            kind="stream_scan_files_response",
            handle=api.scans.files,
            names=1,
            needs=_READING,
            condition="a connection from this host",
        ),
        "STREAM.SCAN.ROWS": Endpoint(
            kind="stream_scan_rows_response",
            handle=api.scans.rows,
            names=1,
            needs=_READING,
            targets=frozenset({SendTarget.SCAN}),
        ),
        "STREAM.MSG.GET": Endpoint(kind="stream_msg_get_response", handle=api.messages.get, names=1, only_reads=True),
        "STREAM.MSG.DELETE": Endpoint(kind="stream_msg_delete_response", handle=api.messages.delete, names=1),
        "STREAM.SNAPSHOT": Endpoint(
            kind="stream_snapshot_response",
            handle=api.archives.snapshot,
            names=1,
            targets=frozenset({SendTarget.SNAPSHOT}),
        ),
    }


def _consumer_endpoints(api: ApiContext) -> EndpointTable:
    """What makes, changes, lists and removes consumers."""
    return {
        "CONSUMER.WHY": Endpoint(
            kind="consumer_why_response", handle=api.why.of_consumer, names=2, needs=("CONSUMER.INFO.{}.{}",)
        ),
        "CONSUMER.CREATE": Endpoint(
            kind="consumer_create_response",
            handle=api.consumers.create,
            names=1,
            takes_rest=True,
            check_first=consumers.check_create,
            targets=frozenset({SendTarget.DELIVER}),
        ),
        "CONSUMER.DURABLE.CREATE": Endpoint(
            kind="consumer_create_response",
            handle=api.consumers.create_durable,
            names=2,
            check_first=consumers.check_create,
            targets=frozenset({SendTarget.DELIVER}),
        ),
        "CONSUMER.NAMES": Endpoint(
            kind="consumer_names_response", handle=api.consumers.names, names=1, only_reads=True
        ),
        "CONSUMER.LIST": Endpoint(
            kind="consumer_list_response", handle=api.consumers.list_all, names=1, only_reads=True
        ),
        "CONSUMER.INFO": Endpoint(
            kind="consumer_info_response",
            handle=api.consumers.info,
            names=2,
            check_first=Call.check_empty,
            only_reads=True,
        ),
        "CONSUMER.DELETE": Endpoint(kind="consumer_delete_response", handle=api.consumers.delete, names=2),
        "CONSUMER.PAUSE": Endpoint(kind="consumer_pause_response", handle=api.consumers.pause, names=2),
        "CONSUMER.UNPIN": Endpoint(
            kind="consumer_unpin_response", handle=api.consumers.unpin, names=2, check_body=consumers.check_unpin
        ),
        "CONSUMER.RESET": Endpoint(
            kind="consumer_reset_response",
            handle=api.consumers.reset,
            names=2,
            is_there=api.consumers.is_there,
            is_of_api=False,
        ),
    }


def _cluster_endpoints() -> EndpointTable:
    """What only clusters answer."""
    return {
        "STREAM.LEADER.STEPDOWN": _cluster_endpoint("stream_leader_stepdown_response", 1),
        "STREAM.PEER.REMOVE": _cluster_endpoint("stream_remove_peer_response", 1),
        "STREAM.PEER.EVACUATE": _cluster_endpoint("stream_evacuate_peer_response", 1),
        "STREAM.CANCEL_MOVE": _cluster_endpoint("stream_cancel_move_response", 1),
        "CONSUMER.LEADER.STEPDOWN": _cluster_endpoint("consumer_leader_stepdown_response", 2),
        "CONSUMER.PEER.REMOVE": _cluster_endpoint("consumer_remove_peer_response", 2),
        "CONSUMER.PEER.EVACUATE": _cluster_endpoint("consumer_evacuate_peer_response", 2),
    }
