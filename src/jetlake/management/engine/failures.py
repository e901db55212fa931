"""What the engine cannot do, as the errors that the API answers with."""

from collections.abc import Iterator
from contextlib import contextmanager

from jetlake._engine import EngineError
from jetlake.management.wire.error_codes import ErrorCode, RequestError

_GONE = {"unknown_stream": ErrorCode.STREAM_NOT_FOUND, "unknown_consumer": ErrorCode.CONSUMER_NOT_FOUND}
"""The engine's words for what is not there."""


@contextmanager
def answered_as(code: ErrorCode) -> Iterator[None]:
    """Answer a failure of the engine with this error, and its own word that something is gone with ours."""
    try:
        yield
    except EngineError as error:
        kind, message = error.args
        if kind in _GONE:
            raise RequestError(_GONE[kind]) from error
        raise RequestError(code, err=message) from error
