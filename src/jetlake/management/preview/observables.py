"""The observables of 2019: `$JS.OBSERVABLES` and `$JS.OBSERVABLE.…`, with the names in the body.

`Delivered` is what comes next, not what came last.
"""

from typing import Any

from jetlake.management.context import ApiContext
from jetlake.management.preview import answers, consumer_words
from jetlake.management.preview.calls import asked, read_object, read_words
from jetlake.management.requests.calls import Call
from jetlake.management.streams.dialect import OF_2019
from jetlake.management.wire.error_codes import ErrorCode, RequestError


class ObservableAnswers:
    """The endpoints, with what they work on."""

    def __init__(self, api: ApiContext) -> None:
        self._api = api

    def names(self, call: Call) -> bytes:
        """Return the names of the observables of a set."""
        (message_set,) = read_words(call.body, 1)
        catalog = self._api.catalog
        catalog.find(call.account, message_set)
        return answers.document(catalog.consumers.of(call.account, message_set).public_names)

    def create(self, call: Call) -> bytes:
        """Make an observable; the answer has the name of one that is not durable."""
        request = read_object(call.body)
        message_set, config = request.get("msg_set_name", ""), request.get("config")
        if not isinstance(config, dict) or not isinstance(message_set, str):
            raise RequestError(ErrorCode.BAD_REQUEST)
        wanted = consumer_words.to_today(config, OF_2019)
        body = {"stream_name": message_set, "config": wanted}
        durable = wanted.get("durable_name")
        if durable:
            self._api.consumers.make(asked(call, message_set, str(durable), body=body))
            return answers.OK
        made = self._api.consumers.make(asked(call, message_set, body=body))
        return b"%s %s" % (answers.OK, made.fields["name"].encode())

    def info(self, call: Call) -> bytes:
        """Return how far an observable has come, and what waits for its acknowledgement."""
        message_set, name = read_words(call.body, 2)
        catalog = self._api.catalog
        catalog.find(call.account, message_set)
        catalog.consumers.find(call.account, message_set, name)
        floor = catalog.consumers.state(call.account, message_set, name).floor
        waiting = catalog.consumers.pending(call.account, message_set, name)
        described: dict[str, Any] = {
            "Delivered": {"ObsSeq": waiting.next_consumer_sequence, "SetSeq": waiting.next_stream_sequence},
            "AckFloor": {"ObsSeq": floor.consumer_sequence, "SetSeq": floor.stream_sequence},
            "Pending": waiting.times_ns or None,
            "Redelivery": waiting.redeliveries or None,
        }
        return answers.document(described)

    def delete(self, call: Call) -> bytes:
        """Delete an observable."""
        self._api.consumers.delete(asked(call, *read_words(call.body, 2)))
        return answers.OK
