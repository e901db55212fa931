"""The message sets of 2019: `$JS.MSGSETS` and `$JS.MSGSET.…`, with the name of the set in the body."""

from jetlake.management.context import ApiContext
from jetlake.management.preview import answers, stream_words
from jetlake.management.preview.calls import asked, read_number, read_object, read_words
from jetlake.management.preview.streams import delete_message
from jetlake.management.requests.calls import Call
from jetlake.management.streams.dialect import OF_2019
from jetlake.management.streams.info import describe_state


class MessageSetAnswers:
    """The endpoints, with what they work on."""

    def __init__(self, api: ApiContext) -> None:
        self._api = api

    def names(self, call: Call) -> bytes:
        """Return the names of all message sets."""
        return answers.document(self._api.catalog.streams_of(call.account).names)

    def create(self, call: Call) -> bytes:
        """Make a message set."""
        config = stream_words.to_today(read_object(call.body), OF_2019)
        self._api.streams.create(asked(call, str(config.get("name", "")), body=config))
        return answers.OK

    def info(self, call: Call) -> bytes:
        """Return how much there is in a message set, and its configuration."""
        (name,) = read_words(call.body, 1)
        stream = self._api.catalog.find(call.account, name)
        state = describe_state(stream, self._api.catalog.state(call.account, name))
        return answers.document(
            {
                "Msgs": state["messages"],
                "Bytes": state["bytes"],
                "FirstSeq": state["first_seq"],
                "LastSeq": state["last_seq"],
                "config": stream_words.from_today(stream.config, OF_2019),
            }
        )

    def delete(self, call: Call) -> bytes:
        """Delete a message set with everything in it."""
        self._api.streams.delete_at_once(asked(call, *read_words(call.body, 1)))
        return answers.OK

    def purge(self, call: Call) -> bytes:
        """Remove all messages."""
        self._api.streams.purge(asked(call, *read_words(call.body, 1)))
        return answers.OK

    def delete_message(self, call: Call) -> bytes:
        """Remove one message; its bytes are overwritten."""
        name, sequence = read_words(call.body, 2)
        delete_message(self._api, call, name, read_number(sequence.encode()))
        return answers.OK
