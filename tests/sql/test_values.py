"""Values as text and as JSON."""

import datetime
import json
from decimal import Decimal

import pytest

from jetlake.errors import ConfigurationError
from jetlake.sql.values import as_json, as_text, rows_of

NOON = datetime.datetime(2026, 1, 31, 12, 0, 0, 500, tzinfo=datetime.UTC)


def test_values_become_json():
    row = {
        "text": "ä",
        "bytes": b"\xff{}",
        "time": NOON,
        "day": NOON.date(),
        "sum": Decimal(12345678901234567890),
        "price": Decimal("1.50"),
        "map": {"A": ["b"]},
        "list": [b"x", None],
        "nan": float("nan"),
        "nothing": None,
        "yes": True,
    }

    assert json.loads(as_json(row)) == {
        "text": "ä",
        "bytes": "\\xff{}",
        "time": "2026-01-31T12:00:00.000500Z",
        "day": "2026-01-31",
        "sum": 12345678901234567890,
        "price": 1.5,
        "map": {"A": ["b"]},
        "list": ["x", None],
        "nan": "nan",
        "nothing": None,
        "yes": True,
    }


def test_text_is_one_line_and_has_an_end():
    assert as_text("a\n\x1b[31mb\tc") == "a  [31mb c"
    assert as_text({"a": 1}) == '{"a":1}'
    assert as_text("x" * 10, 5) == "xxxx…"


def test_decimals_keep_every_digit():
    money, small = Decimal("12345678901234567.89"), Decimal("0E-10")

    assert (as_text(money), as_text(small), as_text(Decimal("1.50"))) == (
        "12345678901234567.89",
        "0.0000000000",
        "1.50",
    )
    assert as_text({"sum": [money]}) == '{"sum":[12345678901234567.89]}'
    assert as_json({"sum": money, "parts": [Decimal("0.10")]}) == b'{"sum":12345678901234567.89,"parts":[0.10]}'


def test_time_that_python_cannot_hold_is_told_with_its_column():
    pa = pytest.importorskip("pyarrow")
    ended = {"never": pa.array([2**63 - 1], pa.timestamp("us")), "early": pa.array([-735_000], pa.date32())}

    for name, column in ended.items():
        batch = pa.record_batch({"id": [1], name: column})
        with pytest.raises(ConfigurationError, match=f"column {name} has a value .* cast it to VARCHAR"):
            rows_of(batch)
