"""The envelope of answers."""

import json

from jetlake.management.wire.error_codes import ErrorCode
from jetlake.management.wire.error_codes import RequestError as ApiError
from jetlake.management.wire.replies import failure, success


def test_type_stands_first_and_the_fields_follow():
    assert success("stream_delete_response", {"success": True}) == (
        b'{"type":"io.nats.jetstream.api.v1.stream_delete_response","success":true}'
    )


def test_error_keeps_the_fields_that_are_never_left_out():
    answer = failure("stream_names_response", ApiError(ErrorCode.STREAM_NOT_FOUND))

    assert list(json.loads(answer)) == ["type", "error", "total", "offset", "limit", "streams"]
    assert json.loads(answer)["streams"] is None
