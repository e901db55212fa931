"""From the subject of a request to its endpoint, through the checks that all share, to the bytes of an answer.

The checks in their order: an endpoint of clusters is refused as such; some bodies are looked at first; then the API
level the request needs, whether its account may store at all, and then what the endpoint itself asks.

A subject without an endpoint gets no answer at all, as on nats-server: its sender finds out by his time-out.

Invariant: `answer` returns for every request, whatever its bytes; what breaks in our own code is answered as such.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from jetlake.management.context import ApiContext
from jetlake.management.endpoint_table import Endpoint, endpoints_of
from jetlake.management.endpoints.messages import PlainRequest
from jetlake.management.engine.protocols import Request
from jetlake.management.requests.answer import BROKEN, Answer
from jetlake.management.requests.calls import API_PREFIX, Call, Granted
from jetlake.management.requests.rights import check_equivalents
from jetlake.management.wire import replies
from jetlake.management.wire.error_codes import ErrorCode, RequestError

if TYPE_CHECKING:
    from jetlake.management.preview.dispatch import PreviewDispatcher

DOMAIN_SUBJECTS = ("INFO", "STREAM.>", "CONSUMER.>", "DIRECT.>", "META.>", "SERVER.>", "ACCOUNT.>")
"""What of the API can also be reached as `$JS.<domain>.API.…`."""

_PREFIX_TOKENS_MAX = 3
_PURGE_ACCOUNT = ("ACCOUNT", "PURGE")
_CLUSTER_WORDS = ("META", "SERVER", "ACCOUNT")
"""Below these are requests to clusters, which nobody answers here, not even to the system account."""


class Dispatcher:
    """All endpoints of one server. `preview` returns what answers in the old dialects."""

    def __init__(self, api: ApiContext, preview: Callable[[], "PreviewDispatcher"]) -> None:
        self._api = api
        self._preview = preview
        self._endpoints = endpoints_of(api)

    def answer(self, request: Request) -> Answer | None:
        """Return the answer; None = there is none."""
        settings = self._api.settings()
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
        settings = self._api.settings()
        subject = api_subject(request.subject, settings.domain)
        if subject is None or request.account == settings.system_account:
            return False
        found = self._find(subject.removeprefix(API_PREFIX).split("."))
        return found is not None and found[0].only_reads

    def _answer_preview(self, request: Request) -> Answer | None:
        """What is not below the prefix of today's API is one of the old dialects, but for the system account."""
        return None if request.account == self._api.settings().system_account else self._preview().answer(request)

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
                raise RequestError(ErrorCode.NOT_ENABLED_FOR_ACCOUNT)
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
        except RequestError as error:
            body = replies.failure(endpoint.kind, error)
            return Answer(subject=call.subject, body=body, is_error=True, is_of_api=endpoint.is_of_api)
        except BaseException:  # noqa: BLE001 - whatever it was, an engine's panic included, must not end the API
            import traceback

            self._api.warn(f"JetStream API: a bug, please report it: {call.subject}: {traceback.format_exc()}")
            broken = RequestError(ErrorCode.STREAM_GENERAL_ERROR, err=BROKEN)
            return Answer(subject=call.subject, body=replies.failure(endpoint.kind, broken), is_error=True)

    def _answer_system(self, subject: str, tokens: list[str]) -> Answer | None:
        """The system account stores nothing; it may delete all that another one has stored."""
        if tuple(tokens[:2]) == _PURGE_ACCOUNT and len(tokens) == 3:
            return self._purge_account(subject, tokens[2])
        if tokens[0] in _CLUSTER_WORDS:
            return None
        kind = "account_info_response" if tokens == ["INFO"] else "system_response"
        body = replies.failure(kind, RequestError(ErrorCode.NOT_ENABLED_FOR_ACCOUNT))
        return Answer(subject=subject, body=body, is_error=True)

    def _purge_account(self, subject: str, account: str) -> Answer:
        kind = "account_purge_response"
        try:
            if account in self._api.catalog.accounts:
                with self._api.alone_with(account):
                    self._api.streams.delete_all(account)
        except RequestError as error:
            return Answer(subject=subject, body=replies.failure(kind, error), is_error=True)
        return Answer(subject=subject, body=replies.success(kind, {"initiated": True}))

    def _answer_in_place_of_stream(self, request: Request, subject: str, tokens: list[str]) -> Answer | None:
        """Pulls, direct gets and uploads are answered by consumers and streams; where none is, that is told.

        Those listen below `$JS.API`; a request that names the domain instead is passed to them.
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
            return tokens[4] in self._api.catalog.consumers.of(account, tokens[3])
        if tokens[0] == "STREAM":
            return tokens[3] in self._api.catalog.streams_of(account)
        stream = self._api.catalog.streams_of(account).get(tokens[2]) if len(tokens) > 2 else None
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
    """Return whether this is about uploads of `stream/staged_commit/requests.rs`."""
    return tokens[:2] == ["STREAM", "UPLOAD"] and len(tokens) == 4
