"""A confined engine: queries of others read streams and lake tables, and nothing else of the machine."""

from __future__ import annotations

import pytest

from jetlake.errors import JetlakeError
from jetlake.sql.duck import DuckEngine
from jetlake.sql.sources import Sources
from jetlake.sql.values import rows_of


@pytest.fixture
def lake(tmp_path):
    deltalake = pytest.importorskip("deltalake")
    import pyarrow as pa

    deltalake.write_deltalake(tmp_path / "lake" / "cities", pa.table({"city": ["Oslo", "Rome"]}))
    (tmp_path / "lake" / "secret.txt").write_text("secret")
    (tmp_path / "secret.txt").write_text("secret")
    return tmp_path / "lake"


def ask(url, lake, query):
    with DuckEngine(Sources({"url": url}, lake), confined=True) as engine:
        return [row for batch in engine.ask(query).batches for row in rows_of(batch)]


def test_streams_and_lake_tables_are_read(server, lake):
    name = server.create()
    server.fill(name, 4)

    found = ask(
        server.url, lake, f"SELECT city, count(*) AS n FROM lake.cities, streams.{name} GROUP BY city ORDER BY city"
    )

    assert found == [{"city": "Oslo", "n": 4}, {"city": "Rome", "n": 4}]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_text('{folder}/secret.txt')",
        "SELECT * FROM read_text('{lake}/secret.txt')",
        "SELECT * FROM lake.cities, read_text('{lake}/cities/../secret.txt')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM query('SELECT * FROM read_text(''/etc/passwd'')')",
        "SELECT * FROM glob('{folder}/*')",
        "COPY (SELECT 1) TO '{lake}/cities/x.csv'",
        "EXPLAIN ANALYZE COPY lake.cities TO '{lake}/cities/x.csv'",
        "ATTACH '{folder}/x.db'",
        "INSTALL httpfs",
        "SET lock_configuration = false",
        "SELECT 1; SELECT 2",
    ],
)
def test_everything_else_is_refused(server, lake, query):
    with pytest.raises(JetlakeError):
        ask(server.url, lake, query.format(folder=lake.parent, lake=lake))

    assert not (lake / "cities" / "x.csv").exists()
