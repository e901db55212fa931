"""`Answer`: what a request is answered with, and what is done once it has been given."""

from collections.abc import Callable

import msgspec

from jetlake.management.requests.calls import Steps

BROKEN = "the server failed to answer; this is a bug, and its log has the details"


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
