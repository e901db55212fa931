"""From a subject of an old dialect to its endpoint, through the checks that all share, to the bytes of an answer.

Invariant: `answer` returns for every request, whatever its bytes; what breaks in our own code is answered as such.
"""

from collections.abc import Callable

import msgspec

from jetlake.management import replies
from jetlake.management.calls import Call
from jetlake.management.dialect import OF_2019, OF_2020
from jetlake.management.dispatch import BROKEN, Answer
from jetlake.management.error_codes import ApiError, ErrorCode
from jetlake.management.preview import answers, subjects
from jetlake.management.preview.account import AccountAnswers
from jetlake.management.preview.answers import PreviewError
from jetlake.management.preview.consumers import ConsumerAnswers
from jetlake.management.preview.endpoints import Today
from jetlake.management.preview.message_sets import MessageSetAnswers
from jetlake.management.preview.observables import ObservableAnswers
from jetlake.management.preview.streams import StreamAnswers
from jetlake.management.preview.templates import TemplateAnswers, Templates
from jetlake.management.protocols import Request

NOT_ENABLED = "jetstream not enabled for account"


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """What answers one kind of request."""

    pattern: str
    handle: Callable[[Call], bytes]
    dialect: str


class PreviewDispatcher:
    """All endpoints of both dialects."""

    def __init__(self, today: Today, templates: Templates, warn: Callable[[str], None]) -> None:
        self._today = today
        self._warn = warn
        self._endpoints = _endpoints(today, templates)

    def answer(self, request: Request) -> Answer | None:
        """Return the answer; None = there is none."""
        tokens = request.subject.removeprefix(subjects.PREFIX).split(".")
        if any(subjects.names_in(pattern, tokens) is not None for pattern in subjects.PULLS):
            # Where a consumer is, the engine has answered; elsewhere nobody listens, and that is told.
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
                )
                return self._answer_call(endpoint, call)
        return None

    def _answer_call(self, endpoint: Endpoint, call: Call) -> Answer:
        try:
            if call.account not in self._today.settings().accounts:
                raise PreviewError(NOT_ENABLED)
            return Answer(subject=call.subject, body=endpoint.handle(call))
        except PreviewError as error:
            text = str(error)
        except ApiError as error:
            text = "bad request" if error.code is ErrorCode.INVALID_JSON else error.description
        except BaseException:  # noqa: BLE001 - whatever it was, an engine's panic included, must not end the API
            import traceback

            self._warn(f"JetStream API: a bug, please report it: {call.subject}: {traceback.format_exc()}")
            text = BROKEN
        return Answer(subject=call.subject, body=answers.failure(text, endpoint.dialect), is_error=True)


def _endpoints(today: Today, templates: Templates) -> list[Endpoint]:
    account, streams, consumers = AccountAnswers(today), StreamAnswers(today), ConsumerAnswers(today)
    made_of = TemplateAnswers(today, templates)
    sets, observables = MessageSetAnswers(today), ObservableAnswers(today)
    of_2020: dict[str, Callable[[Call], bytes]] = {
        "ENABLED": account.enabled,
        "INFO": account.info,
        "STREAM.LIST": streams.names,
        "STREAM.*.CREATE": streams.create,
        "STREAM.*.UPDATE": streams.update,
        "STREAM.*.INFO": streams.info,
        "STREAM.*.DELETE": streams.delete,
        "STREAM.*.PURGE": streams.purge,
        "STREAM.*.MSG.DELETE": streams.delete_message,
        "STREAM.*.MSG.BYSEQ": streams.message,
        "STREAM.*.CONSUMERS": consumers.names,
        "STREAM.*.EPHEMERAL.CONSUMER.CREATE": consumers.create_ephemeral,
        "STREAM.*.CONSUMER.*.CREATE": consumers.create,
        "STREAM.*.CONSUMER.*.INFO": consumers.info,
        "STREAM.*.CONSUMER.*.DELETE": consumers.delete,
        "TEMPLATE.LIST": made_of.names,
        "TEMPLATE.*.CREATE": made_of.create,
        "TEMPLATE.*.INFO": made_of.info,
        "TEMPLATE.*.DELETE": made_of.delete,
    }
    of_2019: dict[str, Callable[[Call], bytes]] = {
        "MSGSETS": sets.names,
        "MSGSET.CREATE": sets.create,
        "MSGSET.INFO": sets.info,
        "MSGSET.DELETE": sets.delete,
        "MSGSET.PURGE": sets.purge,
        "MSGSET.MSG.DELETE": sets.delete_message,
        "OBSERVABLES": observables.names,
        "OBSERVABLE.CREATE": observables.create,
        "OBSERVABLE.INFO": observables.info,
        "OBSERVABLE.DELETE": observables.delete,
    }
    return [
        Endpoint(pattern=pattern, handle=handle, dialect=dialect)
        for dialect, endpoints in ((OF_2020, of_2020), (OF_2019, of_2019))
        for pattern, handle in endpoints.items()
    ]
