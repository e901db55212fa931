"""The table of errors, against the recorded one."""

import json
from pathlib import Path

import pytest

from jetlake.management.wire.error_codes import ErrorCode
from jetlake.management.wire.error_codes import RequestError as ApiError

RECORDED = json.loads(Path(__file__).with_name("recorded_error_codes.json").read_text())


def test_every_recorded_error_is_in_the_table_exactly_once():
    table = [{"err_code": code.number, "code": code.status, "description": code.text} for code in ErrorCode]

    assert table == RECORDED


def test_no_two_errors_share_a_number_or_are_one():
    numbers = [code.number for code in ErrorCode]

    assert len(set(numbers)) == len(numbers) == len(ErrorCode.__members__)


@pytest.mark.parametrize("code", list(ErrorCode), ids=lambda code: code.name)
def test_every_description_can_be_filled_in(code):
    error = ApiError(code, **{place: f"<{place}>" for place in code.places})

    assert "{" not in error.description
    assert all(f"<{place}>" in error.description for place in code.places)


def test_error_is_written_in_order():
    error = ApiError(ErrorCode.STREAM_WRONG_LAST_SEQUENCE, seq=7)

    assert list(error.to_json().items()) == [
        ("code", 400),
        ("err_code", 10071),
        ("description", "wrong last sequence: 7"),
    ]


def test_braces_in_a_value_are_left_alone():
    error = ApiError(ErrorCode.STREAM_EXTERNAL_API_OVERLAP, prefix="{subject}", subject="{{x}}")

    assert error.description == "stream external api prefix {subject} must not overlap with {{x}}"


def test_forgotten_value_is_a_bug():
    with pytest.raises(AssertionError, match="needs \\['seq'\\]"):
        ApiError(ErrorCode.STREAM_WRONG_LAST_SEQUENCE)
