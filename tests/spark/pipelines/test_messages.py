"""Payloads into columns, and rows that are set aside."""

import pytest

from jetlake.errors import ConfigurationError
from jetlake.spark.pipelines import messages
from jetlake.spark.pipelines.model import StreamInput
from jetlake.spark.pipelines.trial import message_frame

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]

COLUMNS = "id BIGINT, total DOUBLE, subject STRING"


def prepared(spark, payloads, **given):
    stream = StreamInput("ORDERS", **given)
    return messages.prepared(
        message_frame(spark, [{"data": data} for data in payloads], stream, "test"), stream, "test"
    )


def test_fields_of_the_payload_become_columns_and_those_of_the_message_stay(spark):
    frame = messages.good(prepared(spark, [{"id": 1, "total": 2.5, "subject": "inner"}], columns=COLUMNS))

    row = frame.first()
    assert (row.id, row.total, row.subject, row.value.subject) == (1, 2.5, "sample", "inner")


def test_a_payload_that_is_not_what_was_promised_is_set_aside_with_the_reason(spark):
    cases = [
        (b"\xff\xfe", messages.NOT_TEXT),
        ("no json", messages.NOT_JSON),
        ("", messages.NOT_JSON),
        ('{"id": 1', messages.NOT_JSON),
        ({"id": "one"}, messages.WRONG_FIELD),
        ("[1, 2]", messages.WRONG_FIELD),
    ]
    frame = prepared(spark, [*(payload for payload, _ in cases), {"id": 2}], columns="id BIGINT")

    aside = messages.bad(frame, "orders").collect()
    assert [(row.sequence, row.reason) for row in aside] == list(enumerate((reason for _, reason in cases), 1))
    assert {row.input for row in aside} == {"orders"}
    assert [row.id for row in messages.good(frame).collect()] == [2]


def test_what_is_expected_and_not_true_is_the_reason_and_null_is_not_true(spark):
    expect = {"no id": "id IS NOT NULL", "negative": "total >= 0"}
    rows = [{"id": 1, "total": 5}, {"total": 5}, {"id": 3, "total": -1}, {"id": 4}]
    frame = prepared(spark, rows, columns=COLUMNS, expect=expect)

    reasons = {row.sequence: row.reason for row in messages.bad(frame, "orders").collect()}
    assert reasons == {2: "no id", 3: "negative", 4: "negative"}


def test_without_anything_promised_every_row_is_good(spark):
    assert messages.good(prepared(spark, [b"\xff", ""])).count() == 2


def test_columns_that_cannot_be_read_are_named():
    with pytest.raises(ConfigurationError, match=r"columns 'id BIGNT' cannot be read"):
        messages.parse_fields("id BIGNT", "input orders")
    with pytest.raises(ConfigurationError, match="cannot be called value"):
        messages.parse_fields("value INT", "input orders")
