"""Fields of payloads, from Spark's notation to DuckDB's."""

import json

import pytest

from jetlake.errors import ConfigurationError
from jetlake.sql.fields import structure_of


def test_fields_of_every_kind_are_translated():
    text = "id BIGINT, total decimal(10, 2), tags ARRAY<STRING>, at STRUCT<city: STRING, zip INT>, m MAP<STRING, INT>"

    assert json.loads(structure_of(text)) == {
        "id": "BIGINT",
        "total": "DECIMAL(10, 2)",
        "tags": ["VARCHAR"],
        "at": {"city": "VARCHAR", "zip": "INTEGER"},
        "m": "MAP(VARCHAR, INTEGER)",
    }


def test_names_in_backticks_may_be_anything():
    assert json.loads(structure_of("`a b` STRING")) == {"a b": "VARCHAR"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id BIGIN", "there is no type BIGIN; did you mean BIGINT?"),
        ("id", "'id' is not a field; write id BIGINT"),
        ("", "is not a field"),
        ("m MAP<STRING>", "needs a type for keys and one for values"),
    ],
)
def test_mistakes_are_told(text, message):
    with pytest.raises(ConfigurationError) as error:
        structure_of(text)

    assert message in str(error.value)
