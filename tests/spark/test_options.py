"""The table of options."""

import re
from pathlib import Path

import pytest

from jetlake.errors import ConfigurationError
from jetlake.spark.naming import to_connect
from jetlake.spark.options import OPTIONS, parse

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "spark.md"


def test_every_option_has_a_value_of_its_kind_without_any_given():
    read, write = parse({}, "read"), parse({}, "write")

    assert read["maxRowsPerTrigger"] == 1_000_000
    assert read["maxBytesPerTrigger"] == 128 * 1024 * 1024
    assert read["failOnDataLoss"] is True
    assert write["guarantee"] == "exactly-once"
    assert "guarantee" not in read
    assert "subjects" not in write


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("MAXROWSPERTRIGGER", "5", 5),
        ("maxBytesPerTrigger", "2 MB", 2 * 1024 * 1024),
        ("maxBytesPerTrigger", "77", 77),
        ("maxTriggerDelay", "1.5m", 90.0),
        ("maxTriggerDelay", "250ms", 0.25),
        ("subjects", "a.>, b.*", ("a.>", "b.*")),
        ("failOnDataLoss", "False", False),
        ("startingSequence", "Earliest", "earliest"),
        ("startingSequence", '{"A": 5, "B": "latest"}', {"A": 5, "B": "latest"}),
        ("startingTimestamp", "1700000000123", "2023-11-14T22:13:20.123Z"),
        ("startingTimestamp", "2026-01-31", "2026-01-31T00:00:00Z"),
        ("startingTimestamp", "2026-01-31T12:00:00.123456789+02:00", "2026-01-31T10:00:00.123456789Z"),
        ("domain", "hub", "hub"),
    ],
)
def test_values_are_read_as_their_kind_says(name, text, value):
    values = parse({name: text}, "read")

    assert {key.lower(): found for key, found in values.items()}[name.lower()] == value


def test_a_domain_says_where_the_api_is():
    assert parse({"domain": "hub"}, "write")["apiPrefix"] == "$JS.hub.API"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"startingSequenc": "1"}, "did you mean startingSequence"),
        ({"subject": "a"}, "`subject` is for writing; to read, use `subjects`"),
        ({"somethingElse": "a"}, "docs/reference/spark.md lists them all"),
        ({"maxRowsPerTrigger": "0"}, "at least 1"),
        ({"maxRowsPerTrigger": "many"}, "whole number"),
        ({"maxBytesPerTrigger": "1x"}, "such as 256m"),
        ({"maxTriggerDelay": "soon"}, "such as 500ms"),
        ({"failOnDataLoss": "perhaps"}, "true or false"),
        ({"decode": "xml"}, "one of none, json"),
        ({"startingSequence": "0"}, "a sequence from 1 on"),
        ({"startingSequence": "{A: 5}"}, 'write it like {"ORDERS": 5}'),
        ({"startingTimestamp": "yesterday"}, "write 2026-01-31T12:00:00Z"),
        ({"startingTimestamp": "9" * 20}, "too many milliseconds for a date"),
        ({"startingTimestamp": "1", "startingSequence": "1"}, "contradict each other"),
        ({"user": "a", "token": "b"}, "authenticate in one way"),
    ],
)
def test_values_that_cannot_work_are_refused_with_what_to_do(given, says):
    from jetlake.spark.connecting import settings_of

    with pytest.raises(ConfigurationError, match=re.escape(says)):
        settings_of(parse(given, "read"))


def test_server_is_another_name_of_url():
    assert parse({"Server": "nats://a:1"}, "read")["url"] == "nats://a:1"
    assert to_connect({"server": "nats://a:1"}) == {"url": "nats://a:1"}


def test_options_that_spark_adds_are_passed_over():
    assert parse({"path": "x", "checkpointLocation": "y", "queryName": "z"}, "write")["stream"] == ""


def test_the_reference_has_a_row_for_every_option_with_its_default():
    rows = {
        cells[1].strip().strip("`"): [cell.strip() for cell in cells[2:-1]]
        for line in PAGE.read_text().splitlines()
        if (cells := line.split("|")) and line.startswith("| `")
    }

    for option in OPTIONS:
        assert option.name in rows, f"explain {option.name} in docs/reference/spark.md"
        default = rows[option.name][0].strip("`")
        expected = {"None": "", "()": "", "False": "false", "True": "true"}.get(
            str(option.default), str(option.default)
        )
        assert default == expected, f"the default of {option.name} is {expected!r} in the table of options"
