"""The streams of 2020, and their messages: `$JS.STREAM.…`.

Each reads: ask today's endpoint, and say in the words of 2020 what it answers.
"""

import base64

from jetlake.management.context import ApiContext
from jetlake.management.engine.failures import answered_as
from jetlake.management.preview import answers, stream_words
from jetlake.management.preview.answers import PreviewError
from jetlake.management.preview.calls import asked, read_number, read_object
from jetlake.management.requests.calls import Call
from jetlake.management.streams.dialect import OF_2020, template_of
from jetlake.management.streams.info import describe_state
from jetlake.management.wire.error_codes import ErrorCode
from jetlake.shared.go_text import time_text

STATE_KEYS = ("messages", "bytes", "first_seq", "last_seq", "consumer_count")
NOT_LOADED = "could not load message from storage"
NOT_UPDATED = "stream configuration update not allowed on template owned stream"


class StreamAnswers:
    """The endpoints, with what they work on."""

    def __init__(self, api: ApiContext) -> None:
        self._api = api

    def names(self, call: Call) -> bytes:
        """Return the names of all streams."""
        return answers.document(self._api.catalog.streams_of(call.account).names)

    def create(self, call: Call) -> bytes:
        """Make a stream."""
        config = stream_words.to_today(read_object(call.body), OF_2020)
        self._api.streams.create(asked(call, call.stream, body=config))
        return answers.OK

    def update(self, call: Call) -> bytes:
        """Change a stream."""
        current = self._api.catalog.find(call.account, call.stream).config
        if template_of(current.metadata):
            raise PreviewError(NOT_UPDATED)
        wanted = stream_words.to_today(read_object(call.body), OF_2020)
        self._api.streams.update(asked(call, call.stream, body=stream_words.updated(current, wanted)))
        return answers.OK

    def info(self, call: Call) -> bytes:
        """Return the configuration and the state of a stream."""
        catalog = self._api.catalog
        stream = catalog.find(call.account, call.stream)
        state = catalog.state(call.account, call.stream)
        described = describe_state(stream, state, consumers=catalog.consumer_count(call.account, call.stream))
        return answers.document(
            {
                "config": stream_words.from_today(stream.config, OF_2020),
                "state": {key: described[key] for key in STATE_KEYS},
            }
        )

    def delete(self, call: Call) -> bytes:
        """Delete a stream with everything in it."""
        self._api.streams.delete_at_once(asked(call, call.stream))
        return answers.OK

    def purge(self, call: Call) -> bytes:
        """Remove all messages."""
        self._api.streams.purge(asked(call, call.stream))
        return answers.OK

    def delete_message(self, call: Call) -> bytes:
        """Remove one message; its bytes are overwritten."""
        delete_message(self._api, call, call.stream, read_number(call.body))
        return answers.OK

    def message(self, call: Call) -> bytes:
        """Return one message; without a number, the last one."""
        catalog = self._api.catalog
        catalog.find(call.account, call.stream)
        is_last = not call.body.strip()
        sequence = catalog.state(call.account, call.stream).last_sequence if is_last else read_number(call.body)
        with answered_as(ErrorCode.STREAM_GENERAL_ERROR):
            message = catalog.message(call.account, call.stream, sequence)
        if message is None:
            raise PreviewError(NOT_LOADED)
        subject, time_ns, payload = message
        data = base64.b64encode(payload).decode()
        return answers.document({"subject": subject, "seq": sequence, "data": data, "time": time_text(time_ns)})


def delete_message(api: ApiContext, call: Call, stream: str, sequence: int) -> None:
    """Remove one message, as both dialects do."""
    answer = api.messages.delete(asked(call, stream, body={"seq": sequence}))
    if "error" in answer:
        raise PreviewError(f"sequence [{sequence}] not found")
