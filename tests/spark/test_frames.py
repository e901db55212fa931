"""A stream as Arrow or pandas, without Spark."""

import pytest

pytest.importorskip("pyarrow", reason="the extra `spark` is not installed")

from jetlake.errors import ClientError, ConfigurationError
from jetlake.frames import table


@pytest.fixture(scope="module")
def filled(shore):
    name = shore.create()
    shore.fill(name, 10_000)
    return name


def test_a_table_has_every_message_in_order(shore, filled):
    rows = table(filled, shore.url).to_arrow()

    assert rows.column_names == ["stream", "subject", "sequence", "timestamp", "time_ns", "headers", "data"]
    assert rows.column("sequence").to_pylist() == list(range(1, 10_001))


def test_columns_subjects_and_bounds_narrow_it(shore, filled):
    rows = table(
        filled, shore.url, columns=["data"], subjects=[f"{filled}.1"], startingSequence=101, endingSequence=109
    ).to_arrow()

    assert rows.to_pydict() == {"data": [b'{"n": 101}', b'{"n": 105}']}


def test_pandas_gets_a_frame(shore, filled):
    frame = table(filled, shore.url, columns=["sequence", "subject"]).to_pandas()

    assert len(frame) == 10_000
    assert frame.groupby("subject").size().tolist() == [2500] * 4


def test_whatever_takes_arrow_takes_a_table(shore, filled):
    import pyarrow as pa

    assert pa.table(table(filled, shore.url, columns=["sequence"])).num_rows == 10_000


def test_a_table_is_what_was_there_when_it_was_made(shore):
    name = shore.create()
    shore.fill(name, 3)
    made = table(name, shore.url)
    shore.fill(name, 2)

    assert made.to_arrow().num_rows == 3
    assert repr(made) == f"<jetlake table {name}: 1 to 3>"
    assert table(shore.create(), shore.url).to_arrow().num_rows == 0


def test_mistakes_are_told_with_what_to_do(shore, filled):
    with pytest.raises(ConfigurationError, match="no column dat: there are stream"):
        table(filled, shore.url, columns=["dat"])
    with pytest.raises(ConfigurationError, match="did you mean subjects"):
        table(filled, shore.url, subject_="x")
    with pytest.raises(ClientError, match="there is no stream 'NOT_THERE'"):
        table("NOT_THERE", shore.url)
