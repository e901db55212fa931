"""The consumers of 2020: `$JS.STREAM.<stream>.CONSUMER.…`.

Each reads: ask today's endpoint, and say in the words of 2020 what it answers.
"""

from typing import Any

from jetlake.management.context import ApiContext
from jetlake.management.preview import answers, consumer_words
from jetlake.management.preview.calls import asked, read_object
from jetlake.management.requests.calls import Call
from jetlake.management.streams.dialect import OF_2020
from jetlake.management.wire.error_codes import ErrorCode, RequestError


class ConsumerAnswers:
    """The endpoints, with what they work on."""

    def __init__(self, api: ApiContext) -> None:
        self._api = api

    def names(self, call: Call) -> bytes:
        """Return the names of the consumers of a stream."""
        catalog = self._api.catalog
        catalog.find(call.account, call.stream)
        return answers.document(catalog.consumers.of(call.account, call.stream).public_names)

    def create(self, call: Call) -> bytes:
        """Make a durable consumer, or change it."""
        stream, name = call.names
        body = _request(call)
        self._api.consumers.make(asked(call, stream, name, body=body))
        return answers.OK

    def create_ephemeral(self, call: Call) -> bytes:
        """Make a consumer that ends when nobody uses it; the answer has its name."""
        made = self._api.consumers.make(asked(call, call.stream, body=_request(call)))
        return b"%s %s" % (answers.OK, made.fields["name"].encode())

    def info(self, call: Call) -> bytes:
        """Return the configuration and the state of a consumer."""
        stream, name = call.names
        catalog = self._api.catalog
        catalog.find(call.account, stream)
        consumer = catalog.consumers.find(call.account, stream, name)
        state = catalog.consumers.state(call.account, stream, name)
        waiting = catalog.consumers.pending(call.account, stream, name)
        described: dict[str, Any] = {
            "delivered": {
                "consumer_seq": waiting.next_consumer_sequence,
                "stream_seq": waiting.next_stream_sequence,
            },
            "ack_floor": {"consumer_seq": state.floor.consumer_sequence, "stream_seq": state.floor.stream_sequence},
            "pending": waiting.times_ns or None,
            "redelivered": waiting.redeliveries or None,
        }
        config = consumer_words.from_today(consumer.config, OF_2020)
        return answers.document({"name": name, "config": config, "state": described})

    def delete(self, call: Call) -> bytes:
        """Delete a consumer."""
        self._api.consumers.delete(asked(call, *call.names))
        return answers.OK


def _request(call: Call) -> dict[str, Any]:
    request = read_object(call.body)
    config = request.get("config")
    if not isinstance(config, dict):
        raise RequestError(ErrorCode.BAD_REQUEST)
    return {"stream_name": request.get("stream_name", ""), "config": consumer_words.to_today(config, OF_2020)}
