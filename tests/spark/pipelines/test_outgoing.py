"""Rows as messages for a stream."""

import pytest

from jetlake.errors import ConfigurationError
from jetlake.spark.pipelines.model import StreamOutput
from jetlake.spark.pipelines.outgoing import as_messages

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def orders(spark):
    return spark.sql("SELECT * FROM VALUES (1, 'New York.*>'), (2, ''), (3, NULL) AS t(id, city) ORDER BY id")


def test_a_subject_takes_values_of_the_row_and_stays_one_subject(orders):
    frame = as_messages(orders, StreamOutput("ALERTS", "alerts.{city}.{id}"))

    assert [(row.subject, row.value) for row in frame.collect()] == [
        ("alerts.New_York___.1", '{"id":1,"city":"New York.*>"}'),
        ("alerts._.2", '{"id":2,"city":""}'),
        ("alerts._.3", '{"id":3}'),
    ]


def test_a_payload_that_is_there_is_sent_as_it_is(orders):
    given = orders.selectExpr("CONCAT('a.', id) AS subject", "CAST(city AS BINARY) AS data", "'x' AS msg_id", "id")

    frame = as_messages(given, StreamOutput("ALERTS"))

    assert sorted(frame.columns) == ["data", "msg_id", "subject"]


def test_what_cannot_be_sent_is_refused(orders):
    with pytest.raises(ConfigurationError, match="give a `subject`, such as alerts"):
        as_messages(orders, StreamOutput("ALERTS"))
    with pytest.raises(ConfigurationError, match="no column is left for the payload"):
        as_messages(orders.selectExpr("'a' AS subject"), StreamOutput("ALERTS"))
