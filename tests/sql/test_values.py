"""Values as text and as JSON."""

import datetime
import json
from decimal import Decimal

from jetlake.sql.values import as_json, as_text

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
