"""Answers: every column has a name of its own."""

import pytest

from jetlake.sql.answers import QueryAnswer
from jetlake.sql.values import rows_of

pa = pytest.importorskip("pyarrow", reason="the extra `sql` is not installed")


def answer(*names):
    """An answer of one row, the numbers 1, 2 and so on in columns of these names."""
    batch = pa.record_batch([pa.array([number]) for number in range(1, len(names) + 1)], names=list(names))
    return QueryAnswer.of(batch.schema, iter([batch]))


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (("a", "b"), ("a", "b")),
        (("a", "a", "a"), ("a", "a_1", "a_2")),
        (("a", "a", "a_1"), ("a", "a_2", "a_1")),
        (("a_1", "a", "a"), ("a_1", "a", "a_2")),
        ((), ()),
    ],
)
def test_columns_of_the_same_name_get_a_number(given, named):
    found = answer(*given)

    assert tuple(found.columns) == named
    (row,) = [row for batch in found.batches for row in rows_of(batch)] or [{}]
    assert row == {name: number for number, name in enumerate(named, 1)}
