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
    # A core status, or what the engine says, is not one of the API's answers: neither counted nor reported.
    is_of_api: bool = True
    # The request to the engine instead, on the same subject; the engine answers the sender itself.
    asked_of_engine: bytes | None = None
    # The kind of answer, and the consumer to make durable before it is sent: account, stream, name.
    kind: str = ""
    created: tuple[str, str, str] | None = None
    # Work to do once the answer has been sent.
    then: Callable[[], Steps | None] | None = None
