"""A stream as DuckDB scans it: only the columns, sequences and the subject that are asked for leave the server."""

import pytest

pytest.importorskip("duckdb", reason="the extra `sql` is not installed")

import pyarrow as pa
from duckdb._sources.nodes import Binary, Col, Lit

from jetlake.errors import ClientError
from jetlake.spark.columns import MESSAGE
from jetlake.spark.options import parse
from jetlake.sql.bounds import Bounds
from jetlake.sql.stream_table import StreamTable

SEQUENCE, SUBJECT, DATA = (list(MESSAGE).index(name) for name in ("sequence", "subject", "data"))


def table(server, stream, **options):
    return StreamTable(parse({"url": server.url, "stream": stream, **options}, "read"))


def read(scanned, columns, *conditions):
    capsule, is_narrow = scanned.stream(columns, conditions)
    assert is_narrow is (columns is not None)
    return pa.RecordBatchReader._import_from_c_capsule(capsule).read_all()


def test_only_the_columns_that_are_asked_for_are_read(server):
    name = server.create()
    server.fill(name, 3)

    assert read(table(server, name), [DATA, SEQUENCE]).column_names == ["data", "sequence"]
    assert read(table(server, name), None).column_names == list(MESSAGE)
    assert read(table(server, name), []).num_columns == 0


def test_only_the_sequences_and_the_subject_that_are_asked_for_are_read(server):
    name = server.create()
    server.fill(name, 10)
    scanned = table(server, name)
    after = Binary(">", Col(("sequence",)), Lit(3, "BIGINT"))
    before = Binary("<=", Col(("sequence",)), Lit(8, "BIGINT"))
    on = Binary("=", Col(("subject",)), Lit(f"{name}.b", "VARCHAR"))

    assert all(scanned.accepts(condition) for condition in (after, before, on))
    assert read(scanned, [SEQUENCE], after, before).column(0).to_pylist() == [4, 5, 6, 7, 8]
    assert read(scanned, [SEQUENCE], after, before, on).column(0).to_pylist() == [4, 6, 8]
    assert read(scanned, [SEQUENCE], after, on).column(0).to_pylist() == [4, 6, 8, 10]
    elsewhere = Binary("=", Col(("subject",)), Lit("x", "VARCHAR"))
    assert read(scanned, [SEQUENCE], on, elsewhere).num_rows == 0


def test_a_subject_beside_subjects_of_the_user_is_left_to_duckdb(server):
    name = server.create()
    condition = Binary("=", Col(("subject",)), Lit(f"{name}.b", "VARCHAR"))

    assert not table(server, name, subjects=f"{name}.a").accepts(condition)


def test_what_ends_a_scan_is_remembered(server):
    scanned = table(server, "NOT_THERE")

    with pytest.raises(ClientError):
        list(scanned._scan(("sequence",), Bounds()))

    assert "there is no stream 'NOT_THERE'" in str(scanned.failure)
