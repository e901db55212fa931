"""From the subject of a request to its endpoint, through the checks that all share, to the bytes of an answer.

The checks in their order: an endpoint of clusters is refused as such; some bodies are looked at first; then the API
level the request needs, whether its account may store at all, and then what the endpoint itself asks.

A subject without an endpoint gets no answer at all, as on nats-server: its sender finds out by his time-out.

Invariant: `answer` returns for every request, whatever its bytes; what breaks in our own code is answered as such.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import msgspec

from jetlake.management import consumers, replies
from jetlake.management.account_info import AccountEndpoints
from jetlake.management.archives import ArchiveEndpoints
from jetlake.management.calls import API_PREFIX, Call, Granted, Steps
from jetlake.management.catalog import Catalog
from jetlake.management.consumers import ConsumerEndpoints
from jetlake.management.error_codes import ApiError, ErrorCode
from jetlake.management.forks import ForkEndpoint
from jetlake.management.messages import MessageEndpoints, PlainRequest
from jetlake.management.protocols import Request
from jetlake.management.scans import ScanEndpoints
from jetlake.management.settings import ManagementSettings
from jetlake.management.streams import StreamEndpoints
from jetlake.management.subject_rights import Target, check_equivalents
from jetlake.management.why import WhyEndpoints

if TYPE_CHECKING:
    from jetlake.management.preview.dispatch import PreviewDispatcher

DOMAIN_SUBJECTS = ("INFO", "STREAM.>", "CONSUMER.>", "DIRECT.>", "META.>", "SERVER.>", "ACCOUNT.>")
"""What of the API can also be reached as `$JS.<domain>.API.…`."""

BROKEN = "the server failed to answer; this is a bug, and its log has the details"

_PREFIX_TOKENS_MAX = 3
_PURGE_ACCOUNT = ("ACCOUNT", "PURGE")
_CLUSTER_WORDS = ("META", "SERVER", "ACCOUNT")
"""Below these are requests to clusters, which nobody answers here, not even to the system account."""


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
    # Its answers are counted and told.
    is_of_api: bool = True
    # It changes nothing, and can be answered while something of the same account is being changed.
    only_reads: bool = False
    # Requests of nats-server that read or write the same, without `$JS.API`; `{}` are the names. Who may not send them
    # may not send this one either. Empty for what nats-server itself answers: there the subject of the request is all.
    needs: tuple[str, ...] = ()
    # What else it needs, where only the body says what; the endpoint checks it.
    condition: str = ""
    # Where it has the server send to besides the answer; each is checked by the endpoint.
    targets: frozenset[Target] = frozenset()

    def names_in(self, tokens: list[str]) -> tuple[str, ...] | None:
        """Return the names in the tokens behind the words; None = this endpoint is not meant."""
        if len(tokens) == self.names:
            return tuple(tokens)
        if self.takes_rest and len(tokens) > self.names:
            return (*tokens[: self.names], ".".join(tokens[self.names :]))
        return None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one request."""

    # The subject as it is below `$JS.API`.
    subject: str
    body: bytes = b""
    header: bytes | None = None
    is_error: bool = False
    # A core status, or what the engine says, is not one of the API's answers: neither counted nor told.
    is_of_api: bool = True
    # What the engine is to be asked instead, on the same subject; it answers the sender by itself.
    asked_of_engine: bytes | None = None
    # What kind of answer it is, and the consumer that is to be made durable before it is given: account, stream, name.
    kind: str = ""
    created: tuple[str, str, str] | None = None
    # What is to be done once the answer has been given.
    then: Callable[[], Steps | None] | None = None


class Dispatcher:
    """All endpoints of one server. `settings` returns those in force.

    `alone_with` keeps others from deciding for an account as long as somebody of another one does.
    """

    def __init__(
        self,
        catalog: Catalog,
        streams: StreamEndpoints,
        consumer: ConsumerEndpoints,
        messages: MessageEndpoints,
        accounts: AccountEndpoints,
        archives: ArchiveEndpoints,
        forks: ForkEndpoint,
        why: WhyEndpoints,
        scans: ScanEndpoints,
        preview: Callable[[], "PreviewDispatcher"],
        settings: Callable[[], ManagementSettings],
        alone_with: Callable[[str], AbstractContextManager[None]],
        warn: Callable[[str], None],
    ) -> None:
        self._catalog = catalog
        self._streams = streams
        self._settings = settings
        self._alone_with = alone_with
        self._warn = warn
        self._preview = preview
        self._endpoints = _endpoints(streams, accounts, messages, consumer, archives, forks, why, scans)

    def answer(self, request: Request) -> Answer | None:
        """Return the answer; None = there is none."""
        settings = self._settings()
        subject = api_subject(request.subject, settings.domain)
        if subject is None:
            return self._answer_preview(request)
        tokens = subject.removeprefix(API_PREFIX).split(".")
        if request.account == settings.system_account:
            return self._answer_system(subject, tokens)
        if _is_unanswered_by_api(tokens):
            return self._answer_in_place_of_stream(request, subject, tokens)
        found = self._find(tokens)
        if found is None:
            return None
        endpoint, names = found
        call = Call(
            account=request.account,
            subject=subject,
            names=names,
            header=request.header,
            body=request.payload,
            is_strict=settings.is_strict,
            connection_id=request.connection_id,
            requester=request,
        )
        if endpoint.is_there is not None and not (request.reply and endpoint.is_there(call)):
            return None
        return self._answer_call(endpoint, call, is_enabled=request.account in settings.accounts)

    def only_reads(self, request: Request) -> bool:
        """Return whether a request can be answered while another one of its account is being decided."""
        settings = self._settings()
        subject = api_subject(request.subject, settings.domain)
        if subject is None or request.account == settings.system_account:
            return False
        found = self._find(subject.removeprefix(API_PREFIX).split("."))
        return found is not None and found[0].only_reads

    def _answer_preview(self, request: Request) -> Answer | None:
        """What is not below the prefix of today's API is one of the old dialects, but for the system account."""
        return None if request.account == self._settings().system_account else self._preview().answer(request)

    def _find(self, tokens: list[str]) -> tuple[Endpoint, tuple[str, ...]] | None:
        for count in range(min(_PREFIX_TOKENS_MAX, len(tokens)), 0, -1):
            endpoint = self._endpoints.get(tuple(tokens[:count]))
            names = None if endpoint is None else endpoint.names_in(tokens[count:])
            if endpoint is not None and names is not None:
                return endpoint, names
        return None

    def _answer_call(self, endpoint: Endpoint, call: Call, *, is_enabled: bool) -> Answer:
        try:
            if endpoint.check_first is not None:
                endpoint.check_first(call)
            call.check_level()
            check_equivalents(call, [needed.format(*call.names) for needed in endpoint.needs])
            if endpoint.check_body is not None:
                endpoint.check_body(call)
            if not is_enabled:
                raise ApiError(ErrorCode.NOT_ENABLED_FOR_ACCOUNT)
            answer = endpoint.handle(call)
            if isinstance(answer, PlainRequest):
                return Answer(subject=call.subject, is_of_api=False, asked_of_engine=answer.body)
            if isinstance(answer, Granted):
                body = replies.success(endpoint.kind, answer.fields)
                return Answer(
                    subject=call.subject,
                    body=body,
                    header=answer.header,
                    is_of_api=endpoint.is_of_api,
                    kind=endpoint.kind,
                    created=answer.created,
                    then=answer.then,
                )
            body = replies.success(endpoint.kind, answer)
            return Answer(subject=call.subject, body=body, is_of_api=endpoint.is_of_api)
        except ApiError as error:
            body = replies.failure(endpoint.kind, error)
            return Answer(subject=call.subject, body=body, is_error=True, is_of_api=endpoint.is_of_api)
        except BaseException:  # noqa: BLE001 - whatever it was, an engine's panic included, must not end the API
            import traceback

            self._warn(f"JetStream API: a bug, please report it: {call.subject}: {traceback.format_exc()}")
            broken = ApiError(ErrorCode.STREAM_GENERAL_ERROR, err=BROKEN)
            return Answer(subject=call.subject, body=replies.failure(endpoint.kind, broken), is_error=True)

    def _answer_system(self, subject: str, tokens: list[str]) -> Answer | None:
        """The system account stores nothing; it may delete all that another one has stored."""
        if tuple(tokens[:2]) == _PURGE_ACCOUNT and len(tokens) == 3:
            return self._purge_account(subject, tokens[2])
        if tokens[0] in _CLUSTER_WORDS:
            return None
        kind = "account_info_response" if tokens == ["INFO"] else "system_response"
        body = replies.failure(kind, ApiError(ErrorCode.NOT_ENABLED_FOR_ACCOUNT))
        return Answer(subject=subject, body=body, is_error=True)

    def _purge_account(self, subject: str, account: str) -> Answer:
        kind = "account_purge_response"
        try:
            if account in self._catalog.accounts:
                with self._alone_with(account):
                    self._streams.delete_all(account)
        except ApiError as error:
            return Answer(subject=subject, body=replies.failure(kind, error), is_error=True)
        return Answer(subject=subject, body=replies.success(kind, {"initiated": True}))

    def _answer_in_place_of_stream(self, request: Request, subject: str, tokens: list[str]) -> Answer | None:
        """Pulls, direct gets and uploads are answered by consumers and streams; where none is, that is told.

        Those listen below `$JS.API`; a request that names the domain instead is handed to them.
        """
        if self._listens(request.account, tokens):
            if request.subject == subject:
                return None
            header = request.header or None
            return Answer(subject=subject, header=header, is_of_api=False, asked_of_engine=request.payload)
        header = replies.NO_RESPONDERS_HEADER % subject.encode()
        return Answer(subject=subject, header=header, is_of_api=False)

    def _listens(self, account: str, tokens: list[str]) -> bool:
        """Return whether a stream or a consumer listens to this request."""
        if tokens[0] == "CONSUMER":
            return tokens[4] in self._catalog.consumers.of(account, tokens[3])
        if tokens[0] == "STREAM":
            return tokens[3] in self._catalog.streams_of(account)
        stream = self._catalog.streams_of(account).get(tokens[2]) if len(tokens) > 2 else None
        return stream is not None and (stream.allow_direct or stream.mirror_direct)


def api_subject(subject: str, domain: str) -> str | None:
    """Return the subject as it is below `$JS.API`; None = it is not one of the API's."""
    if subject.startswith(API_PREFIX):
        return subject
    domain_prefix = f"$JS.{domain}.API."
    if domain and subject.startswith(domain_prefix):
        return API_PREFIX + subject.removeprefix(domain_prefix)
    return None


def _is_unanswered_by_api(tokens: list[str]) -> bool:
    is_pull = tokens[:3] == ["CONSUMER", "MSG", "NEXT"] and len(tokens) == 5
    return tokens[:2] == ["DIRECT", "GET"] or is_pull or _is_upload(tokens)


def _is_upload(tokens: list[str]) -> bool:
    """Return whether this is about uploads of `stream/upload_requests.rs`."""
    return tokens[:2] == ["STREAM", "UPLOAD"] and len(tokens) == 4


def _refuse_cluster(_call: Call) -> None:
    raise ApiError(ErrorCode.CLUSTER_REQUIRED)


def _never(call: Call) -> dict[str, Any]:
    raise AssertionError(f"{call.subject} is refused before it is handled")


def _cluster_endpoint(kind: str, names: int) -> Endpoint:
    return Endpoint(kind=kind, handle=_never, names=names, check_first=_refuse_cluster)


_READING = ("STREAM.MSG.GET.{}",)
"""Whoever may get messages one by one may read all of a stream."""

_OF_STREAMS = frozenset({Target.REPUBLISH, Target.DEAD_LETTER})

_COPYING = "for each origin that it copies: one of `$JS.API.STREAM.MSG.GET.<origin>`, `….DIRECT.GET.<origin>`, "
_COPYING += "`….CONSUMER.CREATE.<origin>`"


def _endpoints(
    streams: StreamEndpoints,
    accounts: AccountEndpoints,
    messages: MessageEndpoints,
    consumer: ConsumerEndpoints,
    archives: ArchiveEndpoints,
    forks: ForkEndpoint,
    why: WhyEndpoints,
    scans: ScanEndpoints,
) -> dict[tuple[str, ...], Endpoint]:
    """Return the endpoints by the words their subjects begin with."""
    create_kind = "consumer_create_response"
    by_words = {
        "INFO": Endpoint(kind="account_info_response", handle=accounts.info, names=0, only_reads=True),
        "STREAM.CREATE": Endpoint(
            kind="stream_create_response", handle=streams.create, names=1, condition=_COPYING, targets=_OF_STREAMS
        ),
        "STREAM.UPDATE": Endpoint(
            kind="stream_update_response", handle=streams.update, names=1, condition=_COPYING, targets=_OF_STREAMS
        ),
        "STREAM.NAMES": Endpoint(kind="stream_names_response", handle=streams.names, names=0, only_reads=True),
        "STREAM.LIST": Endpoint(kind="stream_list_response", handle=streams.list_all, names=0, only_reads=True),
        "STREAM.INFO": Endpoint(kind="stream_info_response", handle=streams.info, names=1, only_reads=True),
        "STREAM.FORK": Endpoint(
            kind="stream_fork_response",
            handle=forks.fork,
            names=1,
            needs=_READING,
            condition="`$JS.API.STREAM.CREATE.<name of the copy>`",
            targets=_OF_STREAMS,
        ),
        "STREAM.WHY": Endpoint(kind="stream_why_response", handle=why.of_stream, names=1, needs=("STREAM.INFO.{}",)),
        "STREAM.SCAN.PLAN": Endpoint(kind="stream_scan_plan_response", handle=scans.plan, names=1, needs=_READING),
        "STREAM.SCAN.FILES": Endpoint(
            kind="stream_scan_files_response",
            handle=scans.files,
            names=1,
            needs=_READING,
            condition="a connection from this host",
        ),
        "STREAM.SCAN.ROWS": Endpoint(
            kind="stream_scan_rows_response",
            handle=scans.rows,
            names=1,
            needs=_READING,
            targets=frozenset({Target.SCAN}),
        ),
        "CONSUMER.WHY": Endpoint(
            kind="consumer_why_response", handle=why.of_consumer, names=2, needs=("CONSUMER.INFO.{}.{}",)
        ),
        "STREAM.DELETE": Endpoint(kind="stream_delete_response", handle=streams.delete, names=1),
        "STREAM.PURGE": Endpoint(kind="stream_purge_response", handle=streams.purge, names=1),
        "STREAM.MSG.GET": Endpoint(kind="stream_msg_get_response", handle=messages.get, names=1, only_reads=True),
        "STREAM.MSG.DELETE": Endpoint(kind="stream_msg_delete_response", handle=messages.delete, names=1),
        "STREAM.SNAPSHOT": Endpoint(
            kind="stream_snapshot_response",
            handle=archives.snapshot,
            names=1,
            targets=frozenset({Target.SNAPSHOT}),
        ),
        "STREAM.RESTORE": Endpoint(
            kind="stream_restore_response",
            handle=archives.restore,
            names=1,
            condition=_COPYING,
            targets=_OF_STREAMS | {Target.DELIVER},
        ),
        "CONSUMER.CREATE": Endpoint(
            kind=create_kind,
            handle=consumer.create,
            names=1,
            takes_rest=True,
            check_first=consumers.check_create,
            targets=frozenset({Target.DELIVER}),
        ),
        "CONSUMER.DURABLE.CREATE": Endpoint(
            kind=create_kind,
            handle=consumer.create_durable,
            names=2,
            check_first=consumers.check_create,
            targets=frozenset({Target.DELIVER}),
        ),
        "CONSUMER.NAMES": Endpoint(kind="consumer_names_response", handle=consumer.names, names=1, only_reads=True),
        "CONSUMER.LIST": Endpoint(kind="consumer_list_response", handle=consumer.list_all, names=1, only_reads=True),
        "CONSUMER.INFO": Endpoint(
            kind="consumer_info_response",
            handle=consumer.info,
            names=2,
            check_first=Call.check_empty,
            only_reads=True,
        ),
        "CONSUMER.DELETE": Endpoint(kind="consumer_delete_response", handle=consumer.delete, names=2),
        "CONSUMER.PAUSE": Endpoint(kind="consumer_pause_response", handle=consumer.pause, names=2),
        "CONSUMER.UNPIN": Endpoint(
            kind="consumer_unpin_response", handle=consumer.unpin, names=2, check_body=consumers.check_unpin
        ),
        "CONSUMER.RESET": Endpoint(
            kind="consumer_reset_response",
            handle=consumer.reset,
            names=2,
            is_there=consumer.is_there,
            is_of_api=False,
        ),
        "STREAM.LEADER.STEPDOWN": _cluster_endpoint("stream_leader_stepdown_response", 1),
        "STREAM.PEER.REMOVE": _cluster_endpoint("stream_remove_peer_response", 1),
        "STREAM.PEER.EVACUATE": _cluster_endpoint("stream_evacuate_peer_response", 1),
        "STREAM.CANCEL_MOVE": _cluster_endpoint("stream_cancel_move_response", 1),
        "CONSUMER.LEADER.STEPDOWN": _cluster_endpoint("consumer_leader_stepdown_response", 2),
        "CONSUMER.PEER.REMOVE": _cluster_endpoint("consumer_remove_peer_response", 2),
        "CONSUMER.PEER.EVACUATE": _cluster_endpoint("consumer_evacuate_peer_response", 2),
    }
    return {tuple(words.split(".")): endpoint for words, endpoint in by_words.items()}
