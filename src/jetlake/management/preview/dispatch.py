"""From a subject of an old dialect to its endpoint, through the checks that all share, to the bytes of an answer.

Invariant: `answer` returns for every request, whatever its bytes; what breaks in our own code is answered as such.
"""

from collections.abc import Callable

import msgspec

from jetlake.management.context import ApiContext
from jetlake.management.engine.protocols import Request
from jetlake.management.preview import answers, subjects
from jetlake.management.preview.account import AccountAnswers
from jetlake.management.preview.answers import PreviewError
from jetlake.management.preview.calls import read_object, read_words
from jetlake.management.preview.consumers import ConsumerAnswers
from jetlake.management.preview.message_sets import MessageSetAnswers
from jetlake.management.preview.observables import ObservableAnswers
from jetlake.management.preview.streams import StreamAnswers
from jetlake.management.preview.templates import TemplateAnswers, Templates
from jetlake.management.requests.answer import BROKEN, Answer
from jetlake.management.requests.calls import Call
from jetlake.management.requests.rights import SendTarget, check_equivalents
from jetlake.management.streams.dialect import OF_2019, OF_2020
from jetlake.management.wire import replies
from jetlake.management.wire.error_codes import ErrorCode, RequestError

NOT_ENABLED = "jetstream not enabled for account"


Handle = Callable[[Call], bytes]


class Needs(msgspec.Struct, frozen=True):
    """Today's requests that do the same, without `$JS.API`: a user who may not send them may not send this one."""

    # `{}` are the names.
    patterns: tuple[str, ...]
    # The same with the names that a call says.
    of: Callable[[Call], tuple[str, ...]]


class PreviewEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """What answers one kind of request."""

    pattern: str
    handle: Handle
    dialect: str
    needs: Needs
    # Where it has the server send to besides the answer; each is checked by what answers today.
    targets: frozenset[SendTarget] = frozenset()


class PreviewDispatcher:
    """All endpoints of both dialects."""

    def __init__(self, api: ApiContext, templates: Templates) -> None:
        self._api = api
        self._endpoints = _endpoints(api, templates)

    def answer(self, request: Request) -> Answer | None:
        """Return the answer; None = there is none."""
        tokens = request.subject.removeprefix(subjects.PREFIX).split(".")
        for pattern in subjects.PULLS:
            names = subjects.names_in(pattern, tokens)
            if names is None:
                continue
            needed = "$JS.API.CONSUMER.MSG.NEXT.{}.{}".format(*names)
            if not request.may_publish(needed):
                text = f"permissions violation: this needs the right to publish to '{needed}'"
                body = answers.failure(text, OF_2019)
                return Answer(subject=request.subject, body=body, is_error=True, is_of_api=False)
            # If there is a consumer, the engine has answered; otherwise report that there is no responder.
            header = replies.NO_RESPONDERS_HEADER % request.subject.encode()
            return Answer(subject=request.subject, header=header, is_of_api=False)
        for endpoint in self._endpoints:
            names = subjects.names_in(endpoint.pattern, tokens)
            if names is not None:
                call = Call(
                    account=request.account,
                    subject=request.subject,
                    names=names,
                    body=request.payload,
                    connection_id=request.connection_id,
                    requester=request,
                )
                return self._answer_call(endpoint, call)
        return None

    def _answer_call(self, endpoint: PreviewEndpoint, call: Call) -> Answer:
        try:
            if call.account not in self._api.settings().accounts:
                raise PreviewError(NOT_ENABLED)
            check_equivalents(call, endpoint.needs.of(call))
            return Answer(subject=call.subject, body=endpoint.handle(call))
        except PreviewError as error:
            text = str(error)
        except RequestError as error:
            text = "bad request" if error.code is ErrorCode.INVALID_JSON else error.description
        except BaseException:  # noqa: BLE001 - whatever it was, an engine's panic included, must not end the API
            import traceback

            self._api.warn(f"JetStream API: a bug, please report it: {call.subject}: {traceback.format_exc()}")
            text = BROKEN
        return Answer(subject=call.subject, body=answers.failure(text, endpoint.dialect), is_error=True)


def _endpoints(api: ApiContext, templates: Templates) -> list[PreviewEndpoint]:
    account, streams, consumers = AccountAnswers(api), StreamAnswers(api), ConsumerAnswers(api)
    made_of = TemplateAnswers(api, templates)
    sets, observables = MessageSetAnswers(api), ObservableAnswers(api)
    of_2020: dict[str, tuple[Handle, Needs]] = {
        "ENABLED": (account.enabled, _named("INFO")),
        "INFO": (account.info, _named("INFO")),
        "STREAM.LIST": (streams.names, _named("STREAM.NAMES")),
        "STREAM.*.CREATE": (streams.create, _named("STREAM.CREATE.{}")),
        "STREAM.*.UPDATE": (streams.update, _named("STREAM.UPDATE.{}")),
        "STREAM.*.INFO": (streams.info, _named("STREAM.INFO.{}")),
        "STREAM.*.DELETE": (streams.delete, _named("STREAM.DELETE.{}")),
        "STREAM.*.PURGE": (streams.purge, _named("STREAM.PURGE.{}")),
        "STREAM.*.MSG.DELETE": (streams.delete_message, _named("STREAM.MSG.DELETE.{}")),
        "STREAM.*.MSG.BYSEQ": (streams.message, _named("STREAM.MSG.GET.{}")),
        "STREAM.*.CONSUMERS": (consumers.names, _named("CONSUMER.NAMES.{}")),
        "STREAM.*.EPHEMERAL.CONSUMER.CREATE": (consumers.create_ephemeral, _named("CONSUMER.CREATE.{}")),
        "STREAM.*.CONSUMER.*.CREATE": (consumers.create, _named("CONSUMER.DURABLE.CREATE.{}.{}")),
        "STREAM.*.CONSUMER.*.INFO": (consumers.info, _named("CONSUMER.INFO.{}.{}")),
        "STREAM.*.CONSUMER.*.DELETE": (consumers.delete, _named("CONSUMER.DELETE.{}.{}")),
        "TEMPLATE.LIST": (made_of.names, _named("STREAM.TEMPLATE.NAMES")),
        # The streams that a template makes, and takes along, have names made of subjects.
        "TEMPLATE.*.CREATE": (made_of.create, _named("STREAM.TEMPLATE.CREATE.{}", "STREAM.CREATE.*")),
        "TEMPLATE.*.INFO": (made_of.info, _named("STREAM.TEMPLATE.INFO.{}")),
        "TEMPLATE.*.DELETE": (made_of.delete, _named("STREAM.TEMPLATE.DELETE.{}", "STREAM.DELETE.*")),
    }
    of_2019: dict[str, tuple[Handle, Needs]] = {
        "MSGSETS": (sets.names, _named("STREAM.NAMES")),
        "MSGSET.CREATE": (sets.create, Needs(("STREAM.CREATE.{}",), _set_creation)),
        "MSGSET.INFO": (sets.info, _written("STREAM.INFO.{}", 1)),
        "MSGSET.DELETE": (sets.delete, _written("STREAM.DELETE.{}", 1)),
        "MSGSET.PURGE": (sets.purge, _written("STREAM.PURGE.{}", 1)),
        "MSGSET.MSG.DELETE": (sets.delete_message, _written("STREAM.MSG.DELETE.{}", 2)),
        "OBSERVABLES": (observables.names, _written("CONSUMER.NAMES.{}", 1)),
        "OBSERVABLE.CREATE": (observables.create, _CREATING_OBSERVABLE),
        "OBSERVABLE.INFO": (observables.info, _written("CONSUMER.INFO.{}.{}", 2)),
        "OBSERVABLE.DELETE": (observables.delete, _written("CONSUMER.DELETE.{}.{}", 2)),
    }
    return [
        PreviewEndpoint(pattern=pattern, handle=handle, dialect=dialect, needs=needs, targets=_targets_of(pattern))
        for dialect, endpoints in ((OF_2020, of_2020), (OF_2019, of_2019))
        for pattern, (handle, needs) in endpoints.items()
    ]


def _named(*subjects: str) -> Needs:
    """The names are in the subject of the request."""
    return Needs(subjects, lambda call: tuple(subject.format(*call.names) for subject in subjects))


def _written(subject: str, count: int) -> Needs:
    """The names are words in the body."""
    return Needs((subject,), lambda call: (subject.format(*read_words(call.body, count)),))


def _targets_of(pattern: str) -> frozenset[SendTarget]:
    """Streams of those years send nowhere; consumers deliver."""
    makes_consumer = pattern.endswith("CONSUMER.CREATE") or "CONSUMER.*.CREATE" in pattern
    return frozenset({SendTarget.DELIVER}) if makes_consumer or pattern == "OBSERVABLE.CREATE" else frozenset()


def _set_creation(call: Call) -> tuple[str, ...]:
    return (f"STREAM.CREATE.{read_object(call.body).get('name', '')}",)


def _observable_creation(call: Call) -> tuple[str, ...]:
    request = read_object(call.body)
    config = request.get("config")
    durable = config.get("durable_name") if isinstance(config, dict) else None
    stream = request.get("msg_set_name", "")
    return (f"CONSUMER.DURABLE.CREATE.{stream}.{durable}" if durable else f"CONSUMER.CREATE.{stream}",)


_CREATING_OBSERVABLE = Needs(("CONSUMER.CREATE.{}", "CONSUMER.DURABLE.CREATE.{}.{}"), _observable_creation)
"""One of them, depending on whether it is to have a name."""
