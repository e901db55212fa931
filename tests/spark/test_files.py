"""Rows from the files of a server on the same host."""

import pytest

from jetlake.client.raw_streams import Streams
from jetlake.errors import ConfigurationError
from jetlake.frames import table
from jetlake.spark.files import ROWS_MIN, FileRows
from jetlake.spark.options import parse
from jetlake.spark.planning import StreamRange

pytest.importorskip("pyarrow", reason="the extra `spark` is not installed")

ROWS = ROWS_MIN * 3


@pytest.fixture(scope="module")
def filled(jetlake_shore):
    """A stream with two gaps, which no test changes."""
    name = jetlake_shore.create()
    jetlake_shore.fill(name, ROWS)
    for sequence in (5, 6000):
        jetlake_shore.streams.ask(f"STREAM.MSG.DELETE.{name}", {"seq": sequence})
    return name


def test_files_and_the_connection_give_the_same_rows(jetlake_shore, filled):
    from_files = table(filled, jetlake_shore.url, transport="files").to_arrow()

    assert from_files.num_rows == ROWS - 2
    assert from_files.equals(table(filled, jetlake_shore.url, transport="scan").to_arrow())


def test_columns_subjects_and_bounds_are_taken_from_files_too(jetlake_shore, filled):
    options = {"columns": ["data"], "subjects": f"{filled}.1", "startingSequence": 100, "endingSequence": 9000}

    from_files = table(filled, jetlake_shore.url, transport="files", **options).to_arrow()

    assert from_files.column_names == ["data"]
    assert from_files.equals(table(filled, jetlake_shore.url, transport="consumer", **options).to_arrow())


def test_a_stream_in_memory_has_no_files_and_is_read_over_the_connection(jetlake_shore):
    name = jetlake_shore.create(storage="memory")
    jetlake_shore.fill(name, ROWS_MIN)

    assert table(name, jetlake_shore.url).to_arrow().num_rows == ROWS_MIN
    with pytest.raises(ConfigurationError, match="leave out transport=files"):
        table(name, jetlake_shore.url, transport="files").to_arrow()


def test_files_that_go_away_end_the_reading_with_the_rows_that_came(jetlake_shore, filled, monkeypatch):
    ask = Streams.ask

    def gone(self, subject, body=None, **options):
        answer = ask(self, subject, body, **options)
        if "SCAN.FILES" in subject:
            for piece in answer["pieces"]:
                piece["path"] += ".gone"
        return answer

    monkeypatch.setattr(Streams, "ask", gone)
    values = parse({"url": jetlake_shore.url, "stream": filled}, "read")
    wanted = StreamRange(stream=filled, start=1, end=ROWS + 1, source="scan")
    rows = FileRows(jetlake_shore.streams, wanted, ("data",), values)

    assert list(rows.batches()) == []
    assert (rows.complete, rows.rows, rows.last_sequence) == (False, 0, 0)
    assert rows.reason
    assert table(filled, jetlake_shore.url, columns=["sequence"]).to_arrow().num_rows == ROWS - 2
