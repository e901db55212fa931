"""Bodies and headers of requests."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetlake.management.requests.calls import Call
from jetlake.management.wire.error_codes import ErrorCode
from jetlake.management.wire.error_codes import RequestError as ApiError


def call(body: bytes = b"", header: bytes = b"") -> Call:
    return Call(account="$G", subject="$JS.API.X", body=body, header=header)


@pytest.mark.parametrize(
    ("body", "is_empty"),
    [
        (b"", True),
        (b"{}", True),
        (b" {\t\n} ", True),
        (b" ", False),
        (b"[]", False),
        (b'{"a":1}', False),
        (b"{}{}", False),
    ],
)
def test_body_without_keys_is_none(body, is_empty):
    assert call(body).is_empty is is_empty


@pytest.mark.parametrize(
    ("value", "is_refused"),
    [("5", False), ("6", True), ("", False), ("x", True), ("-1", False), ("+6", True), ("5 ", True), ("1_0", True)],
)
def test_level_that_a_request_needs_is_checked(value, is_refused):
    request = call(header=f"NATS/1.0\r\nA: b\r\nNats-Required-Api-Level: {value}\r\nC: d\r\n\r\n".encode())

    if is_refused:
        with pytest.raises(ApiError) as raised:
            request.check_level()
        assert raised.value.code is ErrorCode.REQUIRED_API_LEVEL
    else:
        request.check_level()


@given(st.binary())
def test_any_header_can_be_looked_at(header):
    with suppress(ApiError):
        call(header=header).check_level()
