"""Rows that come from the state as lines of JSON are the same whether Spark reads them or this process does."""

import base64
import json
from datetime import UTC, date, datetime

import pytest

from jetlake.spark.pipelines.device_lines import BLOCK_BYTES_MIN, Lines

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

COLUMNS = {
    "name": "STRING",
    "count": "BIGINT",
    "at": "TIMESTAMP",
    "limits": "ARRAY<TIMESTAMP>",
    "day": "DATE",
    "data": "BINARY",
    "tags": "ARRAY<STRING>",
}
MICROS = 1_769_860_800_000_001
MOMENT = datetime(2026, 1, 31, 12, 0, 0, 1, tzinfo=UTC)


def texts(*rows):
    return "\n".join(json.dumps(row) for row in rows)


def test_spark_and_this_process_read_the_same(spark):
    full = {
        "name": "line\nbreak, ö",
        "count": 3,
        "at": MICROS,
        "limits": [MICROS, MICROS],
        "day": MICROS,
        "data": base64.b64encode(b"\x00\xff").decode(),
        "tags": ["a", ""],
        "unknown": {"to": "the table"},
    }
    rows = spark.createDataFrame(
        [("mine", texts(full, {})), ("other", texts({"name": "no"})), ("mine", texts({"count": 1, "limits": []}))],
        "target STRING, lines STRING",
    )
    lines = Lines("mine", COLUMNS)

    picked = lines.pick(rows).toArrow()
    taken = lines.take(rows.toArrow())

    nothing = dict.fromkeys(COLUMNS)
    expected = [
        {
            "name": "line\nbreak, ö",
            "count": 3,
            "at": MOMENT,
            "limits": [MOMENT, MOMENT],
            "day": date(2026, 1, 31),
            "data": b"\x00\xff",
            "tags": ["a", ""],
        },
        nothing,
        nothing | {"count": 1, "limits": []},
    ]
    assert sorted(taken.to_pylist(), key=str) == sorted(expected, key=str)
    assert picked.schema.equals(taken.schema)
    assert sorted(picked.to_pylist(), key=str) == sorted(expected, key=str)


def test_nothing_for_a_table_is_an_empty_table(spark):
    rows = spark.createDataFrame([("other", "{}")], "target STRING, lines STRING").toArrow()

    taken = Lines("mine", COLUMNS).take(rows)

    assert (len(taken), taken.column_names) == (0, list(COLUMNS))


def test_a_line_may_be_longer_than_what_is_parsed_at_a_time(spark):
    long = "x" * (2 * BLOCK_BYTES_MIN)
    rows = spark.createDataFrame([("mine", texts({"name": long}, {"name": "y"}))], "target STRING, lines STRING")

    assert Lines("mine", COLUMNS).take(rows.toArrow())["name"].to_pylist() == [long, "y"]
