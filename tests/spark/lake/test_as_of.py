"""Which version of a table a text means."""

from datetime import UTC, datetime

import pytest

from jetlake.errors import ConfigurationError
from jetlake.spark.lake.as_of import parse_as_of


@pytest.mark.parametrize(
    ("text", "as_of"),
    [
        ("12", 12),
        ("2026-01-31", datetime(2026, 1, 31, tzinfo=UTC)),
        ("2026-01-31T12:00:00Z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        (" 2026-01-31 12:00:00+02:00 ", datetime(2026, 1, 31, 10, tzinfo=UTC)),
    ],
)
def test_a_version_or_a_time_is_understood(text, as_of):
    assert parse_as_of(text) == as_of


def test_a_time_that_is_past_is_counted_from_now():
    before = datetime.now(UTC)

    assert 599 <= (before - parse_as_of("10 minutes ago")).total_seconds() <= 600


@pytest.mark.parametrize("text", ["", "yesterday", "-3", "10 weeks ago", "2026-13-01"])
def test_anything_else_is_refused_with_what_to_write(text):
    with pytest.raises(ConfigurationError, match="names no version: give its number, a time such as"):
        parse_as_of(text)
